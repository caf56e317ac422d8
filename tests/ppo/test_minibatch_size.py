"""Automatic minibatches follow the speed and the memory of devices, here imitated ones."""

from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import count
from types import SimpleNamespace

import numpy as np
import pytest
import torch

from keisei.network.towers import device
from keisei.network.towers.compilation import is_out_of_memory
from keisei.network.towers.device import free_share_of
from keisei.ppo.learner import Learner, Ranks, make_learner
from keisei.ppo.minibatch_size import MEMORY_SPAN, MinibatchSizer
from keisei.ppo.ppo_learner import PPOLearner
from tests.ppo.practice import played
from tests.tiny import tiny_config


@dataclass
class Device:
    """A device whose speed saturates, with room for so many samples."""

    saturation: int
    """Size from which larger minibatches are no faster."""

    room: int
    slow_beyond: int = 1 << 30
    """Size beyond which minibatches are slower, as they leave a cache."""

    sizes: list[int] = field(default_factory=list)

    def update(self, sizer: MinibatchSizer, samples: int = 1 << 20) -> None:
        while sizer.size > self.room:
            assert sizer.shrink()
        self.sizes.append(sizer.size)
        speed = 1000.0 * min(sizer.size, self.saturation) / self.saturation
        if sizer.size > self.slow_beyond:
            speed /= 2
        sizer.adapt(speed=speed, free_memory=1.0 - sizer.size / self.room, samples=samples)

    def train(self, sizer: MinibatchSizer, updates: int, samples: int = 1 << 20) -> int:
        for _ in range(updates):
            self.update(sizer, samples)
        return sizer.size


def sizer_at(first: int) -> MinibatchSizer:
    return MinibatchSizer(first, smallest=16, largest=32_768)


@pytest.mark.parametrize("first", [64, 512, 8192])
def test_sizes_settle_where_larger_ones_are_no_faster(first: int) -> None:
    device = Device(saturation=4096, room=1 << 20)
    assert device.train(sizer_at(first), 60) == 4096
    assert device.sizes[-20:] == [4096] * 20


def test_sizes_shrink_where_smaller_ones_are_faster() -> None:
    assert Device(saturation=64, room=1 << 20, slow_beyond=256).train(sizer_at(2048), 60) == 64


def test_memory_limits_the_size_and_a_failure_is_not_repeated_at_once() -> None:
    device = Device(saturation=1 << 20, room=3000)
    assert device.train(sizer_at(512), 60) == 2048
    assert max(device.sizes) == 2048
    device = Device(saturation=1 << 20, room=500)
    sizer = sizer_at(4096)
    assert device.train(sizer, MEMORY_SPAN // 2) == 256


def test_sizes_grow_again_when_memory_is_free_again() -> None:
    sizer = sizer_at(512)
    assert Device(saturation=1 << 20, room=300).train(sizer, 10) == 256
    assert Device(saturation=1 << 20, room=1 << 20).train(sizer, MEMORY_SPAN + 40) == 32_768


def test_an_epoch_keeps_a_few_steps() -> None:
    assert Device(saturation=1 << 20, room=1 << 20).train(sizer_at(512), 60, samples=8192) == 2048


def test_other_programs_that_take_the_memory_do_not_make_minibatches_tiny(
    family: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(device, "free_memory_share", lambda: 0.02)
    learner = automatic(family)
    assert isinstance(learner, PPOLearner)
    first = learner.minibatch_size
    for _ in range(10):  # larger ones are faster
        learner._adapt_minibatch(100_000, 100.0 / learner.minibatch_size, 100_000)
    assert learner.minibatch_size >= first


def test_the_smallest_size_is_the_end() -> None:
    sizer = sizer_at(16)
    assert not sizer.shrink()
    assert sizer.size == 16


def automatic(family: str) -> Learner:
    config = tiny_config(family, "ppo.minibatch_size=auto")
    return make_learner(config, seed=0, random=np.random.default_rng(0), ranks=Ranks())


def test_learners_of_both_families_adapt_and_are_restored(
    family: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    learner = automatic(family)
    assert isinstance(learner, PPOLearner)
    monkeypatch.setattr(type(learner), "_free_memory", lambda self: 0.9)
    first = learner.minibatch_size
    for _ in range(3):
        learner._adapt_minibatch(100_000, 100.0 / learner.minibatch_size, 100_000)
    assert learner.minibatch_size == 2 * first
    again = automatic(family)
    again.restore(learner.state())
    assert isinstance(again, PPOLearner)
    assert again.minibatch_size == 2 * first
    monkeypatch.setattr(type(learner), "_free_memory", lambda self: 0.05)
    learner._adapt_minibatch(100_000, 1.0, 100_000)
    assert learner.minibatch_size == first, "memory is short"


def test_each_update_adapts_the_size_of_the_next_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """By what it measures itself, here with a clock by which every update takes a second."""
    seconds, free = count(), 0.9
    # An epoch has 64 samples, of which a minibatch may hold a quarter.
    monkeypatch.setattr("keisei.ppo.agent.AUTO_CPU_MINIBATCH", 8)
    monkeypatch.setattr("keisei.ppo.agent.MIN_AUTO_MINIBATCH", 4)
    monkeypatch.setattr("keisei.ppo.agent.free_share_of", lambda device: free)
    clock = SimpleNamespace(perf_counter=lambda: float(next(seconds)))
    monkeypatch.setattr("keisei.ppo.ppo_learner.time", clock)
    practice = played("ppo.minibatch_size=auto")
    sizes = [practice.learn().metrics["charts/minibatch_size"] for _ in range(3)]
    assert sizes == [8, 8, 16], "after two updates its speed is known"
    free = 0.05
    sizes = [practice.learn().metrics["charts/minibatch_size"] for _ in range(2)]
    assert sizes == [16, 8], "memory is short"


def test_a_size_of_the_settings_never_changes(family: str) -> None:
    config = tiny_config(family, "ppo.minibatch_size=32")
    learner = make_learner(config, seed=0, random=np.random.default_rng(0), ranks=Ranks())
    assert isinstance(learner, PPOLearner)
    for _ in range(5):
        learner._adapt_minibatch(100_000, 1.0, 100_000)
    assert learner.minibatch_size == 32


NO_MEMORY = [
    torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB"),
    RuntimeError("MPS backend out of memory (MPS allocated: 8.00 GB, ...)"),
    RuntimeError("[enforce fail at alloc_cpu.cpp] DefaultCPUAllocator: can't allocate memory"),
    RuntimeError("[enforce fail] DefaultCPUAllocator: not enough memory: you tried to allocate"),
    MemoryError("Unable to allocate 2.00 GiB for an array"),
]
"""How devices say that they have too little memory."""


@pytest.mark.parametrize("error", NO_MEMORY, ids=["cuda", "mps", "cpu", "windows", "numpy"])
def test_every_kind_of_missing_memory_halves_the_minibatch(
    error: Exception, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert is_out_of_memory(error)
    practice = played("ppo.minibatch_size=auto")
    agent = practice.agent
    real: Callable[..., object] = agent._maker.make

    def make(buffer: object, indices: list[int], *rest: object) -> object:
        if len(indices) > 32:
            raise error
        return real(buffer, indices, *rest)

    monkeypatch.setattr(agent._maker, "make", make)
    assert practice.learn().samples == len(practice.buffer)
    assert agent.minibatch_size <= 32


def test_other_errors_are_not_taken_for_missing_memory() -> None:
    assert not is_out_of_memory(RuntimeError("shape mismatch"))
    assert not is_out_of_memory(ValueError("out of memory"))


def test_free_memory_is_measured_on_each_kind_of_device(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "mem_get_info", lambda device: (2 << 30, 8 << 30))
    monkeypatch.setattr(torch.cuda, "memory_reserved", lambda device: 3 << 30)
    monkeypatch.setattr(torch.cuda, "memory_allocated", lambda device: 1 << 30)
    assert free_share_of(torch.device("cuda")) == 0.5
    monkeypatch.setattr(torch.mps, "current_allocated_memory", lambda: 1 << 30)
    monkeypatch.setattr(torch.mps, "recommended_max_memory", lambda: 4 << 30)
    assert free_share_of(torch.device("mps")) == 0.75
    assert 0.0 < free_share_of(torch.device("cpu")) < 1.0

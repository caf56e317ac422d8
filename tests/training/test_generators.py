"""Random generators go on where they were."""

import random
from collections.abc import Callable, Iterator

import numpy as np
import pytest
import torch

from keisei.errors import KeiseiError
from keisei.training.generators import (
    generator_state,
    restore_generator,
    restore_rng,
    rng_state,
)
from tests.checkpoints.test_state_tree import round_trip


@pytest.fixture(autouse=True)
def _global_generators_stay_as_they_are() -> Iterator[None]:
    before = rng_state()
    yield
    restore_rng(before)


def draw() -> list[float]:
    legacy = np.random
    return [
        random.gauss(),
        random.random(),
        legacy.standard_normal(),
        legacy.random(),
        float(torch.randn(())),
        float(torch.rand(3).sum()),
    ]


def test_global_generators() -> None:
    draw()  # odd counts of normal variates leave one in store
    saved = round_trip(rng_state())
    expected = draw()
    assert draw() != expected
    restore_rng(saved)
    assert draw() == expected


@pytest.mark.parametrize(
    "bits", [np.random.PCG64, np.random.Philox, np.random.SFC64, np.random.MT19937]
)
def test_generators_of_numpy(bits: Callable[[int], np.random.BitGenerator]) -> None:
    generator = np.random.Generator(bits(7))
    generator.integers(9, size=3, dtype=np.uint32)  # leaves half of 64 bits in store
    saved = round_trip(generator_state(generator))
    other = np.random.Generator(bits(8))
    restore_generator(other, saved)
    assert other.integers(9, size=5, dtype=np.uint32).tolist() == (
        generator.integers(9, size=5, dtype=np.uint32).tolist()
    )


def test_generators_of_torch() -> None:
    generator = torch.Generator().manual_seed(7)
    torch.randn(3, generator=generator)
    saved = round_trip(generator_state(generator))
    other = torch.Generator()
    restore_generator(other, saved)
    assert torch.equal(torch.randn(5, generator=other), torch.randn(5, generator=generator))


def test_states_of_something_else_are_refused() -> None:
    numpy = np.random.default_rng(0)
    with pytest.raises(KeiseiError, match="not one of"):
        restore_generator(numpy, generator_state(torch.Generator()))
    with pytest.raises(KeiseiError, match="not one of"):
        restore_generator(numpy, generator_state(np.random.Generator(np.random.Philox(0))))
    with pytest.raises(KeiseiError, match="not one of"):
        restore_generator(torch.Generator(), {"torch": torch.zeros(3, dtype=torch.uint8)})
    with pytest.raises(KeiseiError, match="not one of the global"):
        restore_rng({})


def test_cuda_devices_are_restored_if_they_are_the_same_number(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    states = [torch.tensor([1], dtype=torch.uint8), torch.tensor([2], dtype=torch.uint8)]
    restored: list[torch.Tensor] = []
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_rng_state_all", lambda: states)
    monkeypatch.setattr(torch.cuda, "set_rng_state_all", restored.extend)
    saved = rng_state()
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    restore_rng(saved)
    assert restored == states
    assert not caplog.records

    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
    restore_rng(saved)
    assert len(restored) == 2
    assert "2 CUDA devices, but 0 are here" in caplog.text

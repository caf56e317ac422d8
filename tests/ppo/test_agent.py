"""The learner of the towers: what torch adds to what both learners have in common."""

from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch

from keisei.errors import KeiseiError
from keisei.network.towers.device import Compute, Probe
from keisei.network.towers.model import ActorCritic, legal_log_probs
from keisei.ppo.agent import make_agent
from keisei.ppo.learner import Ranks, TrainingDivergedError
from keisei.ppo.losses import Minibatch, MinibatchMaker
from tests.ppo.practice import played
from tests.ppo.test_ppo_learner import RESUMED, restored
from tests.tiny import tiny_config


@pytest.mark.parametrize("mirror", ["true", "false"])
@pytest.mark.parametrize("head", ["from_to", "flat"])
@pytest.mark.parametrize("model", ["resnet", "transformer"])
def test_before_any_update_all_ratios_are_one(mirror: str, head: str, model: str) -> None:
    """Acting and learning see the same position, the same legal moves, the same network."""
    practice = played(f"ppo.mirror={mirror}", f"model.policy_head={head}", f"model.type={model}")
    for _ in range(3):  # a network that is not near its first, uniform, policy
        practice.learn()
    agent, buffer = practice.agent, practice.play()
    batch = MinibatchMaker(agent.spec, agent.compute).make(
        buffer, np.arange(len(buffer)), buffer.advantages.reshape(-1)
    )
    with torch.no_grad():
        output = agent.model(batch.planes, batch.legal)
        log_probs = legal_log_probs(output.logits, batch.counts)
    chosen = log_probs.gather(1, batch.legal_indices[:, None])[:, 0]
    ratios = (chosen - batch.log_probs).exp()
    assert torch.allclose(ratios, torch.ones_like(ratios), atol=1e-4)
    values = agent.model.values(output.value)
    assert np.allclose(values.numpy(), buffer.values.reshape(-1), atol=1e-5)


def test_out_of_memory_halves_an_automatic_minibatch(monkeypatch: pytest.MonkeyPatch) -> None:
    practice = played("ppo.minibatch_size=auto")
    agent = practice.agent
    real = agent._loss

    def small_memory(minibatch: Minibatch, *rest: Any) -> object:
        if len(minibatch.counts) > 20:
            raise torch.OutOfMemoryError
        return real(minibatch, *rest)

    monkeypatch.setattr(agent, "_loss", small_memory)
    stats = practice.learn()
    assert agent.minibatch_size == 16
    assert stats.samples == len(practice.buffer), "nothing is left out"
    fixed = played("ppo.minibatch_size=64")
    monkeypatch.setattr(fixed.agent, "_loss", small_memory)
    with pytest.raises(KeiseiError, match="out of memory with a minibatch of 64"):
        fixed.learn()


def test_a_minibatch_is_copied_to_the_device_array_by_array(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    practice = played()
    copies: list[int] = []
    from_numpy = torch.from_numpy

    def copied(array: npt.NDArray[np.generic]) -> torch.Tensor:
        copies.append(len(array))
        return from_numpy(array)

    monkeypatch.setattr(torch, "from_numpy", copied)
    for batch in (8, 64):
        copies.clear()
        advantages = np.zeros(batch, dtype=np.float32)
        practice.agent._maker.make(practice.buffer, np.arange(batch), advantages)
        assert copies == [batch] * len(copies), "whole arrays, never single samples"
        assert len(copies) == 8


def test_restored_moments_lie_in_memory_as_their_weights_do(tmp_path: Path) -> None:
    """Optimizers are faster then, and some of their kernels only right then."""
    practice = played(*RESUMED)
    practice.learn()
    agent = restored(practice, tmp_path).agent
    stem = agent.model.get_parameter("trunk.stem.weight")
    assert stem.is_contiguous(memory_format=torch.channels_last)
    assert not stem.is_contiguous()
    for parameter in agent.model.parameters():
        for name in ("exp_avg", "exp_avg_sq"):
            assert agent.optimizer.state[parameter][name].stride() == parameter.stride()


def test_settings_of_the_optimizer_are_those_of_the_run() -> None:
    """What a checkpoint says of them is not read; torch would take any type."""
    practice = played(*RESUMED)
    practice.learn()
    state = practice.learner.state()
    assert list(state["optimizer"]) == ["state"]
    state["optimizer"]["param_groups"] = [{"betas": "x", "amsgrad": [], "params": None}]
    agent = played(*RESUMED, "ppo.beta2=0.9", "ppo.weight_decay=0.5").agent
    agent.restore(state)
    group = agent.optimizer.param_groups[0]
    assert (group["betas"], group["weight_decay"]) == ((0.9, 0.9), 0.5)
    assert group["amsgrad"] is False


@pytest.mark.parametrize("number", [-1, 1_000])
def test_moments_of_weights_that_do_not_exist_are_refused(tmp_path: Path, number: int) -> None:
    practice = played(*RESUMED)
    practice.learn()
    state = practice.learner.state()
    moments = state["optimizer"]["state"]
    moments[number] = moments.pop(0)
    with pytest.raises(KeiseiError, match="the optimizer of the checkpoint is that of another"):
        restored(practice, tmp_path).learner.restore(state)


def test_scaled_gradients_are_unscaled_before_they_are_clipped(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Mixed precision with a scaler leads to the same step as without, and overflows are skipped.

    Autocast itself is left out: not every CPU survives it.
    """
    monkeypatch.setattr(Compute, "autocast", lambda self: nullcontext())
    steps = []
    for dtype in (None, torch.float16):
        practice = played("ppo.max_grad_norm=0.01")
        agent = practice.agent
        agent.scaler = torch.amp.GradScaler("cpu", enabled=dtype is not None)
        stats = practice.learn(0.01, 0.01)
        steps.append({name: value.clone() for name, value in agent.model.state_dict().items()})
        assert stats.metrics["losses/grad_norm"] < 100.0, "that of the unscaled gradient"
    for name, plain in steps[0].items():
        assert torch.allclose(plain, steps[1][name], atol=1e-6), name
    assert agent.scaler.is_enabled()
    assert agent.state()["scaler"]["scale"] == agent.scaler.get_scale()

    before = agent.scaler.get_scale()
    parameter = next(agent.model.parameters())
    handle = parameter.register_hook(lambda gradient: gradient * torch.inf)  # type: ignore[no-untyped-call]
    practice.learn(0.01, 0.01)
    handle.remove()
    assert agent.scaler.get_scale() < before, "an overflow lowers the scale"
    for name, value in agent.model.state_dict().items():
        assert torch.equal(value, steps[1][name]), "and changes nothing"


def test_gradients_that_never_become_finite_stop_the_run_in_float16_too(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A scaler skips a step that overflowed, and would do so for ever."""
    monkeypatch.setattr(Compute, "autocast", lambda self: nullcontext())
    practice = played("ppo.nan_limit=3", "ppo.minibatch_size=32")
    agent = practice.agent
    agent.scaler = torch.amp.GradScaler("cpu")
    before = agent.fingerprint
    parameter = next(agent.model.parameters())
    handle = parameter.register_hook(lambda gradient: gradient * torch.nan)  # type: ignore[no-untyped-call]
    stats = practice.learn()
    assert stats.metrics["losses/skipped_minibatches"] == 2.0
    with pytest.raises(TrainingDivergedError, match=r"the gradient is NaN.*3 minibatches in a row"):
        practice.learn()
    assert agent.fingerprint == before
    handle.remove()
    practice.learn()
    assert agent.bad_minibatches == 0, "only those in a row count"
    assert agent.fingerprint != before


@pytest.mark.parametrize(("works", "fact"), [(True, "on"), (False, "off")])
def test_the_facts_say_whether_the_model_was_compiled_not_whether_it_was_wished(
    works: bool, fact: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def compile_forward(model: ActorCritic, **_: object) -> bool:
        model.compiled = model.forward_eager if works else None
        return works

    monkeypatch.setattr("keisei.network.towers.device.compile_forward", compile_forward)
    config = tiny_config("device.compile=on")
    with caplog.at_level("INFO"):
        agent = make_agent(config, seed=0, random=np.random.default_rng(0), ranks=Ranks())
    assert agent.facts()["compile"] == fact
    state = "compiled" if works else "uncompiled"
    wishes = "(device.mixed_precision=off), {} (device.compile=on)"
    assert f"learning on cpu in float32 {wishes.format(state)}" in caplog.text


def test_the_facts_say_float32_where_a_lower_precision_is_slower(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    facts = []
    for speedup in (0.5, 2.0):
        probe = Probe(speedup, "")
        monkeypatch.setattr(
            "keisei.network.towers.device.probe_precision", lambda *_, probe=probe: probe
        )
        config = tiny_config("device.mixed_precision=auto")
        with caplog.at_level("INFO"):
            agent = make_agent(config, seed=0, random=np.random.default_rng(0), ranks=Ranks())
        facts.append(agent.facts()["precision"])
    assert facts == ["float32", "bfloat16"]
    assert "mixed precision stays off: bf16 on this cpu: 0.50x as fast" in caplog.text
    assert "learning on cpu in float32 (device.mixed_precision=auto)" in caplog.text

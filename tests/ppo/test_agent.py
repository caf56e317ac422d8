"""Learning: exactly what was played is learned, and it learns."""

import copy
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from keisei.checkpoints.store import load_checkpoint, save_checkpoint
from keisei.errors import KeiseiError
from keisei.network.towers.device import Compute
from keisei.network.towers.model import legal_log_probs
from keisei.ppo.buffer import ExperienceBuffer
from keisei.ppo.learner import LearnSettings, TrainingDivergedError
from keisei.ppo.losses import Minibatch, MinibatchMaker
from tests.checkpoints.states import same
from tests.ppo.practice import Practice, played, tiny_agent


@pytest.mark.parametrize("mirror", ["true", "false"])
@pytest.mark.parametrize("head", ["from_to", "flat"])
@pytest.mark.parametrize("model", ["resnet", "transformer"])
def test_before_any_update_all_ratios_are_one(mirror: str, head: str, model: str) -> None:
    """Acting and learning see the same position, the same legal moves, the same network."""
    practice = played(f"ppo.mirror={mirror}", f"model.policy_head={head}", f"model.type={model}")
    for _ in range(3):  # a network that is not near its first, uniform, policy
        practice.learn()
    agent, buffer = practice.agent, practice.play()
    batch = MinibatchMaker(agent.spec, agent.compute).make(buffer, np.arange(len(buffer)))
    with torch.no_grad():
        output = agent.model(batch.planes, batch.legal)
        log_probs = legal_log_probs(output.logits, batch.counts)
    chosen = log_probs.gather(1, batch.legal_indices[:, None])[:, 0]
    ratios = (chosen - batch.log_probs).exp()
    assert torch.allclose(ratios, torch.ones_like(ratios), atol=1e-4)
    values = agent.model.values(output.value)
    assert np.allclose(values.numpy(), buffer.values.reshape(-1), atol=1e-5)


def test_the_first_minibatch_reports_no_kl() -> None:
    practice = played("ppo.minibatch_size=64")
    stats = practice.learn(1e-3, 0.01)
    assert stats.metrics["losses/approx_kl"] == pytest.approx(0.0, abs=1e-5)
    assert stats.metrics["losses/clip_fraction"] == 0.0
    assert stats.samples == len(practice.buffer)


def test_a_buffer_with_nothing_to_learn_from_changes_nothing() -> None:
    agent = tiny_agent()
    before = [parameter.clone() for parameter in agent.model.parameters()]
    stats = agent.learn(ExperienceBuffer(8, 8), LearnSettings(1e-3, 0.01))
    assert stats.samples == 0
    assert all(map(np.isfinite, stats.metrics.values()))
    assert all(map(torch.equal, before, agent.model.parameters()))


def test_target_kl_stops_an_update_early() -> None:
    practice = played("ppo.target_kl=1e-9", "ppo.epochs=4", "ppo.minibatch_size=16")
    stats = practice.learn(0.05)
    assert stats.metrics["charts/epochs_done"] == 1.0
    assert stats.samples < len(practice.buffer)


def test_all_epochs_are_done_without_a_target() -> None:
    epochs: list[int] = []
    practice = played("ppo.epochs=3")
    stats = practice.agent.learn(practice.buffer, LearnSettings(1e-3, 0.0), on_epoch=epochs.append)
    assert epochs == [0, 1, 2]
    assert stats.samples == 3 * len(practice.buffer)


def test_averaged_weights_follow_slowly() -> None:
    practice = played("ppo.ema_decay=0.9", "ppo.ema_kl=0.1")
    agent = practice.agent
    before = [p.clone() for p in agent.model.parameters()]
    stats = practice.learn()
    assert agent.average is not None
    assert agent.evaluation_network.model is agent.average
    for old, new, mean in zip(
        before, agent.model.parameters(), agent.average.parameters(), strict=True
    ):
        assert torch.allclose(mean, 0.9 * old + 0.1 * new, atol=1e-6)
    assert stats.metrics["losses/ema_kl"] >= 0.0
    plain = tiny_agent()
    assert plain.evaluation_network.model is plain.model


def test_a_non_finite_loss_is_skipped_and_then_stops_the_run(
    caplog: pytest.LogCaptureFixture,
) -> None:
    practice = played("ppo.nan_limit=3", "ppo.minibatch_size=32")
    agent = practice.agent
    before = {name: value.clone() for name, value in agent.model.state_dict().items()}
    practice.buffer.advantages[:] = np.nan
    stats = practice.learn()
    assert stats.metrics["losses/skipped_minibatches"] == 2.0
    assert "minibatch skipped: the loss is NaN or infinite" in caplog.text
    for name, value in agent.model.state_dict().items():
        assert torch.equal(value, before[name])
    with pytest.raises(TrainingDivergedError, match="3 minibatches in a row"):
        practice.learn()


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


RESUMED = ("ppo.ema_decay=0.9", "ppo.minibatch_size=16")


def restored(practice: Practice, directory: Path) -> Practice:
    """Another agent, which takes over the state of the first one from a checkpoint."""
    path = save_checkpoint(
        directory, timestep=0, update=0, state=practice.agent.state(), config_json="", keep=1
    )
    twin = Practice(*RESUMED, seed=9)
    twin.agent.restore(load_checkpoint(path).state)
    twin.agent.random = copy.deepcopy(practice.agent.random)
    return twin


def test_a_restored_agent_learns_on_bit_by_bit(tmp_path: Path) -> None:
    practice = played(*RESUMED)
    practice.learn()
    twin = restored(practice, tmp_path)
    assert same(practice.agent.state(), twin.agent.state())
    twin.buffer = practice.play()
    practice.learn()
    learned = copy.deepcopy(practice.agent.state())
    twin.learn()
    assert same(learned, practice.agent.state()), "the two share no memory"
    assert same(learned, twin.agent.state())


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


def test_a_state_of_another_network_is_refused() -> None:
    with pytest.raises(KeiseiError, match=r"a run keeps its network.*run\.start_from"):
        tiny_agent().restore(tiny_agent("model.tower_width=16").state())


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

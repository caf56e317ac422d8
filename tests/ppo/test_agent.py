"""Learning: exactly what was played is learned, and it learns."""

from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from keisei.errors import KeiseiError
from keisei.network.towers.device import Compute
from keisei.network.towers.heads import legal_log_probs
from keisei.ppo.agent import TrainingDivergedError
from keisei.ppo.learner import LearnSettings
from keisei.ppo.minibatch import Minibatch, MinibatchMaker
from keisei.selfplay.source import SelfPlay
from keisei.training.trainer import Trainer
from tests.tiny import agent_of, tiny_trainer


def with_rollout(directory: Path, *overrides: str) -> Trainer:
    trainer = tiny_trainer(directory, *overrides)
    assert isinstance(trainer.selfplay, SelfPlay)
    trainer.selfplay.pool.add(agent_of(trainer).model)
    trainer.selfplay.collect(trainer.buffer, trainer.timer)
    trainer.buffer.finish(gamma=0.99, gae_lambda=0.9)
    return trainer


@pytest.mark.parametrize("mirror", ["true", "false"])
@pytest.mark.parametrize("head", ["from_to", "flat"])
@pytest.mark.parametrize("model", ["resnet", "transformer"])
def test_before_any_update_all_ratios_are_one(
    tmp_path: Path, mirror: str, head: str, model: str
) -> None:
    """Acting and learning see the same position, the same legal moves, the same network."""
    trainer = with_rollout(
        tmp_path, f"ppo.mirror={mirror}", f"model.policy_head={head}", f"model.type={model}"
    )
    for _ in range(3):  # a network that is not near its first, uniform, policy
        agent_of(trainer).learn(trainer.buffer, LearnSettings(0.01, 0.0))
    trainer = _continue(trainer)
    maker = MinibatchMaker(trainer.spec, agent_of(trainer).compute)
    batch = maker.make(trainer.buffer, np.arange(len(trainer.buffer)))
    with torch.no_grad():
        output = agent_of(trainer).network(batch.planes, batch.legal)
        log_probs = legal_log_probs(output.logits, batch.counts)
    chosen = log_probs.gather(1, batch.legal_indices[:, None])[:, 0]
    ratios = (chosen - batch.log_probs).exp()
    assert torch.allclose(ratios, torch.ones_like(ratios), atol=1e-4)
    values = agent_of(trainer).model.values(output.value)
    assert np.allclose(values.numpy(), trainer.buffer.values.reshape(-1), atol=1e-5)


def _continue(trainer: Trainer) -> Trainer:
    trainer.selfplay.collect(trainer.buffer, trainer.timer)
    trainer.buffer.finish(gamma=0.99, gae_lambda=0.9)
    return trainer


def test_the_first_minibatch_reports_no_kl(tmp_path: Path) -> None:
    trainer = with_rollout(tmp_path, "ppo.minibatch_size=64")
    stats = agent_of(trainer).learn(trainer.buffer, LearnSettings(1e-3, 0.01))
    assert stats.metrics["losses/approx_kl"] == pytest.approx(0.0, abs=1e-5)
    assert stats.metrics["losses/clip_fraction"] == 0.0
    assert stats.samples == len(trainer.buffer)


def test_a_buffer_with_nothing_to_learn_from_changes_nothing(tmp_path: Path) -> None:
    trainer = tiny_trainer(tmp_path)
    agent = agent_of(trainer)
    before = [parameter.clone() for parameter in agent.model.parameters()]
    stats = agent.learn(trainer.buffer, LearnSettings(1e-3, 0.01))
    assert stats.samples == 0
    assert all(map(np.isfinite, stats.metrics.values()))
    assert all(map(torch.equal, before, agent.model.parameters()))


def test_target_kl_stops_an_update_early(tmp_path: Path) -> None:
    trainer = with_rollout(tmp_path, "ppo.target_kl=1e-9", "ppo.epochs=4", "ppo.minibatch_size=16")
    stats = agent_of(trainer).learn(trainer.buffer, LearnSettings(0.05, 0.0))
    assert stats.metrics["charts/epochs_done"] == 1.0
    assert stats.samples < len(trainer.buffer)


def test_all_epochs_are_done_without_a_target(tmp_path: Path) -> None:
    epochs: list[int] = []
    trainer = with_rollout(tmp_path, "ppo.epochs=3")
    stats = agent_of(trainer).learn(
        trainer.buffer, learning_rate=1e-3, entropy_weight=0.0, on_epoch=epochs.append
    )
    assert epochs == [0, 1, 2]
    assert stats.samples == 3 * len(trainer.buffer)


def test_averaged_weights_follow_slowly(tmp_path: Path) -> None:
    trainer = with_rollout(tmp_path, "ppo.ema_decay=0.9", "ppo.ema_kl=0.1")
    agent = agent_of(trainer)
    before = [p.clone() for p in agent.model.parameters()]
    stats = agent.learn(trainer.buffer, LearnSettings(0.01, 0.0))
    assert agent.average is not None
    assert agent.best_network.model is agent.average
    for old, new, mean in zip(
        before, agent.model.parameters(), agent.average.parameters(), strict=True
    ):
        assert torch.allclose(mean, 0.9 * old + 0.1 * new, atol=1e-6)
    assert stats.metrics["losses/ema_kl"] >= 0.0
    assert tiny_trainer(tmp_path).agent.best_network.model is not None


def test_a_loss_that_is_no_number_is_skipped_and_then_stops_the_run(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    trainer = with_rollout(tmp_path, "ppo.nan_limit=3", "ppo.minibatch_size=32")
    before = {name: value.clone() for name, value in agent_of(trainer).model.state_dict().items()}
    trainer.buffer.advantages[:] = np.nan
    stats = agent_of(trainer).learn(trainer.buffer, LearnSettings(0.01, 0.0))
    assert stats.metrics["losses/skipped_minibatches"] == 2.0
    assert "minibatch skipped: the loss is no number" in caplog.text
    for name, value in agent_of(trainer).model.state_dict().items():
        assert torch.equal(value, before[name])
    with pytest.raises(TrainingDivergedError, match="3 minibatches in a row"):
        agent_of(trainer).learn(trainer.buffer, LearnSettings(0.01, 0.0))


def test_out_of_memory_halves_an_automatic_minibatch(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trainer = with_rollout(tmp_path, "ppo.minibatch_size=auto")
    real = agent_of(trainer)._loss

    def small_memory(minibatch: Minibatch, *rest: Any) -> object:
        if len(minibatch.counts) > 20:
            raise torch.OutOfMemoryError
        return real(minibatch, *rest)

    monkeypatch.setattr(agent_of(trainer), "_loss", small_memory)
    stats = agent_of(trainer).learn(trainer.buffer, LearnSettings(0.01, 0.0))
    assert agent_of(trainer).minibatch_size == 16
    assert stats.samples == len(trainer.buffer), "nothing is left out"
    fixed = with_rollout(tmp_path, "ppo.minibatch_size=64")
    monkeypatch.setattr(fixed.agent, "_loss", small_memory)
    with pytest.raises(KeiseiError, match="no memory for a minibatch of 64"):
        fixed.agent.learn(fixed.buffer, LearnSettings(0.01, 0.0))


def test_a_state_comes_back(tmp_path: Path) -> None:
    trainer = with_rollout(tmp_path, "ppo.ema_decay=0.9")
    agent_of(trainer).learn(trainer.buffer, LearnSettings(0.01, 0.0))
    twin = tiny_trainer(tmp_path, "ppo.ema_decay=0.9", "run.seed=9")
    twin.agent.restore(agent_of(trainer).state())
    for a, b in zip(
        agent_of(trainer).model.parameters(), twin.agent.model.parameters(), strict=True
    ):
        assert torch.equal(a, b)


def test_scaled_gradients_are_unscaled_before_they_are_clipped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Mixed precision with a scaler leads to the same step as without, and overflows are skipped.

    Autocast itself is left out: not every CPU survives it.
    """
    monkeypatch.setattr(Compute, "autocast", lambda self: nullcontext())
    steps = []
    for dtype in (None, torch.float16):
        trainer = with_rollout(tmp_path, "ppo.max_grad_norm=0.01")
        agent = agent_of(trainer)
        agent.scaler = torch.amp.GradScaler("cpu", enabled=dtype is not None)
        stats = agent.learn(trainer.buffer, LearnSettings(0.01, 0.01))
        steps.append({name: value.clone() for name, value in agent.model.state_dict().items()})
        assert stats.metrics["losses/grad_norm"] < 100.0, "that of the unscaled gradient"
    for name, plain in steps[0].items():
        assert torch.allclose(plain, steps[1][name], atol=1e-6), name
    assert agent.scaler.is_enabled()
    assert agent.state()["scaler"]["scale"] == agent.scaler.get_scale()

    before = agent.scaler.get_scale()
    parameter = next(agent.model.parameters())
    handle = parameter.register_hook(lambda gradient: gradient * torch.inf)  # type: ignore[no-untyped-call]
    agent.learn(trainer.buffer, LearnSettings(0.01, 0.01))
    handle.remove()
    assert agent.scaler.get_scale() < before, "an overflow lowers the scale"
    for name, value in agent.model.state_dict().items():
        assert torch.equal(value, steps[1][name]), "and changes nothing"

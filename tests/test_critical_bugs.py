"""The bugs that a trainer like this can have without anyone noticing, one test for each.

Each is tested in depth where its code is tested; here they stand together, for both families of
networks where that makes a difference.
"""

import ast
from contextlib import nullcontext
from pathlib import Path

import numpy as np
import pytest
import torch

import keisei
from keisei.callbacks import Callback, GameEnd
from keisei.checkpoints.store import load_newest
from keisei.errors import KeiseiError
from keisei.network.model_factory import make_network
from keisei.network.predictor import Weights
from keisei.network.towers.device import Compute
from keisei.ppo.learner import Ranks
from keisei.run_files import CHECKPOINTS
from keisei.selfplay.source import make_source
from keisei.selfplay.workers.model_sync import pack_weights, unpack_weights
from keisei.selfplay.workers.process_pool import ParallelSelfPlay
from keisei.selfplay.workers.worker_pool import WorkItems
from tests.ppo.practice import Practice, played
from tests.tiny import tiny_config, tiny_trainer

PACKAGE = Path(keisei.__file__).parent


def test_parallel_mode_has_workers(family: str) -> None:
    """The switch for workers was read, and the learner played alone."""
    config = tiny_config(family, "parallel.num_workers=2")
    source = make_source(config, make_network(config, config.device), Ranks())
    assert isinstance(source, ParallelSelfPlay)
    assert source._shares.shares == 2
    source.close()


def test_workers_play_nothing_before_the_first_weights() -> None:
    """Workers sent games of random weights, which were learned from."""
    items = WorkItems[str](shares=2, max_lag=1)
    assert items.take() is None
    items.begin_round()
    assert items.take() == 0


def test_compressed_weights_are_smaller_and_identical() -> None:
    """Weights were sent with a flag that said compressed, and were not."""
    weights: Weights = {"bias": np.zeros(10_000, dtype=np.float32), "count": np.arange(3)}
    messages = pack_weights(weights, compress=True)
    assert len(messages["bias"]["data"]) < 1_000
    back = unpack_weights(messages)
    assert all(np.array_equal(back[name], array) for name, array in weights.items())


def test_mixed_precision_is_on_when_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Mixed precision was configured, but nothing ran under autocast, and no loss was scaled."""
    entered: list[str] = []

    def autocast(self: Compute) -> nullcontext[None]:
        entered.append("autocast")  # nothing more: not every CPU survives it
        return nullcontext()

    monkeypatch.setattr(Compute, "autocast", autocast)
    practice = played()
    scaler = practice.agent.scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    scale = scaler.scale

    def scaled(loss: torch.Tensor) -> torch.Tensor:
        entered.append("scale")
        return scale(loss)

    monkeypatch.setattr(scaler, "scale", scaled)
    entered.clear()
    practice.learn()
    assert entered[:2] == ["autocast", "scale"]
    assert practice.agent.state()["scaler"]["scale"] == 1024.0


def test_kl_is_computed_from_log_probabilities(family: str) -> None:
    """KL was computed from probabilities or advantages, or was always 0."""
    practice = Practice(family, "ppo.epochs=1", "ppo.minibatch_size=1024")
    practice.play()
    assert practice.learn(learning_rate=0.01).metrics["losses/approx_kl"] == pytest.approx(
        0.0, abs=1e-5
    ), "before the first step the policy is the one that played"
    for _ in range(5):
        moved = practice.learn(learning_rate=0.05).metrics["losses/approx_kl"]
    assert moved > 1e-4, "afterwards it is not"


def test_each_outcome_is_counted_once(tmp_path: Path, family: str) -> None:
    """Games were counted by the games themselves and by the trainer."""

    class Games(Callback):
        number = 0

        def on_game_end(self, event: GameEnd) -> None:
            self.number += 1

    games = Games()
    trainer = tiny_trainer(tmp_path, family, "env.ply_limit=10", callbacks=[games])
    for _ in range(3):
        trainer.train_step()
    assert trainer.games == games.number > 0


def test_only_the_trainer_writes_the_timestep() -> None:
    """Several objects counted plies, and disagreed after a resume."""
    writers = {
        path.relative_to(PACKAGE).as_posix()
        for path in PACKAGE.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Attribute)
        and node.attr == "timestep"
        and isinstance(node.ctx, ast.Store)
    }
    assert writers == {"training/trainer.py"}


def test_checkpoints_are_written_and_one_that_is_broken_is_not_taken(
    tmp_path: Path, family: str
) -> None:
    """Periodic saves never happened, and a checkpoint that failed to load left random weights."""
    trainer = tiny_trainer(tmp_path, family)
    trainer.train_step()
    path = trainer.save()
    newest = load_newest(tmp_path / CHECKPOINTS)
    assert newest is not None
    assert newest.timestep == 64
    (path / "weights.safetensors").write_bytes(b"broken")
    with pytest.raises(KeiseiError, match=r"weights\.safetensors"):
        load_newest(tmp_path / CHECKPOINTS)

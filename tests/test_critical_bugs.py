"""The bugs that a trainer like this can have without anyone noticing, one test for each.

Those with a number, and the one of the KL divergence, are the critical findings of a review of an
earlier trainer of this name. Each is tested in depth where its code is tested; here they stand
together, for both families of networks where that makes a difference.
"""

import ast
import multiprocessing
import os
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch

import keisei
from keisei import cli, metric_names
from keisei.callbacks import Callback, GameEnd, StepEnd, TrainingEnd
from keisei.checkpoints.store import load_newest
from keisei.errors import KeiseiError
from keisei.network.predictor import Weights
from keisei.network.towers.device import Compute
from keisei.ppo import agent
from keisei.run_files import CHECKPOINTS
from keisei.selfplay.workers.model_sync import pack_weights, unpack_weights
from keisei.selfplay.workers.worker_pool import WorkItems
from keisei.training.wandb_tracker import WandbTracker
from tests.ppo.practice import Practice, played
from tests.tiny import tiny_trainer
from tests.training.fake_run import fake_config, fake_start, progress_at

PACKAGE = Path(keisei.__file__).parent


class Steps(Callback):
    """Keeps the metrics of all steps, and the processes that ran meanwhile."""

    def __init__(self) -> None:
        self.metrics: list[dict[str, float]] = []
        self.processes: set[int] = set()

    def on_step_end(self, event: StepEnd) -> None:
        self.metrics.append(dict(event.metrics))
        self.processes |= {child.pid or 0 for child in multiprocessing.active_children()}


@pytest.fixture(scope="module")
def steps_of_workers(tmp_path_factory: pytest.TempPathFactory) -> Steps:
    """The steps of a run whose games are played by two workers."""
    steps = Steps()
    settings = ("model.type=sparse", "parallel.num_workers=2", "run.total_timesteps=128")
    tiny_trainer(tmp_path_factory.mktemp("run"), *settings, callbacks=[steps]).run()
    return steps


@pytest.mark.slow
def test_b10_parallel_mode_starts_its_workers(steps_of_workers: Steps) -> None:
    """Workers were configured and never started; the learner waited, or played alone."""
    assert len(steps_of_workers.processes - {os.getpid()}) == 2
    for metrics in steps_of_workers.metrics:
        assert metric_names.worker_numbers(metrics) == [0, 1]


@pytest.mark.slow
def test_b11_speed_is_right_in_parallel_mode(steps_of_workers: Steps) -> None:
    """Plies of workers were not counted, and the speed shown was 0."""
    assert len(steps_of_workers.metrics) == 2
    for metrics in steps_of_workers.metrics:
        seconds = sum(metrics.get(name, 0.0) for name in metric_names.TIMES)
        assert metrics[metric_names.SPS] == pytest.approx(64 / seconds)


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


def test_b4_mixed_precision_is_on_when_it_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """Mixed precision was configured, but nothing ran under autocast, and no loss was scaled."""
    events: list[str] = []

    @contextmanager
    def autocast(self: Compute) -> Iterator[None]:
        events.append("autocast begins")  # nothing more: not every CPU survives it
        yield
        events.append("autocast ends")

    def noted(owner: object, name: str) -> None:
        """Note each call of a function."""
        function = getattr(owner, name)

        def call(*arguments: Any, **keywords: Any) -> object:
            events.append(name)
            return function(*arguments, **keywords)

        monkeypatch.setattr(owner, name, call)

    monkeypatch.setattr(Compute, "autocast", autocast)
    practice = played("ppo.minibatch_size=64")  # one step
    model = practice.agent.model
    scaler = practice.agent.scaler = torch.amp.GradScaler("cpu", init_scale=1024.0)
    noted(model, "forward")
    noted(agent, "ppo_loss")
    for name in ("scale", "unscale_", "step", "update"):
        noted(scaler, name)
    noted(torch.Tensor, "backward")
    noted(torch.nn.utils, "clip_grad_norm_")
    events.clear()
    practice.learn()
    assert events == [
        *("autocast begins", "forward", "ppo_loss", "autocast ends"),
        *("scale", "backward", "unscale_", "clip_grad_norm_", "step", "update"),
    ]
    assert practice.agent.state()["scaler"]["scale"] == 1024.0


def test_b5_the_end_waits_for_wandb_without_signals_of_posix(tmp_path: Path) -> None:
    """The time limit was SIGALRM, which Windows does not have, and crashed there."""
    never = threading.Event()
    run = SimpleNamespace(
        dir=str(tmp_path), define_metric=lambda *_, **__: None, finish=lambda **_: never.wait(60.0)
    )
    wandb = SimpleNamespace(init=lambda **_: run)
    tracker = WandbTracker(wandb, tmp_path, project="keisei", mode="offline", finish_timeout=0.05)
    tracker.on_training_start(fake_start(tmp_path, fake_config(), 0, 10))
    start = time.monotonic()
    tracker.on_training_end(TrainingEnd("finished", progress_at(1, 10)))
    assert time.monotonic() - start < 30.0
    never.set()
    sources = (path.read_text(encoding="utf-8") for path in PACKAGE.rglob("*.py"))
    assert not any("SIGALRM" in source for source in sources)


def test_b6_frozen_programs_can_start_workers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without `freeze_support` a frozen program on Windows starts itself again and again."""
    calls: list[str] = []
    monkeypatch.setattr(multiprocessing, "freeze_support", lambda: calls.append("freeze_support"))
    monkeypatch.setattr(cli, "app", lambda *_, **__: calls.append("app"))
    with suppress(SystemExit):
        cli.main()
    assert calls == ["freeze_support", "app"], "before anything else"


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


def test_b2_each_outcome_is_counted_once(tmp_path: Path, family: str) -> None:
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

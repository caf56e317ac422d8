"""A run whose games are played by workers: counted, shown and resumed like any other."""

import errno
import os
from collections.abc import Callable
from multiprocessing.context import SpawnProcess
from pathlib import Path

import pytest

from keisei import metric_names as names
from keisei.callbacks import Callback, StepEnd
from keisei.checkpoints.store import load_newest
from keisei.network.model_factory import make_network
from keisei.network.towers.torch_predictor import TorchPredictor
from keisei.ppo.buffer import Experience
from keisei.ppo.learner import Ranks
from keisei.run_files import CHECKPOINTS
from keisei.selfplay.rollout import RolloutStats
from keisei.selfplay.source import SelfPlay, WorkersFailedError, make_source
from keisei.selfplay.workers.process_pool import ParallelSelfPlay
from keisei.selfplay.workers.worker import PoolSnapshots, SelfPlayWorker
from keisei.selfplay.workers.worker_pool import GameShares
from keisei.timing import SectionTimer
from tests.tiny import tiny_config, tiny_trainer

WORKERS = ("parallel.num_workers=2", "selfplay.pool_share=0.25", "selfplay.pool_interval=1")


class Steps(Callback):
    """Keeps the events of all steps."""

    def __init__(self) -> None:
        self.events: list[StepEnd] = []

    def on_step_end(self, event: StepEnd) -> None:
        self.events.append(event)


@pytest.mark.slow
def test_a_run_with_workers_and_its_resumption_without(tmp_path: Path, family: str) -> None:
    steps = Steps()
    trainer = tiny_trainer(tmp_path, family, *WORKERS, "run.total_timesteps=384", callbacks=[steps])
    assert trainer.run() == "finished"
    assert trainer.timestep == 384
    assert [event.progress.timestep for event in steps.events] == [64 * n for n in range(1, 7)]
    for event in steps.events:
        metrics = event.metrics
        assert metrics[names.SPS] == pytest.approx(
            64 / sum(metrics.get(name, 0.0) for name in names.TIMES)
        )
        assert names.worker_numbers(metrics) == [0, 1]
        assert metrics[names.POLICY_LAG] <= 1
        assert metrics[names.FAILURES] == 0
        assert event.board is not None
    last = steps.events[-1].metrics
    assert last[names.POOL_SHARE] == 0.25

    checkpoint = load_newest(tmp_path / CHECKPOINTS)
    assert checkpoint is not None
    alone = tiny_trainer(tmp_path, family, "run.total_timesteps=512", "selfplay.pool_share=0.25")
    alone.restore(checkpoint)
    assert alone.timestep == 384
    assert alone.run() == "finished"
    assert alone.timestep == 512

    checkpoint = load_newest(tmp_path / CHECKPOINTS)
    assert checkpoint is not None
    again = tiny_trainer(tmp_path, family, *WORKERS, "run.total_timesteps=576")
    again.restore(checkpoint)
    assert again.run() == "finished"
    assert again.timestep == 576


LAZY = ("parallel.num_workers=2", "parallel.fallback=learner")


def failing(after: int) -> Callable[..., RolloutStats]:
    """Return a `ParallelSelfPlay.collect` whose workers fail after some rollouts."""
    rollouts = 0
    config = tiny_config("model.type=sparse")
    network = make_network(config, config.device)

    def collect(self: ParallelSelfPlay, experience: Experience, *_: object) -> RolloutStats:
        nonlocal rollouts
        rollouts += 1
        if rollouts > after:
            raise WorkersFailedError("workers failed 6 times in a row")
        return SelfPlay(config, network, games=8, threads=1).collect(experience, SectionTimer())

    return collect


@pytest.mark.parametrize("after", [0, 1])
def test_the_learner_plays_itself_if_workers_fail_and_the_settings_say_so(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
    after: int,
) -> None:
    monkeypatch.setattr(ParallelSelfPlay, "sync_weights", lambda *_: None)
    monkeypatch.setattr(ParallelSelfPlay, "collect", failing(after))
    steps = Steps()
    trainer = tiny_trainer(tmp_path, "model.type=sparse", *LAZY, callbacks=[steps])
    assert trainer.run() == "finished"
    assert trainer.timestep == 192
    assert isinstance(trainer.selfplay, SelfPlay)
    assert steps.events[-1].metrics[names.ABANDONED_GAMES] == 8
    assert "the learner plays the games itself, since there are no workers: workers" in caplog.text

    again = tiny_trainer(tmp_path, "model.type=sparse", *LAZY, "run.total_timesteps=256")
    checkpoint = load_newest(tmp_path / CHECKPOINTS)
    assert checkpoint is not None
    again.restore(checkpoint)
    assert isinstance(again.selfplay, ParallelSelfPlay), "a resumed run tries workers again"


def test_without_that_setting_the_run_stops_with_a_checkpoint(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ParallelSelfPlay, "sync_weights", lambda *_: None)
    monkeypatch.setattr(ParallelSelfPlay, "collect", failing(0))
    trainer = tiny_trainer(tmp_path, "model.type=sparse", "parallel.num_workers=2")
    with pytest.raises(WorkersFailedError, match="6 times in a row"):
        trainer.run()
    assert load_newest(tmp_path / CHECKPOINTS) is not None


def test_processes_that_the_system_refuses_are_workers_that_failed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def refuse(_: object) -> None:
        raise BlockingIOError(errno.EAGAIN, os.strerror(errno.EAGAIN))

    monkeypatch.setattr(SpawnProcess, "start", refuse)
    config = tiny_config("model.type=sparse")
    with (
        ParallelSelfPlay(config, workers=2) as play,
        pytest.raises(WorkersFailedError, match="cannot start worker 0: "),
    ):
        play.sync_weights(make_network(config, config.device), 0)


@pytest.mark.parametrize("fallback", ["stop", "learner"])
def test_a_cluster_that_cannot_be_joined(monkeypatch: pytest.MonkeyPatch, fallback: str) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    config = tiny_config("parallel.backend=ray", f"parallel.fallback={fallback}")
    network = make_network(config, config.device)
    if fallback == "learner":
        assert isinstance(make_source(config, network, Ranks()), SelfPlay)
    else:
        with pytest.raises(WorkersFailedError, match="needs the package ray"):
            make_source(config, network, Ranks())


@pytest.mark.parametrize("backend", ["processes", "ray"])
def test_the_log_says_in_which_precision_workers_play(
    backend: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("keisei.selfplay.workers.ray_pool.RaySelfPlay", lambda *_, **__: None)
    said = "workers play on the CPU in float32, uncompiled: device.mixed_precision=bf16 and"

    def start(*overrides: str) -> None:
        workers = (f"parallel.backend={backend}", "parallel.num_workers=2")
        config = tiny_config(*workers, *overrides)
        network = make_network(tiny_config(), tiny_config().device)
        with caplog.at_level("INFO"):
            make_source(config, network, Ranks())

    start()
    if backend == "processes":
        start("device.mixed_precision=bf16", "parallel.inference=server")
    assert "workers play" not in caplog.text
    start("device.mixed_precision=bf16")
    assert said in caplog.text


def test_workers_play_in_float32_uncompiled() -> None:
    config = tiny_config("device.mixed_precision=bf16", "device.compile=on")
    worker = SelfPlayWorker(
        GameShares(config, shares=1, ranks=Ranks()).next_plan(PoolSnapshots((), 0))
    )
    assert isinstance(worker.network, TorchPredictor)
    assert worker.network.compute.autocast_dtype is None
    assert worker.network.compute.compile == "off"

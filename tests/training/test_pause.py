"""A run is paused and reset by files in its directory, in the middle of a rollout."""

import logging
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from keisei.callbacks import Callback, EventBus, GameEnd, PhaseProgress, StepEnd
from keisei.commands.control import control
from keisei.config import save_config
from keisei.errors import KeiseiError
from keisei.network.model_factory import make_network
from keisei.ppo.buffer import Experience
from keisei.ppo.learner import Ranks
from keisei.run_files import CONFIG, HEARTBEAT, PAUSE, RESET
from keisei.runs.heartbeat import RunHeartbeat
from keisei.selfplay import source
from keisei.selfplay.source import PauseFile, SelfPlay
from keisei.selfplay.workers import ray_actor
from keisei.selfplay.workers.model_sync import pack_weights
from keisei.selfplay.workers.ray_actor import PackedChunk, RayWorker, WeightsMessage
from keisei.selfplay.workers.worker import PoolSnapshots
from keisei.selfplay.workers.worker_pool import GameShares
from keisei.system import InterruptFlag
from keisei.timing import SectionTimer
from keisei.training import trainer as trainer_module
from keisei.training.trainer import Trainer
from tests.commands.invoke import invoke
from tests.threaded_ranks import make_ranks, run_all
from tests.tiny import tiny_config, tiny_trainer

PAUSED_SECONDS = 0.6


@pytest.fixture(autouse=True)
def short_interval(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (source, trainer_module):
        monkeypatch.setattr(module, "PAUSE_INTERVAL", 0.02)


class PauseAfterFirstStep(Callback):
    """Creates the file after the first step, and calls `act` some time later."""

    def __init__(self, path: Path, act: Callable[[], None]) -> None:
        self.path, self.act = path, act
        self.times: list[float] = []

    def on_step_end(self, event: StepEnd) -> None:
        self.times.append(time.monotonic())
        if len(self.times) == 1:
            self.path.touch()
            threading.Timer(PAUSED_SECONDS, self.act).start()


def test_the_file_is_checked_once_a_second(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    now = 100.0
    monkeypatch.setattr("time.monotonic", lambda: now)
    monkeypatch.setattr(source, "PAUSE_INTERVAL", 1.0)
    path = tmp_path / PAUSE
    pause = PauseFile(path)
    assert not pause.is_set()
    path.touch()
    assert not pause.is_set(), "it was checked less than a second ago"
    now += 1.0
    assert pause.is_set()
    now += 5.0
    assert pause.seconds == 5.0
    path.unlink()
    assert not pause.is_set()
    now += 7.0
    assert pause.seconds == 5.0


@pytest.mark.parametrize("workers", [0, pytest.param(2, marks=pytest.mark.slow)])
def test_a_run_stands_still_while_the_file_exists(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, family: str, workers: int
) -> None:
    path = tmp_path / PAUSE
    callback = PauseAfterFirstStep(path, path.unlink)
    settings = (family, f"parallel.num_workers={workers}")
    trainer = tiny_trainer(tmp_path, *settings, callbacks=[callback])
    start = time.monotonic()
    with caplog.at_level(logging.INFO):
        assert trainer.run() == "finished"
    assert trainer.timestep == 192
    # Steps take milliseconds; one of them may still end before the file is seen.
    assert callback.times[-1] - callback.times[0] >= PAUSED_SECONDS
    assert trainer.progress.seconds <= time.monotonic() - start - PAUSED_SECONDS + 0.2, (
        "the pause does not count as training time"
    )
    assert f"paused; delete {path} to resume" in caplog.text
    assert "resumed after" in caplog.text


@pytest.mark.parametrize("workers", [0, pytest.param(2, marks=pytest.mark.slow)])
def test_an_interrupt_ends_a_paused_run(tmp_path: Path, workers: int) -> None:
    interrupt = InterruptFlag()
    callback = PauseAfterFirstStep(tmp_path / PAUSE, lambda: setattr(interrupt, "is_set", True))
    settings = ("model.type=sparse", "run.total_timesteps=64000", f"parallel.num_workers={workers}")
    trainer = tiny_trainer(tmp_path, *settings, callbacks=[callback])
    assert trainer.run(interrupt) == "interrupted"
    # Steps take milliseconds: some may end before the file is seen.
    assert 2 <= trainer.update == len(callback.times) < 1000
    gap = callback.times[-1] - callback.times[-2]
    assert gap > PAUSED_SECONDS / 2, "the update under way is completed, and none after it"


def test_several_learners_pause_together(tmp_path: Path, family: str) -> None:
    path = tmp_path / PAUSE
    callback = PauseAfterFirstStep(path, path.unlink)
    ranks = make_ranks(2)
    config = tiny_config(family, "run.total_timesteps=384")
    trainers = [
        Trainer(config, tmp_path, EventBus([callback] if rank.is_first else []), rank)
        for rank in ranks
    ]
    assert run_all(ranks, lambda rank: trainers[rank.rank].run()) == ["finished"] * 2
    assert callback.times[1] - callback.times[0] >= PAUSED_SECONDS


class ResetInRollout(Callback):
    """Asks for a reset in the middle of the second rollout, when its first game ends."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.games = 0
        self.has_asked = False
        self.steps: list[StepEnd] = []

    def on_game_end(self, event: GameEnd) -> None:
        self.games += 1
        if len(self.steps) == 1 and not self.has_asked:
            self.has_asked = True
            self.path.touch()

    def on_step_end(self, event: StepEnd) -> None:
        self.steps.append(event)


def test_a_reset_abandons_the_games_and_loses_no_outcome(
    tmp_path: Path, family: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(source, "PAUSE_INTERVAL", 0.0)
    callback = ResetInRollout(tmp_path / RESET)
    short = (family, "env.ply_limit=10", "selfplay.rollout_plies=16", "run.total_timesteps=512")
    trainer = tiny_trainer(tmp_path, *short, callbacks=[callback])
    assert trainer.run() == "finished"
    assert trainer.timestep == 512, "a rollout that was reset is played again in full"
    assert not (tmp_path / RESET).exists()
    abandoned = [step.metrics.get("workers/abandoned_games", 0) for step in callback.steps]
    assert abandoned[0] == 0
    assert abandoned[1] == 8
    assert trainer.games == callback.games, "each outcome is counted once"


def test_a_reset_is_obeyed_while_paused(tmp_path: Path) -> None:
    config = tiny_config("model.type=sparse")
    network = make_network(config, config.device)
    games = SelfPlay(config, network, games=8, threads=1)
    calls = 0

    def is_paused() -> bool:
        nonlocal calls
        calls += 1
        if calls == 40:  # paused at the sixth ply
            games.reset()
        return 5 < calls < 80

    boards: list[int] = []
    experience = Experience(8, 8)
    games.collect(
        experience,
        SectionTimer(),
        is_paused=is_paused,
        on_progress=lambda plies: boards.append(int(games.env.packed["ply"].max())),
    )
    assert boards == [0, 1, 2, 3, 4, *range(8)], "from the start again, after the pause"
    assert games.abandoned_games == 8


def test_several_learners_reset_together(tmp_path: Path) -> None:
    (tmp_path / RESET).touch()
    ranks = make_ranks(2)
    config = tiny_config("model.type=sparse", "run.total_timesteps=256")
    trainers = [Trainer(config, tmp_path, EventBus([]), rank) for rank in ranks]
    assert run_all(ranks, lambda rank: trainers[rank.rank].run()) == ["finished"] * 2
    for trainer in trainers:
        assert isinstance(trainer.selfplay, SelfPlay)
        assert trainer.selfplay.abandoned_games == 8


def test_a_ray_worker_is_paused_and_reset_within_a_ply(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ray_actor, "POLL_INTERVAL", 0.01)
    config = tiny_config("model.type=sparse")
    plan = GameShares(config, shares=1, ranks=Ranks()).next_plan(PoolSnapshots((), 0))
    worker = RayWorker(0, plan, plies=8)
    network = make_network(config, config.device)
    weights = WeightsMessage(pack_weights(network.weights(), compress=True), 0)
    worker.play(weights, 0)
    plies = worker._worker._selfplay.env.packed["ply"]
    assert plies.any(), "games are in progress"
    worker.pause(True)
    results: list[PackedChunk] = []
    thread = threading.Thread(target=lambda: results.append(worker.play(weights, 1)))
    thread.start()
    try:
        time.sleep(0.2)
        assert worker._progress == 8, "no ply was begun"
        worker.reset()
        deadline = time.monotonic() + 30.0
        while plies.any() and time.monotonic() < deadline:
            time.sleep(0.01)
        assert not plies.any(), "it is reset while it is paused"
        assert worker._progress == 8, "and stays paused"
    finally:
        worker.pause(False)
        thread.join(30.0)
    assert results[0].rollout.plies == 64
    assert worker._progress == 16
    assert not worker._must_reset
    assert not results[0].experience.packed[0].ply.any(), "plies begin at 0"


def test_several_learners_reset_while_they_are_paused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The reset happens in the pause, and only once, although learners hardly ever look alike."""
    pause, reset = tmp_path / PAUSE, tmp_path / RESET
    paused_when_reset: list[bool] = []
    real_reset = SelfPlay.reset

    def noted_reset(games: SelfPlay) -> None:
        paused_when_reset.append(pause.exists())
        real_reset(games)

    def resume_after_reset() -> None:
        reset.touch()
        deadline = time.monotonic() + 30.0
        while len(paused_when_reset) < 2 and time.monotonic() < deadline:
            time.sleep(0.01)
        pause.unlink()

    monkeypatch.setattr(SelfPlay, "reset", noted_reset)
    callback = PauseAfterFirstStep(pause, resume_after_reset)
    ranks = make_ranks(2)
    config = tiny_config("model.type=sparse", "run.total_timesteps=384")
    trainers = [
        Trainer(config, tmp_path, EventBus([callback] if rank.is_first else []), rank)
        for rank in ranks
    ]
    assert run_all(ranks, lambda rank: trainers[rank.rank].run()) == ["finished"] * 2
    assert paused_when_reset == [True, True]
    assert not reset.exists()


# ---- the command ----


def test_a_run_that_trains_is_paused_and_resumed_by_the_command(tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    save_config(tiny_config(), run / CONFIG)
    for command in ("pause", "reset"):
        with pytest.raises(KeiseiError, match=f"not training, so there is nothing to {command}"):
            invoke(control, str(run), command)
    with pytest.raises(KeiseiError, match="run is not paused"):
        invoke(control, str(run), "resume")
    assert {path.name for path in run.iterdir()} == {CONFIG}
    heartbeat = RunHeartbeat.now(PhaseProgress("playing", 0, 1), is_stopping=False)
    (run / HEARTBEAT).write_bytes(heartbeat.to_json())
    assert "run pauses until it is resumed" in invoke(control, str(run), "pause").stdout
    assert (run / PAUSE).exists()
    assert "run continues" in invoke(control, str(run), "resume").stdout
    assert not (run / PAUSE).exists()
    assert "begins new ones" in invoke(control, str(run), "reset").stdout
    assert (run / RESET).exists()
    assert invoke(control, str(run), "stop").exit_code == 2

"""A run is paused by a file in its directory, in the middle of a rollout."""

import logging
import threading
import time
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path

import pytest

from keisei.callbacks import Callback, EventBus, StepEnd
from keisei.run_files import PAUSE
from keisei.selfplay import source
from keisei.selfplay.source import PauseFile
from keisei.system import InterruptFlag
from keisei.training import trainer as trainer_module
from keisei.training.trainer import Trainer
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
    # A step can be quicker than the interval between two checks: then the next one waits.
    assert max(after - before for before, after in pairwise(callback.times)) >= PAUSED_SECONDS
    assert trainer.progress.seconds <= time.monotonic() - start - PAUSED_SECONDS + 0.2, (
        "the pause does not count as training time"
    )
    assert f"paused; delete {path} to resume" in caplog.text
    assert "resumed after" in caplog.text


def test_an_interrupt_ends_a_paused_run(tmp_path: Path) -> None:
    interrupt = InterruptFlag()
    callback = PauseAfterFirstStep(tmp_path / PAUSE, lambda: setattr(interrupt, "is_set", True))
    trainer = tiny_trainer(tmp_path, callbacks=[callback])
    assert trainer.run(interrupt) == "interrupted"
    assert trainer.update == 2, "the update under way is completed"


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

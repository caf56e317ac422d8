"""Callbacks that write files of a run: sample games, heartbeat, ``live.json`` and the report.

``live.json`` holds a few of the games in progress, for the dashboard. It is replaced at most once
a second and removed when the run ends. Writing it takes a millisecond or two, and at most
`MAX_TIME_SHARE` of the time.
"""

import json
import logging
import math
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Final, NamedTuple

from keisei import run_files
from keisei.callbacks import (
    Callback,
    EpochEnd,
    EvaluationEnd,
    GameEnd,
    PhaseProgress,
    StepEnd,
    StopRequested,
    TrainingEnd,
    TrainingStart,
)
from keisei.evaluation.match import write_games
from keisei.ppo.buffer import Experience
from keisei.runs.heartbeat import HEARTBEAT_INTERVAL, RunHeartbeat
from keisei.selfplay.source import GameSource, SelfPlay
from keisei.shogi.notation.record import GameRecord
from keisei.shogi.notation.sfen import format_sfen
from keisei.shogi.packed import unpack_diagram
from keisei.shogi.types import Diagram, Move
from keisei.shogi.vector import VectorShogi
from keisei.system import FileAccessError, write_atomically

logger = logging.getLogger(__name__)

INTERVAL: Final = 1.0
"""Minimum number of seconds between two versions of ``live.json``."""

MAX_TIME_SHARE: Final = 0.002
"""Maximum share of the time that writing may take: on a slow disk the file changes less often."""

BOARDS: Final = 4
"""Number of games in ``live.json``."""


class SampleGamesWriter(Callback):
    """Writes `number` games of each evaluation to the run's ``games`` directory.

    If the evaluation has more, evenly spaced ones are taken: they are listed opponent by opponent,
    and each opponent should be seen.
    """

    def __init__(self, run_directory: Path, number: int) -> None:
        self.directory = run_directory / run_files.GAMES
        self.number = number

    def on_evaluation(self, event: EvaluationEnd) -> None:
        """Write the games as ``update-000123-<black>-vs-<white>.kif`` and ``.csa``."""
        update = event.progress.update
        write_games(
            _evenly_spaced(event.games, self.number),
            self.directory,
            prefix=f"update-{update:06}",
            event=f"Keisei, update {update}",
        )


def _evenly_spaced(games: Sequence[GameRecord], number: int) -> list[GameRecord]:
    if len(games) <= number:
        return list(games)
    return [games[index * len(games) // number] for index in range(number)]


class ReportWriter(Callback):
    """Writes the report when training ends, and what it needs beside the journal."""

    def __init__(self, run_directory: Path) -> None:
        self.run_directory = run_directory

    def on_evaluation(self, event: EvaluationEnd) -> None:
        """Write ``calibration.json``."""
        if event.calibration is not None:
            text = json.dumps(asdict(event.calibration), indent=2)
            write_atomically(self.run_directory / run_files.CALIBRATION, text.encode())

    def on_training_end(self, event: TrainingEnd) -> None:
        """Write ``report.html`` and its plots, which takes a while."""
        if event.is_urgent:
            return
        from keisei.runs.report import write_report  # not needed before

        logger.info("report: %s", write_report(self.run_directory))


class HeartbeatWriter(Callback):
    """Writes ``heartbeat.json`` every few seconds, from a thread: also while an update is slow."""

    def __init__(self, run_directory: Path, *, interval: float = HEARTBEAT_INTERVAL) -> None:
        self.path = run_directory / run_files.HEARTBEAT
        self._interval = interval
        self._progress = PhaseProgress("starting")
        self._is_stopping = False
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._beat, name="heartbeat", daemon=True)

    def on_training_start(self, event: TrainingStart) -> None:
        """Start the thread."""
        self._thread.start()

    def on_phase(self, event: PhaseProgress) -> None:
        """Note the phase for the next heartbeat."""
        self._progress = event

    def on_stop_requested(self, event: StopRequested) -> None:
        """Note it for the next heartbeat."""
        self._is_stopping = True

    def on_training_end(self, event: TrainingEnd) -> None:
        """End the thread, and remove the file."""
        self._ended.set()
        if self._thread.is_alive():
            self._thread.join()
        with suppress(OSError):
            self.path.unlink(missing_ok=True)

    def _beat(self) -> None:
        is_ended = False
        while not is_ended:
            heartbeat = RunHeartbeat.now(self._progress, is_stopping=self._is_stopping)
            # If it cannot be written, the next one will do: readers also look at the journal.
            with suppress(FileAccessError):
                write_atomically(self.path, heartbeat.to_json(), durable=False)
            is_ended = self._ended.wait(self._interval)


class BoardSnapshot(NamedTuple):
    """Position of a game in progress."""

    diagram: Diagram
    last_move: Move | None


def boards_of(env: VectorShogi, number: int = BOARDS) -> list[BoardSnapshot]:
    """Return the positions of the first games of an environment."""
    return [
        BoardSnapshot(unpack_diagram(env.packed[index]), env.last_move(index))
        for index in range(min(number, env.num_games))
    ]


def current_boards(source: GameSource, buffer: Experience) -> list[BoardSnapshot]:
    """Return positions of games in progress; those of workers are from their last rollout."""
    if isinstance(source, SelfPlay):
        return boards_of(source.env)
    if source.board is None:  # no rollout yet
        return []
    return [BoardSnapshot(unpack_diagram(packed), None) for packed in buffer.last_packed[:BOARDS]]


class LiveGamesWriter(Callback):
    """Writes ``live.json`` at the first event after each `INTERVAL`."""

    def __init__(
        self,
        run_directory: Path,
        boards: Callable[[], Sequence[BoardSnapshot]],
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.path = run_directory / run_files.LIVE
        self._boards = boards
        self._clock = clock
        self._next = 0.0
        self._update = 0

    def on_training_start(self, event: TrainingStart) -> None:
        """Write the first version."""
        self._update = event.progress.update
        self._write()

    def on_phase(self, event: PhaseProgress) -> None:
        """Write if it is time: during a rollout, for example."""
        self._write_if_due()

    def on_game_end(self, event: GameEnd) -> None:
        """Write if it is time: during a rollout."""
        self._write_if_due()

    def on_epoch_end(self, event: EpochEnd) -> None:
        """Write if it is time: during an update."""
        self._write_if_due()

    def on_step_end(self, event: StepEnd) -> None:
        """Write if it is time, with the new update."""
        self._update = event.progress.update
        self._write_if_due()

    def on_training_end(self, event: TrainingEnd) -> None:
        """Remove the file."""
        self._next = math.inf
        with suppress(OSError):
            self.path.unlink(missing_ok=True)

    def _write_if_due(self) -> None:
        if self._clock() >= self._next:
            self._write()

    def _write(self) -> None:
        started = self._clock()
        # Set first: what fails now is not tried again at the next game.
        self._next = started + INTERVAL
        games = [
            {"sfen": format_sfen(board.diagram)}
            | ({} if board.last_move is None else {"last_move": board.last_move.usi})
            for board in self._boards()
        ]
        fields = {"time": round(time.time(), 3), "update": self._update, "games": games}
        # Not durable: after a power cut it is worthless. If it cannot be written, because the disk
        # is full or, on Windows, the file is being read, the next version will do.
        with suppress(FileAccessError):
            write_atomically(self.path, json.dumps(fields).encode(), durable=False)
        done = self._clock()
        self._next = done + max(INTERVAL, (done - started) / MAX_TIME_SHARE)

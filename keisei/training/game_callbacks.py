"""``live.json``: a few of the games that are being played right now, for those who look on.

The file is replaced once a second at most and is gone when the run has ended. Writing it takes a
millisecond or two, and never more than 0.2 % of the time: see `MOST_OF_THE_TIME`.
"""

import json
import math
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Final, NamedTuple

from keisei.evaluation.match import write_games
from keisei.ppo.buffer import Experience
from keisei.runs import run_files
from keisei.selfplay.source import GameSource, SelfPlay
from keisei.shogi.notation.record import GameRecord
from keisei.shogi.notation.sfen import format_sfen
from keisei.shogi.packed import unpack_diagram
from keisei.shogi.types import Diagram, Move
from keisei.shogi.vector import VectorShogi
from keisei.system import FileAccessError, write_atomically
from keisei.training.callbacks import (
    Callback,
    EpochEnd,
    EvaluationEnd,
    GameEnd,
    StepEnd,
    TrainingEnd,
    TrainingStart,
)


class SampleGames(Callback):
    """Writes `number` games of each evaluation to the run's ``games`` directory.

    Where there are more, those are taken that lie evenly in their list: it goes from opponent to
    opponent, and each shall be seen.
    """

    def __init__(self, run_directory: Path, number: int) -> None:
        self.directory = run_directory / run_files.GAMES
        self.number = number

    def on_evaluation(self, event: EvaluationEnd) -> None:
        """Write the games as ``update-000123-<black>-vs-<white>.kif`` and ``.csa``."""
        update = event.progress.update
        write_games(
            _spread(event.games, self.number),
            self.directory,
            prefix=f"update-{update:06}",
            event=f"Keisei, update {update}",
        )


def _spread(games: Sequence[GameRecord], number: int) -> list[GameRecord]:
    if len(games) <= number:
        return list(games)
    return [games[index * len(games) // number] for index in range(number)]


INTERVAL: Final = 1.0
"""Seconds that a file stands at least."""

MOST_OF_THE_TIME: Final = 0.002
"""The share of the time that writing may take: on a slow disk the file stands longer."""

BOARDS: Final = 4
"""Games that are shown."""


class Board(NamedTuple):
    """A game under way."""

    diagram: Diagram
    last_move: Move | None


def boards_of(env: VectorShogi, number: int = BOARDS) -> list[Board]:
    """The first games of an environment as they stand."""
    return [
        Board(unpack_diagram(env.packed[index]), env.last_move(index))
        for index in range(min(number, env.num_games))
    ]


def boards_now(source: GameSource, buffer: Experience) -> list[Board]:
    """Some games of a run: as they stand, or as workers left them when they last handed over."""
    if isinstance(source, SelfPlay):
        return boards_of(source.env)
    if source.board is None:  # nothing has been handed over yet
        return []
    return [Board(unpack_diagram(packed), None) for packed in buffer.last_packed[:BOARDS]]


class LiveGames(Callback):
    """Writes the games at whatever event comes when it is time."""

    def __init__(
        self,
        run_directory: Path,
        boards: Callable[[], Sequence[Board]],
        *,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.path = run_directory / run_files.LIVE
        self._boards = boards
        self._clock = clock
        self._next = 0.0
        self._update = 0

    def on_training_start(self, event: TrainingStart) -> None:
        """Show where the games begin or go on."""
        self._update = event.progress.update
        self._write()

    def on_game_end(self, event: GameEnd) -> None:
        """A chance to show how the games go on while a rollout lasts."""
        self._write_if_due()

    def on_epoch_end(self, event: EpochEnd) -> None:
        """A chance to show where a rollout has left the games."""
        self._write_if_due()

    def on_step_end(self, event: StepEnd) -> None:
        """A new network plays on."""
        self._update = event.progress.update
        self._write_if_due()

    def on_training_end(self, event: TrainingEnd) -> None:
        """Nothing is played any more."""
        self._next = math.inf
        with suppress(OSError):
            self.path.unlink(missing_ok=True)

    def _write_if_due(self) -> None:
        if self._clock() >= self._next:
            self._write()

    def _write(self) -> None:
        begun = self._clock()
        # Set before: what fails now is not tried again at the next game.
        self._next = begun + INTERVAL
        games = [
            {"sfen": format_sfen(board.diagram)}
            | ({} if board.last_move is None else {"last_move": board.last_move.usi})
            for board in self._boards()
        ]
        fields = {"time": round(time.time(), 3), "update": self._update, "games": games}
        # Not durable: after a power cut nobody asks for it. Where it cannot be written, because the
        # disk is full or, on Windows, somebody reads it just now, the next one will do.
        with suppress(FileAccessError):
            write_atomically(self.path, json.dumps(fields).encode(), durable=False)
        done = self._clock()
        self._next = done + max(INTERVAL, (done - begun) / MOST_OF_THE_TIME)

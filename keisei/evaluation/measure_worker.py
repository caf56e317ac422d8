"""The process that measures a network in the background of training.

``python -m keisei.evaluation.measure_worker DIRECTORY`` reads ``request.json`` there and writes
``answer.json``. If anything fails there is no answer, but a traceback on stderr and a non-zero exit
code.

The process that started it holds the other end of its stdin. When that is closed, even by a kill,
the worker exits and removes the directory.
"""

import _thread
import os
import shutil
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Final

from pydantic import BaseModel, ConfigDict

from keisei.evaluation.calibration import Calibration
from keisei.evaluation.measure import Measurement
from keisei.evaluation.placing import Placement
from keisei.evaluation.score import Score
from keisei.shogi.notation.record import Ending, GameRecord, Result
from keisei.shogi.notation.sfen import format_sfen, parse_sfen

REQUEST: Final = "request.json"
ANSWER: Final = "answer.json"


class _Message(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Request(_Message):
    """The network to measure; the opponents are those of the checkpoint's settings."""

    checkpoint: Path
    games: int
    """Games against each opponent."""

    within: float
    """Points within which the rating is to be known; 0: no rating."""

    seed: int
    sample_games: int
    """Number of games of each match to send back."""


class GameMessage(_Message):
    """A game of a match, as JSON."""

    start: str
    """Start position, as SFEN."""

    moves: tuple[str, ...]
    """Moves in USI notation."""

    headers: dict[str, str]
    ending: Ending | None

    @classmethod
    def of(cls, record: GameRecord) -> "GameMessage":
        """Return the message for a record of moves and a result, without times or comments."""
        return cls(
            start=format_sfen(record.start),
            moves=tuple(move.usi for move in record.main_line),
            headers=record.headers,
            ending=None if record.result is None else record.result.ending,
        )

    @property
    def record(self) -> GameRecord:
        """The record, with every move checked by the rules."""
        return GameRecord.from_moves(
            self.moves,
            start=parse_sfen(self.start),
            headers=self.headers,
            result=None if self.ending is None else Result(self.ending),
        )


class Answer(_Message):
    """The measurement, as JSON."""

    scores: dict[str, Score]
    placement: Placement | None
    met: dict[str, Score]
    calibration: Calibration
    games: tuple[GameMessage, ...]

    @classmethod
    def of(cls, measurement: Measurement) -> "Answer":
        """Return the message for a measurement."""
        return cls(
            scores=measurement.scores,
            placement=measurement.placement,
            met=measurement.met,
            calibration=measurement.calibration,
            games=tuple(GameMessage.of(record) for record in measurement.records),
        )

    @property
    def measurement(self) -> Measurement:
        """The measurement that was sent."""
        records = tuple(game.record for game in self.games)
        return Measurement(self.scores, self.placement, self.met, self.calibration, records)


NICENESS: Final = 10
"""Increment of the process's niceness, on systems that have one."""

SHUTDOWN_TIMEOUT: Final = 3.0
"""Seconds to end engines after the parent process is gone."""


def main() -> None:
    """Answer the request in the directory given as the first argument."""
    directory = Path(sys.argv[1])
    if sys.platform != "win32":  # there the parent process sets the priority
        os.nice(NICENESS)
    # A run started in the background may ignore SIGINT, and child processes inherit that.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    is_orphan = threading.Event()
    try:
        threading.Thread(target=_end_with_parent, args=(directory, is_orphan), daemon=True).start()
        _answer(directory)
    except BaseException:  # an interrupted import can raise anything
        if not is_orphan.is_set():
            raise
        shutil.rmtree(directory, ignore_errors=True)
        sys.exit(1)


def _answer(directory: Path) -> None:
    # Imported late: it takes seconds, during which the priority is low and stdin is watched.
    from keisei.config_schema import DeviceConfig
    from keisei.evaluation.measure import measure
    from keisei.network.loading import read_network
    from keisei.system import read_bytes, write_atomically

    request = Request.model_validate_json(read_bytes(directory / REQUEST))
    stored = read_network(request.checkpoint)
    result = measure(
        stored.network(DeviceConfig(device="cpu", threads=1)),
        stored.config,
        games=request.games,
        within=request.within,
        seed=request.seed,
        sample_games=request.sample_games,
    )
    write_atomically(directory / ANSWER, Answer.of(result).model_dump_json().encode())


def _end_with_parent(directory: Path, is_orphan: threading.Event) -> None:
    """Wait until stdin is closed, then interrupt the main thread so that it closes its players."""
    # Not sys.stdin: a thread that reads it holds a lock that Python needs to exit.
    while os.read(0, 1):
        pass
    is_orphan.set()
    _thread.interrupt_main()
    time.sleep(SHUTDOWN_TIMEOUT)
    shutil.rmtree(directory, ignore_errors=True)
    os._exit(1)


if __name__ == "__main__":
    main()

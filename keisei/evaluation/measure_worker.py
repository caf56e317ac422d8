"""The process that measures a network while training goes on.

``python -m keisei.evaluation.measure_worker DIRECTORY`` reads ``request.json`` there and leaves
``answer.json``. If anything goes wrong there is no answer, but a traceback on stderr and an exit
code other than 0.

It lives no longer than the process that started it and holds the other end of its stdin: when that
closes, be it by a kill, it ends and removes the directory, which nobody needs any more.
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

from keisei.evaluation.measure import Measurement
from keisei.evaluation.score import Score
from keisei.shogi.notation.record import Ending, GameRecord, Result
from keisei.shogi.notation.sfen import format_sfen, parse_sfen

REQUEST: Final = "request.json"
ANSWER: Final = "answer.json"


class _Message(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class Request(_Message):
    """Which network to measure, and how. Whom it plays stands in the checkpoint's settings."""

    checkpoint: Path
    games: int
    """Against each opponent."""

    seed: int
    sample_games: int
    """Games of each match to be sent back."""


class GameMessage(_Message):
    """A game of a match."""

    start: str
    """SFEN."""

    moves: tuple[str, ...]
    """In USI notation."""

    headers: dict[str, str]
    ending: Ending | None

    @classmethod
    def of(cls, record: GameRecord) -> "GameMessage":
        """A record of moves and a result; times and comments it has none."""
        return cls(
            start=format_sfen(record.start),
            moves=tuple(move.usi for move in record.main_line),
            headers=record.headers,
            ending=None if record.result is None else record.result.ending,
        )

    @property
    def record(self) -> GameRecord:
        """The record, every move checked by the rules."""
        return GameRecord.from_moves(
            self.moves,
            start=parse_sfen(self.start),
            headers=self.headers,
            result=None if self.ending is None else Result(self.ending),
        )


class Answer(_Message):
    """What came out."""

    scores: dict[str, Score]
    games: tuple[GameMessage, ...]

    @classmethod
    def of(cls, measurement: Measurement) -> "Answer":
        """A measurement, ready to be sent."""
        return cls(
            scores=measurement.scores,
            games=tuple(GameMessage.of(record) for record in measurement.records),
        )

    @property
    def measurement(self) -> Measurement:
        """The measurement that was sent."""
        return Measurement(self.scores, tuple(game.record for game in self.games))


NICENESS: Final = 10
"""How far it steps back behind other processes, on systems that know niceness."""

GRACE_SECONDS: Final = 3.0
"""How long it may take to end its engines once nobody waits for its answer."""


def main() -> None:
    """Measure the network that the directory in the first argument asks for."""
    directory = Path(sys.argv[1])
    if sys.platform != "win32":  # there the priority is set by who starts the process
        os.nice(NICENESS)
    # Those who started a run in the background may have it ignore SIGINT, and so would we.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    is_orphan = threading.Event()
    try:
        threading.Thread(target=_end_with_parent, args=(directory, is_orphan), daemon=True).start()
        _answer(directory)
    except BaseException:  # an import that is interrupted may end by any error
        if not is_orphan.is_set():
            raise
        shutil.rmtree(directory, ignore_errors=True)
        sys.exit(1)


def _answer(directory: Path) -> None:
    # Imported this late: it takes seconds, in which the priority is low and stdin watched already.
    from keisei.config_schema import DeviceConfig
    from keisei.evaluation.measure import measure
    from keisei.network.loading import read_network
    from keisei.system import read_bytes, write_atomically

    request = Request.model_validate_json(read_bytes(directory / REQUEST))
    stored = read_network(request.checkpoint)
    result = measure(
        stored.network(DeviceConfig(device="cpu", torch_threads=1)),
        stored.config,
        games=request.games,
        seed=request.seed,
        sample_games=request.sample_games,
    )
    write_atomically(directory / ANSWER, Answer.of(result).model_dump_json().encode())


def _end_with_parent(directory: Path, is_orphan: threading.Event) -> None:
    """Wait until stdin is closed; then interrupt the main thread, so that it closes its players."""
    # Not by sys.stdin: a thread that waits there holds a lock which the end of Python needs.
    while os.read(0, 1):
        pass
    is_orphan.set()
    _thread.interrupt_main()
    time.sleep(GRACE_SECONDS)
    shutil.rmtree(directory, ignore_errors=True)
    os._exit(1)


if __name__ == "__main__":
    main()

"""A GUI in this process, which talks to the engine through queues."""

import io
import re
import time
from collections.abc import Callable, Iterator
from queue import Empty, Queue
from threading import Event, Thread
from typing import Self

import numpy as np

from keisei.network.loading import LoadedNetwork
from keisei.network.predictor import Prediction
from keisei.shogi.packed import Positions
from keisei.usi.engine import Engine
from keisei.usi.options import Settings
from keisei.usi.usi_io import UsiWriter
from tests.predictors import KnownPredictor

TIMEOUT = 120.0
"""Seconds after which an answer is considered missing; the machine may be busy."""

_SCORE = r"score (?:cp -?\d+|mate -?\d+)"
_MOVE = r"(?:[1-9][a-i][1-9][a-i]\+?|[PLNSGBR]\*[1-9][a-i])"
ANSWERS = re.compile(
    rf"id (?:name|author) \S.*|option name \S+ type (?:check|spin|combo) default \S.*|usiok|readyok"
    rf"|info depth \d+ seldepth \d+(?: multipv \d+)? {_SCORE} nodes \d+ nps \d+ hashfull \d+ "
    rf"time \d+(?: pv {_MOVE}(?: {_MOVE})*)?|info string .+"
    rf"|bestmove (?:resign|win|{_MOVE}(?: ponder {_MOVE})?)"
    rf"|checkmate (?:nomate|timeout|notimplemented|{_MOVE}(?: {_MOVE})*)"
)
"""All lines that the engine may send."""


class MaterialPredictor(KnownPredictor):
    """Gives all moves nearly equal probabilities and counts material. It can be blocked."""

    def __init__(self) -> None:
        super().__init__(lambda actions: (actions.astype(np.int64) * 7919 % 100) / 200.0)
        self.gate = Event()
        """While it is not set, `predict` blocks."""

        self.gate.set()
        self.is_called = Event()
        """Set by each call of `predict`."""

        self.on_call: Callable[[], None] = lambda: None

    def predict(self, positions: Positions) -> Prediction:
        self.is_called.set()
        assert self.gate.wait(TIMEOUT)
        self.on_call()
        return super().predict(positions)


class _LineQueue(io.TextIOBase):
    """A stream that puts whole lines into a queue; a torn line is an error."""

    def __init__(self, answers: "Queue[str]") -> None:
        self._answers = answers

    def write(self, text: str) -> int:
        assert text.endswith("\n")
        assert text.count("\n") == 1
        self._answers.put(text[:-1])
        return len(text)


class Gui:
    """Talks to an engine that runs in another thread."""

    def __init__(
        self, predictor: MaterialPredictor | None = None, settings: Settings | None = None
    ) -> None:
        self.predictor = predictor or MaterialPredictor()
        self.answers: Queue[str] = Queue()
        self._lines: Queue[str | None] = Queue()
        self._errors: list[BaseException] = []
        self.loads: list[int] = []
        self.engine = Engine(
            self.load, UsiWriter(_LineQueue(self.answers)), name="test", settings=settings
        )
        self._thread = Thread(target=self._run, daemon=True)
        self._thread.start()

    def load(self, threads: int) -> LoadedNetwork:
        self.loads.append(threads)
        return LoadedNetwork(self.predictor, "material", "material", 0.0, 1, 512)

    def _run(self) -> None:
        try:
            self.engine.run(self._given())
        except BaseException as error:  # noqa: BLE001 -- raised by `end`
            self._errors.append(error)

    def _given(self) -> Iterator[str]:
        while (line := self._lines.get()) is not None:
            yield line

    def send(self, *lines: str) -> None:
        for line in lines:
            self._lines.put(line)

    def next(self) -> str:
        """Return the next answer, which must be well-formed."""
        answer = self.answers.get(timeout=TIMEOUT)
        assert ANSWERS.fullmatch(answer), answer
        return answer

    def until(self, first_word: str) -> list[str]:
        """Return all answers up to the one with this first word."""
        lines = [self.next()]
        while lines[-1].split()[0] != first_word:
            lines.append(self.next())
        return lines

    def best_move(self, *lines: str) -> str:
        """Send lines, the last of which is a ``go``; return the best move."""
        self.send(*lines)
        return self.until("bestmove")[-1].split()[1]

    def is_silent(self) -> bool:
        """Whether nothing but ``info`` has been sent; ``isready`` marks the present."""
        self.send("isready")
        lines = self.until("readyok")[:-1]
        return all(line.startswith("info ") for line in lines)

    def quit(self) -> list[str]:
        """End the engine; return its unread answers."""
        self.send("quit")
        return self.end()

    def end(self) -> list[str]:
        """Close the input and wait for the engine's end; return its unread answers."""
        self._lines.put(None)
        self._thread.join(TIMEOUT)
        assert not self._thread.is_alive()
        if self._errors:
            raise self._errors[0]
        rest = []
        deadline = time.monotonic() + TIMEOUT
        while time.monotonic() < deadline:
            try:
                rest.append(self.answers.get_nowait())
            except Empty:
                break
        return rest

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.predictor.gate.set()
        if self._thread.is_alive():
            self.quit()

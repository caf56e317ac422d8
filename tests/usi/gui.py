"""The other end of the engine: a GUI whose lines and answers go through queues, in this process."""

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
from keisei.usi.usi_io import Output
from tests.predictors import KnownPredictor

PATIENCE = 120.0
"""Seconds after which an answer is taken for missing; the machine may be busy."""

_SCORE = r"score (?:cp -?\d+|mate -?\d+)"
_MOVE = r"(?:[1-9][a-i][1-9][a-i]\+?|[PLNSGBR]\*[1-9][a-i])"
ANSWERS = re.compile(
    rf"id (?:name|author) \S.*|option name \S+ type (?:check|spin|combo) default \S.*|usiok|readyok"
    rf"|info depth \d+ seldepth \d+(?: multipv \d+)? {_SCORE} nodes \d+ nps \d+ hashfull \d+ "
    rf"time \d+(?: pv {_MOVE}(?: {_MOVE})*)?|info string .+"
    rf"|bestmove (?:resign|win|{_MOVE}(?: ponder {_MOVE})?)"
    rf"|checkmate (?:nomate|timeout|notimplemented|{_MOVE}(?: {_MOVE})*)"
)
"""All that the engine may say."""


class MaterialPredictor(KnownPredictor):
    """Nearly equal probabilities for all moves, values by material. Its calls can be blocked."""

    def __init__(self) -> None:
        super().__init__(lambda actions: (actions.astype(np.int64) * 7919 % 100) / 200.0)
        self.gate = Event()
        """While it is not set, calls block."""

        self.gate.set()
        self.is_called = Event()
        """Set by each call."""

        self.when_called: Callable[[], None] = lambda: None

    def predict(self, positions: Positions) -> Prediction:
        self.is_called.set()
        assert self.gate.wait(PATIENCE)
        self.when_called()
        return super().predict(positions)


class _Told(io.TextIOBase):
    """A stream that hands whole lines to a queue, and notices when lines are torn."""

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
        self.engine = Engine(self.load, Output(_Told(self.answers)), name="test", settings=settings)
        self._thread = Thread(target=self._run, daemon=True)
        self._thread.start()

    def load(self, threads: int) -> LoadedNetwork:
        self.loads.append(threads)
        return LoadedNetwork(self.predictor, "material", "material", 0.0, 1, 512)

    def _run(self) -> None:
        try:
            self.engine.run(self._given())
        except BaseException as error:  # noqa: BLE001 -- for the test to look at
            self._errors.append(error)

    def _given(self) -> Iterator[str]:
        while (line := self._lines.get()) is not None:
            yield line

    def send(self, *lines: str) -> None:
        for line in lines:
            self._lines.put(line)

    def next(self) -> str:
        """The next answer, which must be well-formed."""
        answer = self.answers.get(timeout=PATIENCE)
        assert ANSWERS.fullmatch(answer), answer
        return answer

    def until(self, first_word: str) -> list[str]:
        """All answers up to the one that begins so."""
        lines = [self.next()]
        while lines[-1].split()[0] != first_word:
            lines.append(self.next())
        return lines

    def ask(self, *lines: str) -> str:
        """Send lines, the last of which is a ``go``; the best move."""
        self.send(*lines)
        return self.until("bestmove")[-1].split()[1]

    def is_silent(self) -> bool:
        """Whether nothing but thoughts was said up to now; an ``isready`` shows where now is."""
        self.send("isready")
        said = self.until("readyok")[:-1]
        return all(line.startswith("info ") for line in said)

    def quit(self) -> list[str]:
        """End the engine; what it said that nobody read."""
        self.send("quit")
        return self.end()

    def end(self) -> list[str]:
        """No more lines; wait for the engine's end."""
        self._lines.put(None)
        self._thread.join(PATIENCE)
        assert not self._thread.is_alive()
        if self._errors:
            raise self._errors[0]
        rest = []
        deadline = time.monotonic() + PATIENCE
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

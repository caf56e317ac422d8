"""What the engine says: whole lines, one after the other, from any thread."""

import logging
import math
import os
from collections.abc import Callable, Iterator
from threading import Lock
from typing import Final, Protocol

from keisei.search.mcts import PrincipalVariation

logger = logging.getLogger(__name__)

LONGEST_LINE: Final = 1 << 20
"""Bytes of a line; what is longer is left out. A game of 20,000 plies has 120,000."""

_PIECE: Final = 1 << 16


def lines_from(descriptor: int) -> Iterator[str]:
    """The lines that arrive at a file descriptor, each as soon as it is complete.

    `sys.stdin` is no help: a thread that waits for it keeps Python from ending.
    """
    rest, is_too_long = b"", False
    while piece := os.read(descriptor, _PIECE):
        *lines, rest = (rest + piece).split(b"\n")
        for line in lines:
            if not is_too_long and len(line) <= LONGEST_LINE:
                yield line.decode("utf-8", "replace")
            is_too_long = False
        if len(rest) > LONGEST_LINE:
            rest, is_too_long = b"", True
    if rest and not is_too_long:
        yield rest.decode("utf-8", "replace")


CENTIPAWN_SCALE: Final = 600.0
"""Shogi engines are used to a win rate of 1 / (1 + exp(-cp / 600))."""

LARGEST_CENTIPAWNS: Final = 9_999
LONGEST_QUOTE: Final = 200


class Stream(Protocol):
    """What lines are written to: standard output, or something like it."""

    def write(self, text: str, /) -> object:
        """Take up a text."""
        ...

    def flush(self) -> object:
        """Hand it over."""
        ...


class Output:
    """The way to the GUI."""

    def __init__(self, stream: Stream, when_closed: Callable[[], None] = lambda: None) -> None:
        """Write to `stream`; call `when_closed` if nobody reads it any more."""
        self._stream = stream
        self._lock = Lock()
        self.when_closed = when_closed

    def say(self, line: str) -> None:
        """Write a line and hand it over at once."""
        # One line stays one line, whatever is quoted in it; and some GUIs read nothing but ASCII.
        line = "".join(sign if sign.isprintable() else " " for sign in line)
        line = line.encode("ascii", "backslashreplace").decode("ascii")
        logger.debug("> %s", line)
        try:
            with self._lock:
                self._stream.write(f"{line}\n")
                self._stream.flush()
        except (OSError, ValueError) as error:  # a closed pipe; a closed stream
            logger.info("nobody listens any more: %s", error)
            self.when_closed()

    def explain(self, message: str) -> None:
        """Say something to people."""
        self.say(f"info string {message}")


def quoted(text: str) -> str:
    """What somebody else wrote, shortened."""
    return repr(text if len(text) <= LONGEST_QUOTE else f"{text[:LONGEST_QUOTE]}...")


def centipawns(value: float) -> int:
    """A value from -1 to 1 as hundredths of a pawn.

    >>> centipawns(0.0), centipawns(0.5), centipawns(-1.0)
    (0, 659, -9999)
    """
    if abs(value) >= 1.0:
        return int(math.copysign(LARGEST_CENTIPAWNS, value))
    score = CENTIPAWN_SCALE * math.log((1.0 + value) / (1.0 - value))
    return round(max(-LARGEST_CENTIPAWNS, min(LARGEST_CENTIPAWNS, score)))


def score_of(line: PrincipalVariation) -> str:
    """``cp`` or ``mate``, and how much.

    >>> score_of(PrincipalVariation((), 1.0, 10, 3))
    'mate 3'
    """
    return f"cp {centipawns(line.value)}" if line.mate is None else f"mate {line.mate}"

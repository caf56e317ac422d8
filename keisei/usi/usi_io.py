"""Lines from and to the GUI, and the USI form of scores."""

import logging
import os
import re
from collections.abc import Callable, Iterator
from threading import Lock
from typing import Final, Protocol

from keisei.formats import centipawns
from keisei.search.mcts import PrincipalVariation

logger = logging.getLogger(__name__)

MAX_LINE_BYTES: Final = 1 << 20
"""Longer lines are refused. A game of 20,000 plies has 120,000 bytes."""

_CHUNK_BYTES: Final = 1 << 16
_LINE_ENDS: Final = re.compile(rb"[\r\n]")


class TooLongLine(str):
    """The beginning of a line of more than `MAX_LINE_BYTES`, whose rest was dropped."""

    __slots__ = ()


def read_lines(descriptor: int) -> Iterator[str]:
    """Yield the lines that arrive at a file descriptor, each as soon as it is complete.

    A line ends with LF, CR or both; after CR LF there is an empty line. `sys.stdin` cannot be used:
    a thread that waits for it keeps Python from exiting.
    """
    rest, is_too_long = b"", False
    while chunk := os.read(descriptor, _CHUNK_BYTES):
        *lines, rest = _LINE_ENDS.split(rest + chunk)
        for line in lines:
            if not is_too_long:
                yield _text(line)
            is_too_long = False
        if len(rest) > MAX_LINE_BYTES:
            if not is_too_long:
                yield _text(rest)
            rest, is_too_long = b"", True
    if rest and not is_too_long:
        yield _text(rest)


def _text(line: bytes) -> str:
    if len(line) <= MAX_LINE_BYTES:
        return line.decode("utf-8", "replace")
    return TooLongLine(line[:MAX_QUOTE_LENGTH].decode("utf-8", "replace"))


MAX_QUOTE_LENGTH: Final = 200


class Stream(Protocol):
    """A text stream such as standard output."""

    def write(self, text: str, /) -> object:
        """Write a text."""
        ...

    def flush(self) -> object:
        """Flush the buffer."""
        ...


class UsiWriter:
    """Writes whole lines to the GUI, from any thread."""

    def __init__(self, stream: Stream, when_closed: Callable[[], None] = lambda: None) -> None:
        """Write to `stream`; call `when_closed` if it turns out to be closed."""
        self._stream = stream
        self._lock = Lock()
        self.when_closed = when_closed

    def send(self, line: str) -> None:
        """Write a line and flush it."""
        # Quoted text must not break the line, and some GUIs read nothing but ASCII.
        line = "".join(char if char.isprintable() else " " for char in line)
        line = line.encode("ascii", "backslashreplace").decode("ascii")
        logger.debug("> %s", line)
        try:
            with self._lock:
                self._stream.write(f"{line}\n")
                self._stream.flush()
        except (OSError, ValueError) as error:  # a closed pipe; a closed stream
            logger.info("the GUI has closed its end: %s", error)
            self.when_closed()

    def send_info(self, message: str) -> None:
        """Send a message to the user."""
        self.send(f"info string {message}")


def quoted(text: str) -> str:
    """Return foreign text in quotes, shortened."""
    return repr(text if len(text) <= MAX_QUOTE_LENGTH else f"{text[:MAX_QUOTE_LENGTH]}...")


def score_of(line: PrincipalVariation) -> str:
    """Return the score of a line as USI writes it: ``cp`` or ``mate``, and a number.

    >>> score_of(PrincipalVariation((), value=1.0, visits=10, prior=0.5, mate=3))
    'mate 3'
    """
    return f"cp {centipawns(line.value)}" if line.mate is None else f"mate {line.mate}"

"""One ``go``, shared by who thinks about it and who hears what the GUI says meanwhile."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from threading import Condition
from typing import Final

from keisei.shogi.types import Color
from keisei.usi.options import Settings

MOVES_AHEAD: Final = 40
"""Into so many equal parts the main time is split, at the beginning of a game; later into fewer."""

FEWEST_MOVES_AHEAD: Final = 20
SPENT_INCREMENT: Final = 0.8
WITHOUT_LIMITS: Final = 1.0
"""Seconds that a bare ``go`` thinks."""

MATE_SECONDS: Final = 10.0
"""Seconds that a bare ``go mate`` thinks."""

_NUMBERS: Final = {
    "btime": "black_time",
    "wtime": "white_time",
    "binc": "black_increment",
    "winc": "white_increment",
    "byoyomi": "byoyomi",
    "movetime": "move_time",
    "nodes": "nodes",
    "depth": "depth",
}
_LARGEST: Final = 10**12
_KEYWORDS: Final = frozenset((*_NUMBERS, "infinite", "ponder", "mate", "searchmoves"))


@dataclass(frozen=True, kw_only=True)
class Limits:
    """What a search may use. Times are milliseconds, as the GUI gives them."""

    black_time: int | None = None
    white_time: int | None = None
    black_increment: int | None = None
    white_increment: int | None = None
    byoyomi: int | None = None
    move_time: int | None = None
    nodes: int | None = None
    depth: int | None = None
    infinite: bool = False
    """No answer before ``stop``."""

    ponder: bool = False
    """No answer before ``stop`` or ``ponderhit``."""

    mate: bool = False
    """Look for a mate and nothing else, within `move_time`."""

    moves: tuple[str, ...] = ()
    """The only moves to consider; empty: all."""

    @property
    def has_clock(self) -> bool:
        """Whether there is a clock that runs out."""
        clocks = (self.black_time, self.white_time, self.byoyomi, self.move_time)
        return any(value is not None for value in (*clocks, *self._increments))

    @property
    def _increments(self) -> tuple[int | None, int | None]:
        return self.black_increment, self.white_increment

    def seconds(self, turn: Color, *, ply: int, delay: float) -> float | None:
        """How long the side to move may think; None: for ever.

        Args:
            turn: whose clock runs.
            ply: how far the game is.
            delay: seconds that get lost between engine and clock; at most half of what there is.
        """
        if self.infinite:
            return None
        if self.move_time is not None:
            return _without_delay(self.move_time / 1000, delay)
        if not self.has_clock:
            if self.nodes is not None or self.depth is not None:
                return None
            return MATE_SECONDS if self.mate else WITHOUT_LIMITS
        is_black = turn is Color.BLACK
        left = ((self.black_time if is_black else self.white_time) or 0) / 1000
        increment = (self._increments[0 if is_black else 1] or 0) / 1000
        byoyomi = (self.byoyomi or 0) / 1000
        there_is = left + byoyomi
        if there_is <= 2 * delay:  # the increment may be all there is
            there_is += increment
        parts = max(FEWEST_MOVES_AHEAD, MOVES_AHEAD - ply / 4)
        wanted = left / parts + byoyomi + SPENT_INCREMENT * increment
        return min(wanted, _without_delay(there_is, delay))


def _without_delay(seconds: float, delay: float) -> float:
    return seconds - min(delay, seconds / 2)


def parse_go(words: Sequence[str]) -> tuple[Limits, list[str]]:
    """What the words after ``go`` say, and those that were not understood."""
    found: dict[str, int | bool | tuple[str, ...]] = {}
    unknown: list[str] = []
    place = 0
    while place < len(words):
        word = words[place]
        place += 1
        following = words[place] if place < len(words) else ""
        if word in ("infinite", "ponder"):
            found[word] = True
        elif word == "mate":
            found["mate"] = True
            if following == "infinite" or _number(following) is not None:
                place += 1
                if following == "infinite":
                    found["infinite"] = True
                else:
                    found["move_time"] = _number(following) or 0
        elif word == "searchmoves":
            moves = []
            while place < len(words) and words[place] not in _KEYWORDS:
                moves.append(words[place])
                place += 1
            found["moves"] = tuple(moves)
        elif word in _NUMBERS and (number := _number(following)) is not None:
            found[_NUMBERS[word]] = number
            place += 1
        else:
            unknown.append(word)
    return Limits(**found), unknown  # type: ignore[arg-type]  # each field gets its own type


def _number(text: str) -> int | None:
    """A whole number; below 0, as GUIs write an overdrawn clock, it is 0."""
    digits = text.removeprefix("-")
    if not (digits.isascii() and digits.isdecimal() and len(digits) <= 18):
        return None
    return max(0, min(int(text), _LARGEST))


class Job:
    """A search that was asked for. It has exactly one answer."""

    def __init__(self, limits: Limits, settings: Settings) -> None:
        self.settings = settings
        """As they were when it was asked for."""

        self._changed = Condition()
        self._limits = limits
        self._is_pondering = limits.ponder
        self._is_stopped = False
        self._is_abandoned = False
        self._clock_start = time.monotonic()
        self.arrival = self._clock_start
        """When it was asked for; what it waited for its turn is on its clock."""

    @property
    def limits(self) -> Limits:
        """What it may use."""
        return self._limits

    @property
    def is_stopped(self) -> bool:
        """Whether the answer is wanted now."""
        return self._is_stopped

    @property
    def is_abandoned(self) -> bool:
        """Whether nobody waits for the answer any more."""
        return self._is_abandoned

    @property
    def may_answer(self) -> bool:
        """Whether the GUI expects an answer by now, should it be known."""
        return self._is_stopped or not (self._is_pondering or self._limits.infinite)

    @property
    def clock_start(self) -> float | None:
        """Since when the clock runs, by `time.monotonic`; None while it does not."""
        return None if self._is_pondering else self._clock_start

    def begin(self, earliest: float) -> None:
        """It is its turn, after another one was answered at `earliest`: that was not its time."""
        with self._changed:
            self._clock_start = max(self._clock_start, earliest)
            self.arrival = max(self.arrival, earliest)

    def stop(self) -> None:
        """The answer is wanted now."""
        with self._changed:
            self._is_stopped = True
            self._changed.notify_all()

    def abandon(self) -> None:
        """The answer is not wanted."""
        with self._changed:
            self._is_stopped = self._is_abandoned = True
            self._changed.notify_all()

    def ponder_hit(self, limits: Limits | None = None) -> None:
        """The expected move was played: from now on the clock runs; some GUIs say what is on it."""
        with self._changed:
            if not self._is_pondering:
                return
            if limits is not None:
                self._limits = limits
            self._clock_start = time.monotonic()
            self._is_pondering = False
            self._changed.notify_all()

    def wait_until_it_may_answer(self) -> None:
        """Keep an answer back that is known before the GUI expects one."""
        with self._changed:
            self._changed.wait_for(lambda: self.may_answer)

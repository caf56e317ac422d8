"""The ``go`` command: what it allows, and how long that is.

>>> limits, _ = parse_go("btime 60000 wtime 50000 byoyomi 1000".split())
>>> limits.seconds(Color.BLACK, ply=0, delay=0.1)
2.5
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

from keisei.shogi.pieces import Color

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

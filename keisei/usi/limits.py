"""Limits of a search, from the arguments of ``go``, and `Job`: a ``go`` until its answer."""

import time
from collections.abc import Sequence
from dataclasses import dataclass
from threading import Condition
from typing import Final, NamedTuple

from keisei.shogi.types import Color
from keisei.usi.options import Settings, whole_number

MOVES_AHEAD: Final = 40
"""Equal parts into which the main time is split at the start of a game; fewer later on."""

MIN_MOVES_AHEAD: Final = 20
LONGEST: Final = 3.0
"""How many such parts a move may take whose best moves are close."""

SPENT_INCREMENT: Final = 0.8
"""Share of the increment that is spent on each move."""

FIRST_COST: Final = 0.02
"""Seconds that an answer is assumed to cost before the first was measured."""

MAX_COST: Final = 2.0
"""Longer ones are outliers, such as a suspended computer."""

COST_WEIGHT: Final = 0.2
"""Weight of the last answer in the mean cost."""

MOVES_TO_COME: Final = 100
"""Own moves for which the cost is kept in reserve at the start of a game; half as many later."""

MIN_MOVES_TO_COME: Final = 50

DEFAULT_SECONDS: Final = 1.0
"""Time of a ``go`` without limits."""

DEFAULT_MATE_SECONDS: Final = 10.0
"""Time of a ``go mate`` without a limit."""

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
_MAX_NUMBER: Final = 10**12
_KEYWORDS: Final = frozenset((*_NUMBERS, "infinite", "ponder", "mate", "searchmoves"))


class AnswerCost:
    """Seconds that an answer takes beside its search: waiting, preparing, sending.

    On a busy machine that is most of the time of a quick move. What GUIs take off the clock beyond
    what the engine saw itself counts too.
    """

    def __init__(self) -> None:
        self._mean = FIRST_COST
        self._peak = FIRST_COST
        self._last: tuple[Color, int, float, float, float] | None = None

    def asked(self, turn: Color, ply: int, left: float, increment: float) -> None:
        """Learn from the last answer, as far as the time on the clock tells what it cost."""
        if self._last is None:
            return
        last_turn, last_ply, last_left, elapsed, cost = self._last
        self._last = None
        if (turn, ply) == (last_turn, last_ply + 2) and last_left > 0.0:
            cost += min(max(last_left + increment - left - elapsed, 0.0), MAX_COST)
        self._mean += COST_WEIGHT * (cost - self._mean)
        self._peak = max(cost, (1.0 - COST_WEIGHT) * self._peak)

    def answered(self, turn: Color, ply: int, left: float, elapsed: float, cost: float) -> None:
        """Remember an answer that took `elapsed` seconds, `cost` of them beside the search."""
        self._last = turn, ply, left, elapsed, min(max(cost, 0.0), MAX_COST)

    def reserve(self, ply: int) -> float:
        """Return the seconds that the answers to come cost if none of them searches."""
        return max(MIN_MOVES_TO_COME, MOVES_TO_COME - ply / 2) * self._mean + self._peak


class TimePlan(NamedTuple):
    """Time for a move, in seconds."""

    usual: float
    """After this, the search ends unless the best moves are close."""

    most: float
    """After this, it ends anyway."""

    is_saved: bool
    """Whether time that is not used is kept for later moves."""


@dataclass(frozen=True, kw_only=True)
class SearchLimits:
    """Limits of a search. Times are in milliseconds, as in USI."""

    black_time: int | None = None
    white_time: int | None = None
    black_increment: int | None = None
    white_increment: int | None = None
    byoyomi: int | None = None
    move_time: int | None = None
    nodes: int | None = None
    depth: int | None = None
    infinite: bool = False
    """Whether the answer has to wait for ``stop``."""

    ponder: bool = False
    """Whether the answer has to wait for ``stop`` or ``ponderhit``."""

    mate: bool = False
    """Whether to solve for mate only, within `move_time`."""

    moves: tuple[str, ...] = ()
    """The only root moves to consider (``searchmoves``); empty: all."""

    @property
    def has_clock(self) -> bool:
        """Whether any time control is given."""
        clocks = (self.black_time, self.white_time, self.byoyomi, self.move_time)
        return any(value is not None for value in (*clocks, *self._increments))

    @property
    def _increments(self) -> tuple[int | None, int | None]:
        return self.black_increment, self.white_increment

    def clock(self, turn: Color) -> tuple[float, float]:
        """Return the main time that a side has left, and its increment, in seconds."""
        is_black = turn is Color.BLACK
        left = ((self.black_time if is_black else self.white_time) or 0) / 1000
        return left, (self._increments[0 if is_black else 1] or 0) / 1000

    def time_plan(
        self, turn: Color, *, ply: int, delay: float, reserve: float = 0.0
    ) -> TimePlan | None:
        """Return the time that the side to move may use; None: no limit.

        Args:
            turn: the side to move.
            ply: ply of the game.
            delay: seconds lost between engine and clock; at most half of the time is reserved.
            reserve: seconds that the answers to come cost; only kept where no time is added.
        """
        if self.infinite:
            return None
        if self.move_time is not None:
            return _all_of(_without_delay(self.move_time / 1000, delay))
        if not self.has_clock:
            if self.nodes is not None or self.depth is not None:
                return None
            return _all_of(DEFAULT_MATE_SECONDS if self.mate else DEFAULT_SECONDS)
        left, increment = self.clock(turn)
        byoyomi = (self.byoyomi or 0) / 1000
        available = left + byoyomi
        if available <= 2 * delay:  # the increment may be all that is left
            available += increment
        renewed = byoyomi + SPENT_INCREMENT * increment
        spendable = left if renewed else max(left - reserve, 0.0)
        part = spendable / max(MIN_MOVES_AHEAD, MOVES_AHEAD - ply / 4)
        end = _without_delay(available, delay)
        return TimePlan(
            min(part + renewed, end), min(LONGEST * part + renewed, end), is_saved=left > 0.0
        )


def _all_of(seconds: float) -> TimePlan:
    return TimePlan(seconds, seconds, is_saved=False)


def _without_delay(seconds: float, delay: float) -> float:
    return seconds - min(delay, seconds / 2)


def parse_go(arguments: Sequence[str]) -> tuple[SearchLimits, list[str]]:
    """Parse the arguments of ``go``; return the limits and the unknown arguments."""
    found: dict[str, int | bool | tuple[str, ...]] = {}
    unknown: list[str] = []
    place = 0
    while place < len(arguments):
        argument = arguments[place]
        place += 1
        following = arguments[place] if place < len(arguments) else ""
        if argument in ("infinite", "ponder"):
            found[argument] = True
        elif argument == "mate":
            found["mate"] = True
            if following == "infinite" or _number(following) is not None:
                place += 1
                if following == "infinite":
                    found["infinite"] = True
                else:
                    found["move_time"] = _number(following) or 0
        elif argument == "searchmoves":
            moves = []
            while place < len(arguments) and arguments[place] not in _KEYWORDS:
                moves.append(arguments[place])
                place += 1
            found["moves"] = tuple(moves)
        elif argument in _NUMBERS and (number := _number(following)) is not None:
            found[_NUMBERS[argument]] = number
            place += 1
        else:
            unknown.append(argument)
    return SearchLimits(**found), unknown  # type: ignore[arg-type]  # each field gets its own type


def _number(text: str) -> int | None:
    """Parse a whole number; negative ones, which GUIs send for an overdrawn clock, become 0."""
    number = whole_number(text)
    return None if number is None else max(0, min(number, _MAX_NUMBER))


class Job:
    """A ``go`` command, from its arrival to its one answer.

    Shared by the search thread, which works on it, and the main thread, which stops it.
    """

    def __init__(self, limits: SearchLimits, settings: Settings) -> None:
        self.settings = settings.at_level()
        """The options at the time of the command, at the level that one of them sets."""

        self._changed = Condition()
        self._limits = limits
        self._is_pondering = limits.ponder
        self._is_stopped = False
        self._is_abandoned = False
        self._clock_start = time.monotonic()
        self.arrival = self._clock_start
        """Time of the command, by `time.monotonic`; time in the queue counts as thinking time."""

    @property
    def limits(self) -> SearchLimits:
        """The limits of the search."""
        return self._limits

    @property
    def is_stopped(self) -> bool:
        """Whether the answer is due now."""
        return self._is_stopped

    @property
    def is_abandoned(self) -> bool:
        """Whether the answer is no longer needed."""
        return self._is_abandoned

    @property
    def may_answer(self) -> bool:
        """Whether the protocol allows an answer now."""
        return self._is_stopped or not (self._is_pondering or self._limits.infinite)

    @property
    def clock_start(self) -> float | None:
        """Start of the clock, by `time.monotonic`; None while pondering."""
        return None if self._is_pondering else self._clock_start

    def begin(self, earliest: float) -> None:
        """Start the clock no earlier than `earliest`, when the previous job was answered."""
        with self._changed:
            self._clock_start = max(self._clock_start, earliest)
            self.arrival = max(self.arrival, earliest)

    def stop(self) -> None:
        """Request the answer now."""
        with self._changed:
            self._is_stopped = True
            self._changed.notify_all()

    def abandon(self) -> None:
        """Stop the search without an answer."""
        with self._changed:
            self._is_stopped = self._is_abandoned = True
            self._changed.notify_all()

    def ponder_hit(self, limits: SearchLimits | None = None) -> None:
        """Start the clock after the expected move was played; some GUIs send new limits with it."""
        with self._changed:
            if not self._is_pondering:
                return
            if limits is not None:
                self._limits = limits
            self._clock_start = time.monotonic()
            self._is_pondering = False
            self._changed.notify_all()

    def wait_until_it_may_answer(self) -> None:
        """Block until the protocol allows an answer."""
        with self._changed:
            self._changed.wait_for(lambda: self.may_answer)

"""Shogi clocks: time for the game, then byoyomi for each move; or an increment.

>>> left = time_left(TimeLimit(main=60, byoyomi=10), [50.0, 15.0])
>>> left.main, left.byoyomi, left.is_up
(0.0, 10.0, False)
"""

from collections.abc import Iterable
from typing import NamedTuple

from keisei.shogi.notation.headers import TimeLimit


class TimeLeft(NamedTuple):
    """What a player has left, in seconds."""

    main: float
    byoyomi: float
    """For this move, when `main` is used up."""

    is_up: bool
    """Whether the player has lost on time."""

    def __str__(self) -> str:
        seconds = self.main if self.main > 0 else self.byoyomi
        whole = int(seconds) + (seconds > int(seconds))  # 0 is shown when it is over, not before
        return f"{whole // 60}:{whole % 60:02}"


def time_left(limit: TimeLimit, used: Iterable[float], thinking: float = 0.0) -> TimeLeft:
    """What is left after moves that took the `used` seconds, and `thinking` on the next one."""
    main = float(limit.main)
    for seconds in used:
        main = max(0.0, main - seconds) + limit.increment
    byoyomi = limit.byoyomi - max(0.0, thinking - main)
    return TimeLeft(max(0.0, main - thinking), max(0.0, min(byoyomi, limit.byoyomi)), byoyomi < 0)

"""What is known about a game besides its moves: names, times, limits.

A record keeps its headers as text under the keys below, so that nothing is lost in conversion;
keys that no format knows are kept as they were written. The typed views of `GameRecord` read
that text through the functions of this module.
"""

import re
from collections.abc import Iterable
from datetime import date, datetime
from typing import Final, NamedTuple

BLACK: Final = "black"
WHITE: Final = "white"
EVENT: Final = "event"
SITE: Final = "site"
OPENING: Final = "opening"
START_TIME: Final = "start_time"
END_TIME: Final = "end_time"
TIME: Final = "time"
BLACK_TIME: Final = "time+"
WHITE_TIME: Final = "time-"
MAX_MOVES: Final = "max_moves"
JISHOGI: Final = "jishogi"
NOTE: Final = "note"

STANDARD_KEYS: Final = (
    BLACK,
    WHITE,
    EVENT,
    SITE,
    START_TIME,
    END_TIME,
    OPENING,
    TIME,
    BLACK_TIME,
    WHITE_TIME,
    MAX_MOVES,
    JISHOGI,
    NOTE,
)
"""The keys that every format knows by its own name, in the order in which they are written."""


def in_order(keys: Iterable[str]) -> list[str]:
    """The keys as they are written: the standard ones in their order, then the others."""
    order = {key: index for index, key in enumerate(STANDARD_KEYS)}
    return sorted(keys, key=lambda key: order.get(key, len(order)))


_MOMENT: Final = re.compile(
    r"([0-9]{4})[/\-年]([0-9]{1,2})[/\-月]([0-9]{1,2})日?"
    r"(?:\s*[(（].[)）])?"  # the day of the week
    r"(?:[\sT]+([0-9]{1,2})[:時]([0-9]{1,2})(?:[:分]([0-9]{1,2})秒?)?分?)?\s*"
)


def parse_moment(text: str) -> date | None:
    """The `date`, or `datetime` where a time of day is given; None if it is neither."""
    match = _MOMENT.fullmatch(text)
    if match is None:
        return None
    year, month, day, hour, minute, second = (int(part or 0) for part in match.groups())
    try:
        if match[4] is None:
            return date(year, month, day)
        return datetime(year, month, day, hour, minute, second)
    except ValueError:  # 31 February, 25 o'clock
        return None


def format_moment(moment: date) -> str:
    """``2026/02/28``, or ``2026/02/28 09:30:00`` for a `datetime`."""
    time = f" {moment:%H:%M:%S}" if isinstance(moment, datetime) else ""
    return f"{moment.year:04}/{moment.month:02}/{moment.day:02}{time}"


class TimeLimit(NamedTuple):
    """The time a player has, in seconds.

    >>> str(TimeLimit(main=600, byoyomi=30))
    '600+30+0'
    """

    main: int
    """For the whole game."""

    byoyomi: int = 0
    """For each move once the main time is used up."""

    increment: int = 0
    """Added after each move (Fischer clock)."""

    def __str__(self) -> str:
        return f"{self.main}+{self.byoyomi}+{self.increment}"

    @classmethod
    def parse(cls, text: str) -> "TimeLimit | None":
        """Read ``600+30+0``, as CSA 3.0 writes it; None if the text is something else."""
        match = _TIME_LIMIT.fullmatch(text)
        return None if match is None else cls(int(match[1]), int(match[2]), int(match[3]))


_TIME_LIMIT: Final = re.compile(r"([0-9]{1,7})\+([0-9]{1,7})\+([0-9]{1,7})")

"""Headers of game records: players, event, dates, time limits.

A record keeps its headers as text under the keys below, so that nothing is lost in conversion;
other keys are kept as the file spells them. The typed properties of `GameRecord` parse that text
with the functions of this module.
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
"""The keys that every format has a name for, in the order in which they are written."""


def in_order(keys: Iterable[str]) -> list[str]:
    """Sort keys for writing: the standard ones in their order, then the others."""
    order = {key: index for index, key in enumerate(STANDARD_KEYS)}
    return sorted(keys, key=lambda key: order.get(key, len(order)))


_MOMENT: Final = re.compile(
    r"([0-9]{4})[/\-年]([0-9]{1,2})[/\-月]([0-9]{1,2})日?"
    r"(?:\s*[(（].[)）])?"  # the day of the week
    r"(?:[\sT]+([0-9]{1,2})[:時]([0-9]{1,2})(?:[:分]([0-9]{1,2})秒?)?分?)?\s*"
)


def parse_moment(text: str) -> date | None:
    """Parse a `date`, or a `datetime` if a time of day is given; None if it is neither."""
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
    """Format a `date` as ``2026/02/28``, a `datetime` as ``2026/02/28 09:30:00``."""
    time = f" {moment:%H:%M:%S}" if isinstance(moment, datetime) else ""
    return f"{moment.year:04}/{moment.month:02}/{moment.day:02}{time}"


class TimeLimit(NamedTuple):
    """The time limit of a player, in seconds.

    >>> str(TimeLimit(main=600, byoyomi=30))
    '600+30+0'
    """

    main: int
    """Time for the whole game."""

    byoyomi: int = 0
    """Time for each move once the main time is used up."""

    increment: int = 0
    """Time added after each move (Fischer clock)."""

    def __str__(self) -> str:
        return f"{self.main}+{self.byoyomi}+{self.increment}"

    @classmethod
    def parse(cls, text: str) -> "TimeLimit | None":
        """Parse ``600+30+0``, as CSA 3.0 writes it; None if the text is something else."""
        match = _TIME_LIMIT.fullmatch(text)
        return None if match is None else cls(int(match[1]), int(match[2]), int(match[3]))


_TIME_LIMIT: Final = re.compile(r"([0-9]{1,7})\+([0-9]{1,7})\+([0-9]{1,7})")

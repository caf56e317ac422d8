"""What a game record loses when it is written in a format that cannot hold all of it."""

from collections import Counter
from collections.abc import Collection, Iterable
from enum import Enum
from typing import NamedTuple

from keisei.shogi.notation.record import Ending, GameRecord, RecordedMove, Result


class Detail(Enum):
    """What some format has no place for; singular and plural."""

    VARIATION = ("variation", "variations")
    BOOKMARK = ("bookmark", "bookmarks")
    TIME = ("time", "times")
    FRACTION = ("fraction of a second", "fractions of a second")
    MOVE_NUMBER = ("move number of the start", "move numbers of the start")
    DEFAULT = ("result by default", "results by default")


class Loss(NamedTuple):
    """How often a detail is left out.

    >>> str(Loss(Detail.VARIATION, 2))
    '2 variations'
    """

    detail: Detail
    number: int

    def __str__(self) -> str:
        singular, plural = self.detail.value
        return f"{self.number} {singular if self.number == 1 else plural}"


def losses(records: Iterable[GameRecord], lacking: Collection[Detail]) -> list[Loss]:
    """What these games lose in a format that is lacking some details."""
    totals: Counter[Detail] = Counter()
    for record in records:
        totals += _details(record, with_variations=Detail.VARIATION not in lacking)
    return [
        Loss(detail, totals[detail]) for detail in Detail if detail in lacking and totals[detail]
    ]


def _details(record: GameRecord, *, with_variations: bool) -> Counter[Detail]:
    """What there is in a record; a variation that is lost as a whole counts as nothing more."""
    moves, results = list(record.moves), [record.result]
    for variation in record.variations if with_variations else ():
        moves += variation.moves
        results.append(variation.result)
    ends = [result for result in results if result is not None]
    timed: list[RecordedMove | Result] = [*moves, *ends]
    times = [one.seconds for one in timed if one.seconds is not None]
    return Counter(
        {
            Detail.VARIATION: len(record.variations),
            Detail.BOOKMARK: sum(bool(recorded.bookmark) for recorded in moves),
            Detail.TIME: len(times),
            Detail.FRACTION: sum(seconds != int(seconds) for seconds in times),
            Detail.MOVE_NUMBER: int(record.start.move_number > 1),
            Detail.DEFAULT: sum(
                result.ending in (Ending.DEFAULT_WIN, Ending.DEFAULT_LOSS) for result in ends
            ),
        }
    )

"""Ratings of the levels of the player in the package, and the bots that each of them beats.

The figures are in ``data/levels.json``, which a calibration can replace.

>>> level_rating(4)
1935
>>> round(beaten_bot(1935).expected, 3)
0.903
"""

import json
from functools import cache
from typing import Final, NamedTuple

from keisei.evaluation.scale import current_scale, data_file
from keisei.evaluation.score import expected_score

BOTS: Final = ("random", "greedy", "alphabeta:1", "alphabeta:2", "alphabeta:3", "alphabeta:4")
"""Bots that people can play, the weakest first."""

_EVEN: Final = 0.5
"""Expected score from which on a player holds its own against another."""


class BeatenBot(NamedTuple):
    """A bot, and the score expected against it."""

    spec: str
    expected: float


def level_rating(level: int) -> int | None:
    """Return the rating of the player in the package at a level; None if it was not measured."""
    return _ratings().get(str(level))


def beaten_bot(rating: float) -> BeatenBot | None:
    """Return the strongest bot that a player of this rating beats; None if there is none."""
    known = {reference.spec: reference.rating for reference in current_scale().references}
    for spec in reversed(BOTS):
        expected = expected_score(rating - known[spec])
        if expected >= _EVEN:
            return BeatenBot(spec, expected)
    return None


@cache
def _ratings() -> dict[str, int]:
    ratings: dict[str, int] = json.loads(data_file("levels.json").read_text("utf-8"))["ratings"]
    return ratings

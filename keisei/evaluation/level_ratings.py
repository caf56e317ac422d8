"""Ratings of the levels of the player in the package, and the bots that each of them beats.

The figures are in ``data/levels.json``, which ``scripts/levels.py`` writes.

>>> level_rating(4) > level_rating(3)
True
>>> beaten_bot(level_rating(1)).spec
'random'
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
    return _figures()["ratings"].get(str(level))


def level_bound(level: int) -> int | None:
    """Return the lower bound of the rating of a level that is above the scale; None for others."""
    return _figures().get("bounds", {}).get(str(level))


def highest_rating() -> int | None:
    """Return the rating of the highest level that has one."""
    return max(_figures()["ratings"].values(), default=None)


def beaten_bot(rating: float) -> BeatenBot | None:
    """Return the strongest bot that a player of this rating beats; None if there is none."""
    known = {reference.spec: reference.rating for reference in current_scale().references}
    for spec in reversed(BOTS):
        expected = expected_score(rating - known[spec])
        if expected >= _EVEN:
            return BeatenBot(spec, expected)
    return None


@cache
def _figures() -> dict[str, dict[str, int]]:
    figures: dict[str, dict[str, int]] = json.loads(data_file("levels.json").read_text("utf-8"))
    return figures

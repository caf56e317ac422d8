"""Ratings of levels, and what they beat."""

from itertools import pairwise

from keisei.evaluation.level_ratings import BOTS, beaten_bot, level_rating
from keisei.evaluation.scale import current_scale
from keisei.levels import LEVELS, MAX_LEVEL


def test_each_level_is_stronger_than_the_one_below() -> None:
    ratings = [level_rating(level) for level in LEVELS if level != MAX_LEVEL]
    known = [rating for rating in ratings if rating is not None]
    assert len(known) == len(ratings)
    assert all(low < high for low, high in pairwise(known))


def test_the_bot_is_the_strongest_that_is_not_stronger() -> None:
    ratings = {reference.spec: reference.rating for reference in current_scale().references}
    assert set(BOTS) <= set(ratings)
    for spec in BOTS:
        bot = beaten_bot(ratings[spec])
        assert bot is not None
        assert (bot.spec, bot.expected) == (spec, 0.5)
    weaker = beaten_bot(ratings["greedy"] - 1)
    assert weaker is not None
    assert weaker.spec == "random"
    assert beaten_bot(-1) is None

"""Ratings of levels, and what they beat."""

import json
from itertools import pairwise
from pathlib import Path

from keisei.constants import BUILTIN
from keisei.evaluation.level_ratings import BOTS, beaten_bot, level_bound, level_rating
from keisei.evaluation.scale import current_scale, data_file
from keisei.levels import LEVELS, MAX_LEVEL
from keisei.network.loading import read_network


def test_each_level_is_stronger_than_the_one_below() -> None:
    ratings = [level_rating(level) for level in LEVELS if level != MAX_LEVEL]
    known = [rating for rating in ratings if rating is not None]
    assert len(known) == len(ratings)
    assert all(low < high for low, high in pairwise(known))
    top = level_rating(MAX_LEVEL) or level_bound(MAX_LEVEL)
    assert top is None or top > known[-1]


def test_what_is_above_the_scale_has_a_bound_and_no_rating() -> None:
    highest = max(reference.rating for reference in current_scale().references)
    for level in LEVELS:
        bound = level_bound(level)
        if bound is not None:
            assert level_rating(level) is None
            assert bound > highest
    assert level_bound(1) is None


def test_the_kept_scores_are_of_the_player_in_the_package_and_its_levels_even_steps() -> None:
    kept = json.loads(data_file("levels.json").read_text("utf-8"))
    assert kept["network"] == read_network(Path(BUILTIN)).identity
    scores = kept["against_below"]
    assert scores["1"] < 0.5, "level 1 loses to `greedy`"
    for level in range(2, MAX_LEVEL):  # the highest is measured by few games
        assert 0.70 <= scores[str(level)] <= 0.85, level


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

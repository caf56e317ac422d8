"""Scores, their intervals and their texts."""

import math

import pytest

from keisei.evaluation.score import Score, elo_difference, expected_score


def test_scores_have_an_interval_and_a_text() -> None:
    score = Score((40, 2, 8), (30, 0, 20))
    assert score.games == 100
    assert score.score == pytest.approx(0.71)
    low, high = score.interval
    assert low < 0.71 < high
    assert (low, high) == pytest.approx((0.615, 0.79), abs=0.005)
    assert str(score).startswith("71.0% (70-2-28, 95 % 61.")
    perfect = Score((10, 0, 0), (10, 0, 0))
    assert perfect.interval[1] == 1.0
    assert perfect.interval[0] < 0.9


def test_a_score_stands_for_a_difference_of_elo() -> None:
    score = Score((40, 2, 8), (30, 0, 20))
    assert score.elo == pytest.approx(400 * math.log10(71 / 29))
    low, high = score.elo_interval
    assert (low, high) == pytest.approx(tuple(elo_difference(end) for end in score.interval))
    assert low < score.elo < high


def test_a_clean_sweep_is_infinitely_better_and_at_least_so_much() -> None:
    sweep = Score((10, 0, 0), (10, 0, 0))
    assert sweep.elo == sweep.elo_interval[1] == math.inf
    assert 100 < sweep.elo_interval[0] < 400


def test_without_games_there_is_no_score_but_a_text() -> None:
    assert str(Score((0, 0, 0), (0, 0, 0))) == "no games"


def test_wins_draws_and_losses_of_both_colours() -> None:
    assert Score((1, 2, 3), (10, 20, 30)).total == (11, 22, 33)


def test_elo_of_a_score() -> None:
    assert elo_difference(0.5) == 0.0
    assert elo_difference(10 / 11) == pytest.approx(400.0)
    assert (elo_difference(0.0), elo_difference(1.0)) == (-math.inf, math.inf)
    assert expected_score(400.0) == pytest.approx(10 / 11)
    assert (expected_score(-1e9), expected_score(1e9)) == (0.0, 1.0)
    for elo in (-200.0, 0.0, 35.0):
        assert elo_difference(expected_score(elo)) == pytest.approx(elo)

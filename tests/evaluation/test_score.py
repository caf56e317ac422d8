"""Scores, their intervals and their texts."""

import pytest

from keisei.evaluation.score import Score


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

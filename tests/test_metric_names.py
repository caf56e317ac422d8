"""Names of metrics and their explanations."""

import math
import re
from pathlib import Path

import pytest
import torch

from keisei import metric_names as names
from keisei.evaluation.placing import Placement
from keisei.evaluation.rating_text import Position
from keisei.evaluation.score import Score
from keisei.formats import (
    count,
    duration,
    percent,
    short_count,
    small,
)
from keisei.metric_names import shares
from keisei.runs.journal import EloEstimate, elo_estimate, evaluation_metrics, score_estimates
from keisei.training.step_metrics import video_megabytes
from tests.training.fake_run import fake_evaluation, fake_metrics

DOCUMENTATION = Path(__file__).parents[1] / "docs" / "metrics.md"


def pattern_of(name: str) -> str:
    """The name in the tables for a metric whose name has a part of its own."""
    if name.startswith(names.TERMINATION_PREFIX):
        return names.TERMINATION_PREFIX + "<name>"
    name = re.sub(r"^workers/\d+/", "workers/<number>/", name)
    return re.sub(r"^eval/.+/", "eval/<opponent>/", name)


def test_every_metric_is_explained() -> None:
    evaluation = fake_evaluation(1, 10, games=0)
    measured = (evaluation.scores, evaluation.placement, evaluation.calibration)
    found = {*fake_metrics(1, 10), *evaluation_metrics(*measured)}
    assert {pattern_of(name) for name in found} == set(names.MEANINGS)


def test_the_documentation_explains_the_same_metrics() -> None:
    cells = re.findall(r"^\| ([^|]+) \|", DOCUMENTATION.read_text("utf-8"), re.M)
    documented = [name for cell in cells for name in re.findall(r"`([^`]+/[^`]+)`", cell)]
    assert sorted(documented) == sorted(names.MEANINGS)


def test_an_evaluation_can_be_read_back_from_its_metrics() -> None:
    score = Score(black=(6, 1, 3), white=(4, 2, 4))
    metrics = evaluation_metrics({"usi:/opt/engine": score})
    assert metrics["eval/usi:/opt/engine/wins"] == 10
    result = score_estimates({**metrics, "charts/SPS": 1.0})["usi:/opt/engine"]
    assert (result.score, result.games) == (score.score, 20)
    assert (result.as_black, result.as_white) == (0.65, 0.5)
    assert (result.low, result.high) == score.interval
    assert result.margin == pytest.approx((result.high - result.low) / 2)


def test_a_rating_can_be_read_back_from_the_metrics() -> None:
    placement = Placement(1500.0, 1450.0, 1560.0, games=300)
    found = elo_estimate(evaluation_metrics({}, placement))
    assert found == EloEstimate(1500.0, 1450.0, 1560.0)
    assert found.margin == 55.0
    assert (found.bound, found.short_text) == ("", "1500 ±55")
    assert str(found) == str(placement) == "1500 (95 %: 1450 to 1560)"
    assert elo_estimate(evaluation_metrics({})) is None
    assert elo_estimate({"eval/elo": math.nan, "eval/elo_low": 1.0, "eval/elo_high": 2.0}) is None


@pytest.mark.parametrize(
    ("position", "words"),
    [("above", "above the scale: 4100 or more"), ("below", "below the scale: -900 or less")],
)
def test_the_metrics_hold_on_which_side_of_the_scale_a_rating_is(
    position: Position, words: str
) -> None:
    low, high = (4100.0, 4700.0) if position == "above" else (-1500.0, -900.0)
    placement = Placement((low + high) / 2, low, high, games=100, position=position)
    found = elo_estimate(evaluation_metrics({}, placement))
    assert found is not None
    assert found.position == position
    assert str(found) == found.bound == found.short_text == str(placement) == words


def test_ratings_of_older_journals_are_on_the_scale() -> None:
    found = elo_estimate({"eval/elo": 4400.0, "eval/elo_low": 4100.0, "eval/elo_high": 4700.0})
    assert found == EloEstimate(4400.0, 4100.0, 4700.0, "on")


def test_opponents_and_colours_that_were_not_played_are_left_out() -> None:
    nobody = Score((0, 0, 0), (0, 0, 0))
    as_black = Score((1, 0, 0), (0, 0, 0))
    metrics = evaluation_metrics({"nobody": nobody, "someone": as_black})
    assert not any("nobody" in name or "as_white" in name for name in metrics)
    assert math.isnan(score_estimates(metrics)["someone"].as_white)


def test_shares_divide_what_there_is() -> None:
    assert shares({"a": 1.0, "b": 3.0, "c": math.nan}, ("a", "b", "c", "d")) == [0.25, 0.75, 0, 0]
    assert shares({}, ("a", "b")) == [0.0, 0.0]


@pytest.mark.parametrize("write", [count, duration, percent, short_count, small])
def test_a_number_that_is_not_finite_is_a_dash(write: object) -> None:
    assert callable(write)
    assert write(math.nan) == "-"


def test_video_memory_needs_a_gpu(monkeypatch: pytest.MonkeyPatch) -> None:
    assert video_megabytes() is None
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    monkeypatch.setattr(torch.cuda, "max_memory_allocated", lambda: 3 << 20)
    assert video_megabytes() == 3.0

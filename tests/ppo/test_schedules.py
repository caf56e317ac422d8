"""Settings that change over a run."""

from itertools import pairwise

import pytest

from keisei.ppo.learner import (
    PATIENCE,
    fading,
    schedule_fraction,
    scheduled,
)


@pytest.mark.parametrize(
    ("shape", "done", "expected"),
    [
        ("constant", 0.7, 1.0),
        ("linear", 0.0, 1.0),
        ("linear", 0.5, 0.6),
        ("linear", 1.0, 0.2),
        ("linear", 7.0, 0.2),
        ("cosine", 0.0, 1.0),
        ("cosine", 0.5, 0.6),
        ("cosine", 1.0, 0.2),
    ],
)
def test_shapes(shape: str, done: float, expected: float) -> None:
    assert scheduled(shape, 1.0, 0.2, done) == pytest.approx(expected)  # type: ignore[arg-type]


def test_warm_up_rises_from_zero_and_then_the_shape_begins() -> None:
    values = [scheduled("linear", 1.0, 0.0, done, warmup=0.2) for done in (0.0, 0.1, 0.2, 0.6, 1.0)]
    assert values == pytest.approx([0.0, 0.5, 1.0, 0.5, 0.0])
    assert scheduled("linear", 1.0, 0.0, 1.0, warmup=1.0) == 0.0


def test_fading() -> None:
    assert [fading(2.0, 0.5, done) for done in (0.0, 0.25, 0.5, 1.0)] == [2.0, 1.0, 0.0, 0.0]
    assert fading(2.0, 0.0, 0.0) == 0.0


@pytest.mark.parametrize("pace", [1.0, 1.3, 20.0])
def test_a_run_that_keeps_pace_with_its_limit_follows_its_plies_exactly(pace: float) -> None:
    for percent in range(101):
        plies = percent / 100
        assert schedule_fraction(plies, plies / pace) == plies
    assert schedule_fraction(0.3, 0.0) == 0.3, "without a limit"


def test_a_slow_start_and_a_pause_are_forgiven() -> None:
    assert schedule_fraction(0.0, 0.15) == 0.0
    assert schedule_fraction(0.5, 0.55) == 0.5


@pytest.mark.parametrize("pace", [0.02, 0.5, 0.95])
def test_a_run_that_is_too_slow_ends_with_its_limit_and_never_jumps(pace: float) -> None:
    steps = 1_000
    done = [schedule_fraction(pace * step / steps, step / steps) for step in range(steps + 1)]
    assert (done[0], done[-1]) == (0.0, 1.0)
    changes = [later - earlier for earlier, later in pairwise(done)]
    assert min(changes) >= 0.0
    assert max(changes) < 1.01 / steps / (1.0 - PATIENCE)
    assert schedule_fraction(pace, 1.5) == 1.0

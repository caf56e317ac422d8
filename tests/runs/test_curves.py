"""Long curves in little memory: nothing is lost but which neighbour had which value."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from keisei.runs import curves as module
from keisei.runs.curves import (
    MAX_METRICS,
    MAX_POINTS,
    Curves,
    smooth,
)


def filled(values: np.ndarray, pieces: list[int]) -> Curves:
    """Curves of one metric, whose rows came in pieces."""
    curves = Curves(["x"])
    curves.column("a")
    place = 0
    for size in [*pieces, len(values)]:
        rows = values[place : place + size]
        x = np.arange(place, place + len(rows), dtype=float)[:, None]
        curves.append(x, rows[:, None])
        place += len(rows)
    return curves


numbers = st.one_of(st.floats(-1e6, 1e6), st.just(float("nan")), st.just(float("inf")))


@given(st.lists(numbers, min_size=1, max_size=120), st.lists(st.integers(0, 20), max_size=20))
def test_points_are_their_rows_least_largest_and_mean(rows: list[float], pieces: list[int]) -> None:
    values = np.array(rows)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(module, "MAX_POINTS", 8)
        curves = filled(values, pieces)
    assert curves.rows == len(values)
    stride = curves.stride
    blocks = [values[i : i + stride] for i in range(0, len(values), stride)]
    assert len(blocks) <= 8
    finite = [
        (min(i + stride, len(values)) - 1, block[np.isfinite(block)])
        for i, block in zip(range(0, len(values), stride), blocks, strict=True)
    ]
    expected = [(x, block) for x, block in finite if len(block)]
    curve = curves.curve("a", "x")
    np.testing.assert_array_equal(curve.x, [x for x, _ in expected])
    np.testing.assert_array_equal(curve.low, [block.min() for _, block in expected])
    np.testing.assert_array_equal(curve.high, [block.max() for _, block in expected])
    np.testing.assert_allclose(
        curve.mean, [block.mean() for _, block in expected], rtol=1e-9, atol=1e-6
    )


def test_a_short_curve_is_exact() -> None:
    values = np.arange(float(MAX_POINTS))
    curve = filled(values, []).curve("a", "x")
    np.testing.assert_array_equal(curve.mean, values)


def test_a_spike_stays_visible_in_a_long_curve() -> None:
    values = np.zeros(100_000)
    values[51_234] = 7.0
    curve = filled(values, [1000] * 100).curve("a", "x")
    assert len(curve.x) <= MAX_POINTS
    assert curve.high.max() == 7.0
    assert curve.x[-1] == 99_999


def test_a_metric_that_comes_later_is_missing_before() -> None:
    curves = Curves(["x"])
    curves.column("a")
    curves.append(np.array([[0.0]]), np.array([[1.0]]))
    curves.column("b")
    curves.append(np.array([[1.0]]), np.array([[2.0, 3.0]]))
    assert curves.curve("b", "x").x.tolist() == [1.0]
    x, both = curves.means(("a", "b"), "x")
    np.testing.assert_array_equal(x, [0.0, 1.0])
    np.testing.assert_array_equal(both, [[1.0, np.nan], [2.0, 3.0]])


def test_numbers_that_cannot_be_added_up_are_left_out() -> None:
    curves = Curves(["x"])
    place = curves.column("a")
    rows = np.arange(2.0 * MAX_POINTS + 2)[:, None]
    values = np.where(rows % 4 < 2, 1.7e308, 1.0)
    assert place == 0
    curves.append(rows, values)
    curve = curves.curve("a", "x")
    assert curves.stride > 2
    assert set(curve.mean) == {1.0}


def test_an_unknown_metric_is_empty() -> None:
    curves = filled(np.arange(3.0), [])
    assert len(curves.curve("b", "x").x) == 0
    assert np.isnan(curves.means(("b",), "x")[1]).all()


def test_the_number_of_metrics_is_bounded() -> None:
    curves = Curves(["x"])
    places = [curves.column(f"metric {index}") for index in range(MAX_METRICS + 5)]
    assert places[-5:] == [None] * 5
    assert len(curves.names) == MAX_METRICS


@given(st.lists(st.floats(-1e3, 1e3), min_size=1, max_size=100))
def test_smoothing_is_the_mean_of_the_neighbours(values: list[float]) -> None:
    reach = len(values) // 10
    slow = [np.mean(values[max(0, i - reach) : i + reach + 1]) for i in range(len(values))]
    np.testing.assert_allclose(smooth(np.array(values), 1 / 10), slow, atol=1e-6)

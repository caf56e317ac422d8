"""Settings that change over a run."""

import pytest

from keisei.training.schedules import fading, scheduled


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

"""Contestants take turns, and rates are what was done per second."""

import gc
import time

import pytest

from keisei.benchmark.harness import Rate, Work, side_by_side


def test_contestants_take_turns() -> None:
    calls: list[str] = []

    def contestant(name: str) -> Work:
        def work() -> int:
            calls.append(name)
            return 1

        return work

    rates = side_by_side({"a": contestant("a"), "b": contestant("b")}, repetitions=3, seconds=0)
    assert "".join(calls) == "aabb" * 3  # each turn begins with a lead-in
    assert [len(rate.samples) for rate in rates.values()] == [3, 3]


def test_a_turn_lasts_as_long_as_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0

    def work() -> int:
        nonlocal now
        now += 0.25
        return 10

    monkeypatch.setattr(time, "perf_counter", lambda: now)
    rate = side_by_side({"only": work}, repetitions=2, seconds=1)["only"]
    assert rate.samples == (40.0, 40.0)
    assert now == 2 * (0.25 + 1.0)


def test_the_best_counts_and_the_spread_tells_of_noise() -> None:
    rate = Rate((80.0, 100.0, 60.0))
    assert rate.best == 100
    assert rate.spread == pytest.approx(0.2)
    assert rate.as_dict() == {"best": 100, "spread": rate.spread, "samples": [80, 100, 60]}


@pytest.mark.parametrize("was_on", [True, False])
def test_the_garbage_collector_rests_meanwhile(was_on: bool) -> None:
    seen: list[bool] = []

    def work() -> int:
        seen.append(gc.isenabled())
        return 1

    before = gc.isenabled()
    try:
        gc.enable() if was_on else gc.disable()
        side_by_side({"only": work}, repetitions=1, seconds=0)
        assert seen == [False, False]
        assert gc.isenabled() == was_on
    finally:
        gc.enable() if before else gc.disable()

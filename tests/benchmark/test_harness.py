"""The machine, and contestants that take turns."""

import gc
import os
import platform
import time
from importlib.metadata import version
from pathlib import Path

import pytest

from keisei.benchmark import harness
from keisei.benchmark.harness import Machine, Rate, Work, side_by_side, this_machine


def test_this_machine_is_described() -> None:
    found = this_machine(["numpy", "no-such-package"])
    assert found.cpu
    assert found.cpus >= 1
    assert platform.python_version() in found.python
    assert found.versions == {"numpy": version("numpy")}
    assert found.as_dict()["is_busy"] == found.is_busy


@pytest.mark.parametrize(
    ("load", "is_busy"), [(None, False), (0.0, False), (1.0, False), (1.1, True)]
)
def test_busy_is_more_than_half_of_the_processors(load: float | None, is_busy: bool) -> None:
    assert Machine("", cpus=2, load=load, python="", versions={}).is_busy == is_busy


def test_systems_without_a_load_average(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> tuple[float, float, float]:
        raise OSError

    monkeypatch.setattr(os, "getloadavg", fail, raising=False)
    assert this_machine([]).load is None
    monkeypatch.delattr(os, "getloadavg")
    assert this_machine([]).load is None


def test_systems_without_cpuinfo(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(harness, "CPU_INFO", tmp_path / "cpuinfo")
    assert this_machine([]).cpu == (platform.processor() or platform.machine())
    (tmp_path / "cpuinfo").write_text("processor\t: 0\nmodel name\t: Abacus 3000\n")
    assert this_machine([]).cpu == "Abacus 3000"


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


def test_the_best_counts_and_the_spread_measures_noise() -> None:
    rate = Rate((80.0, 100.0, 60.0))
    assert rate.best == 100
    assert rate.spread == pytest.approx(0.2)
    assert rate.as_dict() == {"best": 100, "spread": rate.spread, "samples": [80, 100, 60]}


@pytest.mark.parametrize("was_on", [True, False])
def test_the_garbage_collector_is_off_meanwhile(was_on: bool) -> None:
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

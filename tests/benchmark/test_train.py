"""``keisei benchmark train``, with tiny numbers. Times are not asserted."""

import json

import pytest
from typer.testing import CliRunner

from keisei.benchmark import train
from keisei.benchmark.harness import Machine, Rate
from keisei.benchmark.train import (
    IN_BATCHES,
    ONE_BY_ONE,
    SPARSE,
    TOWER,
    FamilyEffort,
    FamilyReport,
    measure_families,
)
from keisei.commands.benchmark import benchmark_app
from tests.tiny import TINY

LITTLE = FamilyEffort(repetitions=1, seconds=0.0, warm_up=1, tower_plies=4)
SIZES = tuple(
    setting
    for setting in TINY
    if not setting.startswith(("model.type", "device.threads", "env.threads"))
)


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(train, "QUICK", LITTLE)
    monkeypatch.setattr(train, "FULL", LITTLE)
    monkeypatch.setattr(train, "COMMON", SIZES)
    monkeypatch.setattr(train, "TOWER_SETTINGS", ("model.type=resnet",))


@pytest.mark.usefixtures("tiny")
def test_both_families_are_measured() -> None:
    reported: list[tuple[str, int, int]] = []
    report = measure_families(LITTLE, (), lambda *progress: reported.append(progress))
    assert {SPARSE, TOWER} <= set(report.steps)
    assert all(rate.best > 0 for rate in report.steps.values())
    assert set(report.predictions) == {SPARSE, TOWER}
    assert all(set(rates) == {ONE_BY_ONE, IN_BATCHES} for rates in report.predictions.values())
    for shares in report.shares.values():
        assert sum(shares.values()) == pytest.approx(1.0)
    assert [done for _, done, _ in reported] == list(range(len(reported)))


def make_report(sparse: float, threaded: float | None, tower: float | None) -> FamilyReport:
    rates = {SPARSE: sparse, "sparse, 2 threads": threaded, TOWER: tower}
    steps = {name: Rate((rate,)) for name, rate in rates.items() if rate is not None}
    shares = {"env": 0.2, "inference": 0.3, "learning": 0.5}
    predictions = {ONE_BY_ONE: Rate((16_000.0,)), IN_BATCHES: Rate((90_000.0,))}
    return FamilyReport(
        machine=Machine("Abacus 3000", 2, 0.0, "CPython", {}),
        steps=steps,
        shares=dict.fromkeys(steps, shares),
        predictions={SPARSE: predictions},
    )


def test_targets() -> None:
    passed = [target.passed for target in make_report(16_000, 28_000, 600).targets]
    assert passed == [True, True, True, False, True]
    passed = [target.passed for target in make_report(14_000, 20_000, 600).targets]
    assert passed == [False, False, False, False, True]
    passed = [target.passed for target in make_report(16_000, None, None).targets]
    assert passed == [True, None, None, False, True]


@pytest.mark.usefixtures("tiny")
def test_the_command_prints_tables_and_json() -> None:
    result = CliRunner().invoke(benchmark_app, ["train", "--quick"])
    assert result.exit_code == 0, result.output
    assert "predictions/s" in result.output
    result = CliRunner().invoke(benchmark_app, ["train", "--json"])
    assert result.exit_code == 0, result.output
    assert SPARSE in json.loads(result.stdout)["plies_per_second"]

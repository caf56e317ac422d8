"""``keisei benchmark env``, with tiny numbers. Times are not asserted."""

import gc
import json

import pytest
from typer.testing import CliRunner

from keisei.benchmark import env
from keisei.benchmark.env import (
    CSHOGI,
    CSHOGI_TUNED,
    KEISEI,
    KEISEI_THREADS,
    RSSHOGI,
    EnvEffort,
    EnvReport,
    PerftPosition,
    PerftRow,
    StepRow,
    measure_env,
    print_env_report,
)
from keisei.benchmark.harness import Machine, Rate, SpeedTarget, Work
from keisei.commands import benchmark
from keisei.shogi.notation.sfen import STARTPOS_SFEN

TINY = EnvEffort(
    repetitions=1,
    seconds=0,
    warm_up_plies=2,
    games=(2, 3),
    positions=(PerftPosition("start", STARTPOS_SFEN, 2, 1),),
)
OUTPUTS = ["legal list", "packed + list", "planes", "mask", "planes + mask"]


@pytest.fixture(autouse=True)
def no_collections(monkeypatch: pytest.MonkeyPatch) -> None:
    """Collecting the garbage of other tests takes long, and times do not matter here."""
    monkeypatch.setattr(gc, "collect", lambda: 0)


@pytest.fixture
def without_other_libraries(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(env, "installed_version", lambda package: None)
    monkeypatch.setattr(env, "PACKAGES", ("numpy",))


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(env, "QUICK", TINY)
    monkeypatch.setattr(env, "FULL", TINY)


def test_everything_is_measured_side_by_side() -> None:
    for library in ("cshogi", "rsshogi"):
        pytest.importorskip(library)
    report = measure_env(TINY, threads=2)
    assert [(row.plays_leaves, row.depth, row.nodes) for row in report.perft] == [
        (False, 2, 900),
        (True, 1, 30),
    ]
    assert [set(row.rates) for row in report.perft] == 2 * [{KEISEI, CSHOGI, RSSHOGI}]
    assert [(row.games, row.output) for row in report.steps] == [
        (games, output) for games in TINY.games for output in OUTPUTS
    ]
    contestants = {KEISEI, KEISEI_THREADS, CSHOGI, CSHOGI_TUNED}
    assert all(set(row.rates) == contestants for row in report.steps)
    assert all(rate.best > 0 for row in report.steps for rate in row.rates.values())


def test_keisei_is_measured_once_for_the_two_lists() -> None:
    legal_list, packed, planes, *_ = measure_env(TINY, threads=1).steps
    assert legal_list.rates[KEISEI] is packed.rates[KEISEI]
    assert planes.rates[KEISEI] is not packed.rates[KEISEI]
    assert KEISEI_THREADS not in packed.rates


@pytest.mark.usefixtures("without_other_libraries")
def test_other_libraries_are_optional() -> None:
    report = measure_env(TINY, threads=1)
    assert {name for row in report.perft for name in row.rates} == {KEISEI}
    assert {name for row in report.steps for name in row.rates} == {KEISEI}
    assert {target.passed for target in report.targets} == {None}


def test_progress_is_reported_before_each_measurement() -> None:
    reported: list[tuple[str, int, int]] = []
    measure_env(TINY, threads=1, on_progress=lambda *progress: reported.append(progress))
    assert [done for _, done, _ in reported] == list(range(10))
    assert {total for _, _, total in reported} == {10}
    assert reported[0][0] == "perft, start"
    assert reported[-1][0] == "3 games, planes + mask"


def test_libraries_that_disagree_are_not_compared(monkeypatch: pytest.MonkeyPatch) -> None:
    works: dict[str, Work] = {KEISEI: lambda: 30, CSHOGI: lambda: 29}
    monkeypatch.setattr(env, "_perft_contestants", lambda *_: works)
    with pytest.raises(RuntimeError, match=r"disagree on perft\(2\).*29"):
        measure_env(TINY, threads=1)


def make_report(perft: dict[str, float], steps: dict[str, float], threads: int = 2) -> EnvReport:
    """A report in which every row has the same rates."""
    machine = Machine("Abacus 3000", 2, 0.0, "CPython", {"cshogi": "1.0"})
    nodes = {name: Rate((rate,)) for name, rate in perft.items()}
    rates = {name: Rate((rate,)) for name, rate in steps.items()}
    return EnvReport(
        machine,
        threads,
        (PerftRow("start", 4, False, 719_731, nodes), PerftRow("start", 3, True, 25_470, nodes)),
        tuple(StepRow(games, output, rates) for games in (64, 1024) for output in OUTPUTS),
    )


def test_targets_that_are_met() -> None:
    report = make_report(
        {KEISEI: 80e6, CSHOGI: 20e6}, {KEISEI: 0.9e6, KEISEI_THREADS: 1.5e6, CSHOGI: 0.09e6}
    )
    assert [target.measured for target in report.targets] == pytest.approx([4, 0.9, 10, 5 / 3])
    assert [target.passed for target in report.targets] == [True] * 4


def test_targets_that_are_missed() -> None:
    report = make_report(
        {KEISEI: 79e6, CSHOGI: 20e6}, {KEISEI: 0.8e6, KEISEI_THREADS: 0.8e6, CSHOGI: 0.09e6}
    )
    assert [target.passed for target in report.targets] == [False] * 4


def test_other_thread_counts_say_nothing_about_two() -> None:
    report = make_report({KEISEI: 1}, {KEISEI: 1, KEISEI_THREADS: 4}, threads=4)
    assert report.targets[-1].passed is None


def test_the_slowest_row_decides() -> None:
    assert env._minimum([None, 3.0, 2.0]) == 2
    assert env._minimum([None]) is None
    assert SpeedTarget("", 2, "", None).passed is None


@pytest.mark.usefixtures("tiny")
@pytest.mark.parametrize("options", [[], ["--quick"], ["--threads", "1"]])
def test_the_command_prints_tables(options: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    result = CliRunner().invoke(benchmark.benchmark_app, ["env", *options])
    assert result.exit_code == 0, result.output
    assert "perft, million nodes/s" in result.stdout
    for output in OUTPUTS:
        assert result.stdout.count(f" {output} ") >= 2
    assert "at least" in result.stdout
    assert "…" not in result.stdout  # nothing is cut off


@pytest.mark.usefixtures("tiny", "without_other_libraries")
def test_the_command_says_how_to_install_cshogi() -> None:
    result = CliRunner().invoke(benchmark.benchmark_app, ["env", "--quick"])
    assert result.exit_code == 0
    assert "pip install cshogi" in result.stdout
    assert " - " in result.stdout
    assert "not measured" in result.stdout


@pytest.mark.usefixtures("tiny")
def test_the_command_speaks_json() -> None:
    result = CliRunner().invoke(benchmark.benchmark_app, ["env", "--json"])
    report = json.loads(result.stdout)
    assert report["machine"]["cpu"]
    assert report["perft"][0]["rates"][KEISEI]["best"] > 0
    assert [row["output"] for row in report["steps"][:5]] == OUTPUTS
    assert [set(target) for target in report["targets"]] == 4 * [
        {"claim", "needed", "unit", "measured", "passed"}
    ]


def test_no_threads_are_refused() -> None:
    assert CliRunner().invoke(benchmark.benchmark_app, ["env", "--threads", "0"]).exit_code == 2


def test_busy_machines_get_a_warning(capsys: pytest.CaptureFixture[str]) -> None:
    report = make_report({KEISEI: 1}, {KEISEI: 1})
    busy = EnvReport(Machine("", 2, 9.0, "", {}), 2, report.perft, report.steps)
    print_env_report(busy)
    assert "machine is busy" in capsys.readouterr().out
    unknown = EnvReport(Machine("", 2, None, "", {}), 2, report.perft, report.steps)
    print_env_report(unknown)
    assert "load average unknown" in capsys.readouterr().out

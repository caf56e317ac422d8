"""The benchmark of a recipe as a whole, with tiny numbers."""

import json
import runpy
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from typer.testing import CliRunner

from keisei.benchmark.strength import measure_strength, read_figures
from keisei.cli import app
from keisei.commands import benchmark
from keisei.errors import KeiseiError
from keisei.training.run import start_run
from tests.tiny import TINY, tiny_config

PROJECT = Path(__file__).parent.parent.parent


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("runs")
    return start_run(tiny_config(f"run.root={root}", "run.name=tiny")).run_directory


def test_speed_memory_and_strength_are_in_one_table(run: Path) -> None:
    reported: list[tuple[str, int, int]] = []
    report = measure_strength(
        run, games=2, max_games=8, on_progress=lambda *step: reported.append(step)
    )
    figures = {row.name: row for row in report.figures()}
    assert list(figures) == [
        "games",
        "plies",
        "peak memory",
        "score against greedy",
        "score against alphabeta:2",
        "score against alphabeta:3",
        "Elo",
    ]
    assert figures["plies"].value > figures["games"].value > 0
    assert figures["peak memory"].value > 50
    assert report.placement.low < figures["Elo"].value < report.placement.high
    assert [done for _, done, _ in reported] == list(range(4))
    assert report.scores["alphabeta:2"].games == 2
    on_gpu = replace(report, peak_video_memory=700.0)
    assert [row.name for row in on_gpu.figures()][2:4] == ["peak memory", "peak video memory"]


def test_the_command_compares_with_an_earlier_report(run: Path, tmp_path: Path) -> None:
    cli = CliRunner()
    arguments = ["benchmark", "strength", str(run), "--games", "2", "--max-games", "8"]
    first = cli.invoke(app, [*arguments, "--json"])
    assert first.exit_code == 0, first.output
    old = tmp_path / "old.json"
    report = json.loads(first.stdout)
    report["figures"]["plies"] /= 2
    del report["figures"]["games"]
    old.write_text(json.dumps(report))
    second = cli.invoke(app, [*arguments, "--compare", str(old)])
    assert second.exit_code == 0, second.output
    rows = {line.split()[0]: line.split() for line in second.stdout.splitlines() if line.split()}
    assert rows["plies"][-1] == "2.00x"
    assert rows["games"][-2:] == ["-", "-"]
    assert read_figures(old) == report["figures"]


def test_without_a_run_the_recipe_is_trained_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    settings = [part for setting in TINY for part in ("--set", setting)]
    result = CliRunner().invoke(
        app, ["benchmark", "strength", "--games", "2", "--max-games", "8", *settings]
    )
    assert result.exit_code == 0, result.output
    assert "Elo on scale 1" in result.stdout
    assert len(list((tmp_path / "runs").iterdir())) == 1


def test_the_bare_command_is_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    called: list[bool] = []
    monkeypatch.setattr(benchmark, "strength", lambda: called.append(True))
    assert CliRunner().invoke(app, ["benchmark"]).exit_code == 0
    assert called == [True]


def test_other_files_are_not_reports(tmp_path: Path) -> None:
    for text in ("nonsense", "[]", "{}", '{"figures": 3}'):
        (tmp_path / "old.json").write_text(text)
        with pytest.raises(KeiseiError, match="is not a report"):
            read_figures(tmp_path / "old.json")


def test_a_run_that_was_not_trained_is_refused(tmp_path: Path) -> None:
    (tmp_path / "metrics.jsonl").write_text("")
    with pytest.raises(KeiseiError, match="has not been trained"):
        measure_strength(tmp_path, games=2)


def test_the_script_is_the_command(
    run: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(
        sys, "argv", ["benchmark.py", str(run), "--games", "2", "--max-games", "8", "--json"]
    )
    with pytest.raises(SystemExit) as exit_:
        runpy.run_path(str(PROJECT / "scripts" / "benchmark.py"), run_name="__main__")
    assert exit_.value.code in (0, None)
    assert json.loads(capsys.readouterr().out)["run"].startswith("tiny@")

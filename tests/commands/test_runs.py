"""``keisei runs``, as a user runs it."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import typer
from typer.testing import CliRunner, Result

from keisei.callbacks import EventBus
from keisei.commands.runs import runs
from keisei.errors import KeiseiError
from keisei.training.trackers import JsonlTracker
from tests.runs.journals import entry, new_run
from tests.training.fake_run import fake_events


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A good run, one that failed, and a directory that is none."""
    directory = tmp_path_factory.mktemp("runs")
    for name, reason in (("first", "finished"), ("second", "no space left [on device]")):
        run = directory / name
        run.mkdir()
        bus = EventBus([JsonlTracker(run)])
        for event in fake_events(run, updates=10, reason=reason):
            bus.emit(event)
    (directory / "third").mkdir()
    return directory


def keisei_runs(*arguments: str, columns: int = 120) -> Result:
    app = typer.Typer()
    app.command()(runs)
    environment = {"COLUMNS": str(columns)}
    return CliRunner().invoke(app, arguments, catch_exceptions=False, env=environment)


def test_runs_are_shown_in_a_table(root: Path) -> None:
    result = keisei_runs(str(root))
    assert result.exit_code == 0
    for part in ("Elo", "1500 ±50", "first", "finished", "164 k", "1,300", "1:00",
                 "resnet 2x64, 214 k", "failed", "broken"):  # fmt: skip
        assert part in result.stdout
    assert "second: no space left [on device]" in result.stdout
    assert "third: cannot read" in result.stdout
    assert "Traceback" not in result.output


@pytest.mark.parametrize("columns", [120, 80, 60, 50])
def test_no_word_is_broken_in_a_narrow_terminal(root: Path, columns: int) -> None:
    lines = keisei_runs(str(root), columns=columns).stdout.splitlines()
    assert max(map(len, lines)) <= columns
    rows = [line.split() for line in lines]
    assert ["name", "state"] in [words[:2] for words in rows]
    assert ["first", "finished", "164", "k"] in [words[:4] for words in rows]
    assert any("1500 ±50" in line for line in lines)
    assert any("resnet 2x64, 214 k" in line for line in lines) == (columns >= 80)


def test_machines_get_json(root: Path) -> None:
    found = json.loads(keisei_runs(str(root), "--json").stdout)
    assert [run["state"] for run in found] == ["finished", "failed", "broken"]
    assert found[0]["timestep"] == 163_840
    assert found[0]["scores"]["random"]["games"] == 128
    assert found[0]["elo"] == {
        "elo": 1500.0, "low": 1450.0, "high": 1550.0, "position": "on",
    }  # fmt: skip
    assert 0.0 <= found[0]["scores"]["greedy"]["low"] <= found[0]["scores"]["greedy"]["score"]


def test_no_run_at_all(tmp_path: Path) -> None:
    assert keisei_runs(str(tmp_path)).stdout == f"There are no runs in {tmp_path}.\n"
    with pytest.raises(KeiseiError, match="there is no directory"):
        keisei_runs(str(tmp_path / "missing"))


def test_listing_leaves_the_heavy_packages_alone(root: Path) -> None:
    program = (
        "import sys; from pathlib import Path; from keisei.commands.runs import runs;"
        f"runs(Path({str(root)!r})); print({{'numba', 'numpy', 'torch'}} & set(sys.modules))"
    )
    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True,
        encoding="utf-8", env={**os.environ, "PYTHONIOENCODING": "utf-8"},
    )  # fmt: skip
    assert result.stdout.endswith("set()\n")


def test_beyond_the_scale_there_is_a_bound(tmp_path: Path) -> None:
    metrics = {"eval/elo": 4400.0, "eval/elo_low": 4100.0, "eval/elo_high": 4700.0}
    new_run(
        tmp_path, "mine",
        entry("evaluation", 1, metrics=metrics | {"eval/elo_position": 1.0}).to_line(),
    )  # fmt: skip
    text = keisei_runs(str(tmp_path)).stdout
    assert "above the scale: 4100 or more" in text
    assert "4400" not in text
    assert json.loads(keisei_runs(str(tmp_path), "--json").stdout)[0]["elo"]["position"] == "above"

"""``scripts/levels.py``: evenly spaced levels, and the file of their ratings."""

import json
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest
from typer.testing import CliRunner

from keisei.errors import KeiseiError
from keisei.evaluation.placing import Placement
from keisei.levels import LEVELS, Level
from tests.scripts import load_script


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    return load_script("levels", monkeypatch)


def call(script: ModuleType, *arguments: object) -> str:
    result = CliRunner().invoke(
        script.app, [str(argument) for argument in arguments], catch_exceptions=False
    )
    assert result.exit_code == 0, result.output
    return result.output


def test_levels_are_interpolated_within_one_kind(script: ModuleType) -> None:
    rungs = [
        script.Rung(Level(0, 1.0, 0), -400.0),
        script.Rung(Level(0, 4.0, 0), 0.0),
        script.Rung(Level(0, 4.0, 3), 100.0),
        script.Rung(Level(4, 0.0, 3), 200.0),
        script.Rung(Level(16, 0.0, 3), 400.0),
    ]
    levels = script.evenly_spaced(rungs, -200.0, 4, 240.0)
    assert levels[0] == Level(0, 2.0, 0), "half way between 1 and 4"
    assert levels[1] == Level(0, 4.0, 0), "nearer to the policy without mates"
    assert levels[2] == Level(7, 0.0, 3), "two fifths of the way from 4 to 16 simulations"
    assert levels[3] == Level(16, 0.0, 3), "not beyond the ladder"


def test_the_ladder_is_played_and_settings_are_printed(
    script: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(script, "SPREADS", (0.5, 15.0))
    monkeypatch.setattr(script, "SEARCHES", (2,))
    output = call(script, "tune", "--games", 4)
    assert output.count("Level(simulations=") == 4
    assert "    9: Level(" in output


def test_ratings_are_written(
    script: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(script, "LEVELS", {number: LEVELS[number] for number in (1, 2)})
    path = tmp_path / "levels.json"
    output = call(script, "measure", "--games", 8, "--within", 400, "--output", path)
    assert "against the one below" in output
    content = json.loads(path.read_text("utf-8"))
    assert content["ratings"].keys() == content["against_below"].keys() == {"1", "2"}
    assert content["network"]
    assert content["bounds"] == {}


def test_a_level_above_the_scale_gets_its_bound(
    script: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = [Placement(900.0, 880.0, 920.0, 8), Placement(4600.0, 4099.6, 4900.0, 8, "above")]
    monkeypatch.setattr(script, "place_player", lambda *_: SimpleNamespace(placement=found.pop(0)))
    monkeypatch.setattr(script, "LEVELS", {number: LEVELS[number] for number in (1, 2)})
    path = tmp_path / "levels.json"
    output = call(script, "measure", "--games", 2, "--output", path)
    assert "above the scale: 4100 or more" in output
    content = json.loads(path.read_text("utf-8"))
    assert content["ratings"] == {"1": 900}
    assert content["bounds"] == {"2": 4100}
    found[:] = [Placement(900.0, 480.0, 1320.0, 8), Placement(4281.0, 3779.4, 4645.0, 40)]
    call(script, "measure", "--games", 2, "--output", path)
    content = json.loads(path.read_text("utf-8"))
    assert content["ratings"] == {}, "too few games"
    assert content["bounds"] == {"2": 3779}, "better than the last reference, at least"


def test_one_level_is_measured_again(
    script: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = [Placement(3000.0, 2980.0, 3020.0, 8), Placement(4600.0, 4099.6, 4900.0, 8, "above")]
    monkeypatch.setattr(script, "place_player", lambda *_: SimpleNamespace(placement=found.pop(0)))
    path = tmp_path / "levels.json"
    kept = json.loads(script.RATINGS.read_text("utf-8"))
    path.write_text(json.dumps(kept))
    call(script, "measure", "--games", 2, "--only", 8, "--output", path)
    content = json.loads(path.read_text("utf-8"))
    assert content["ratings"] == kept["ratings"] | {"8": 3000}
    assert content["against_below"].keys() >= kept["against_below"].keys()
    call(script, "measure", "--games", 2, "--only", 8, "--output", path)
    content = json.loads(path.read_text("utf-8"))
    assert "8" not in content["ratings"], "its bound has taken its place"
    assert content["bounds"]["8"] == 4100
    path.write_text(json.dumps(kept | {"network": "another"}))
    with pytest.raises(KeiseiError, match="another network"):
        call(script, "measure", "--only", 8, "--output", path)

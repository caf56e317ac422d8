"""``keisei evaluate``, as a user runs it."""

import json
from pathlib import Path

import pytest
from typer.testing import Result

from keisei.checkpoints.rotation import list_checkpoints
from keisei.commands.evaluate import evaluate
from keisei.errors import KeiseiError
from keisei.evaluation.results import Conditions, ResultStore
from tests.commands.invoke import invoke
from tests.tiny_runs import tiny_run

QUICK = ("--games", "2", "--max-games", "8", "--threads", "1")
BOTS = ("--opponents", "random", "--opponents", "greedy")


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tiny_run(Path("runs") / "mine")


def keisei_evaluate(*arguments: str) -> Result:
    return invoke(evaluate, *QUICK, *arguments)


def test_a_run_is_measured_and_the_results_are_written(run: Path) -> None:
    text = keisei_evaluate("mine", *BOTS, "--checkpoints", "2").stdout
    for part in ("mine", "plies", "Elo", "95 %", "vs random", "vs greedy", "64", "192",
                 "references: greedy +", "Elo on scale 1; 4 opening plies"):  # fmt: skip
        assert part in text, part
    assert "128" not in text, "two of three checkpoints were asked for"
    assert f"written: {run / 'strength.json'}, {run / 'plots' / 'elo.png'}" in text
    written = json.loads((run / "strength.json").read_text())
    assert [checkpoint["timestep"] for checkpoint in written["checkpoints"]] == [64, 192]
    assert (run / "plots" / "elo.png").read_bytes().startswith(b"\x89PNG")


def test_a_second_call_only_plays_missing_games(run: Path) -> None:
    keisei_evaluate(str(run), *BOTS, "--checkpoints", "1")
    with ResultStore(Path("runs/ladder.sqlite3")) as store:
        before = store.conditions()
    first = json.loads((run / "strength.json").read_text())
    keisei_evaluate(str(run), *BOTS, "--checkpoints", "1")
    with ResultStore(Path("runs/ladder.sqlite3")) as store:
        assert store.conditions() == before == [(Conditions(), 8)]
    second = json.loads((run / "strength.json").read_text())
    assert second["checkpoints"] == first["checkpoints"]


def test_the_standard_opponents_are_played_unless_others_are_named(run: Path) -> None:
    result = keisei_evaluate("mine", "--checkpoints", "1", "--json", "--plot", "here.png")
    plain = json.loads(result.stdout)
    names = [opponent["name"] for opponent in plain["opponents"]]
    assert names == ["alphabeta:3", "alphabeta:2", "greedy"]
    assert plain["scale"] == 1
    assert Path("here.png").is_file()
    assert not (run / "plots" / "elo.png").exists()


def test_bad_checkpoints_are_named(run: Path) -> None:
    *others, newest = list_checkpoints(run / "checkpoints")
    (newest / "weights.safetensors").write_bytes(b"")
    text = keisei_evaluate("mine", *BOTS).stdout
    assert f"left out: no network can be loaded from {newest}" in text
    for path in others:
        (path / "manifest.json").write_text("{}")
    with pytest.raises(KeiseiError, match=r"no checkpoint of .* can be loaded:\n"):
        keisei_evaluate("mine", *BOTS)


def test_directories_that_are_not_runs(run: Path) -> None:
    with pytest.raises(KeiseiError, match="there is no run in nothing"):
        keisei_evaluate("nothing")
    with pytest.raises(KeiseiError, match=r"there is no run in miine.*; did you mean mine\?$"):
        keisei_evaluate("miine")
    empty = Path("runs") / "empty"
    empty.mkdir()
    (empty / "config.json").write_text("{}")
    with pytest.raises(KeiseiError, match="can be loaded: there are none"):
        keisei_evaluate("empty", *BOTS)

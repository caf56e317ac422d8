"""The script that places a network among real engines: who is asked to play whom."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest
import typer
from typer.testing import CliRunner

from keisei.evaluation.bots import GreedyPlayer, RandomPlayer
from keisei.training.run import start_run
from tests.tiny import tiny_config

SCRIPTS = Path(__file__).parent.parent / "scripts"


@pytest.fixture
def script(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    spec = importlib.util.spec_from_file_location("engine_ladder", SCRIPTS / "engine_ladder.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, "engine_ladder", module)
    spec.loader.exec_module(module)
    return module


def test_programs_that_are_not_there_are_named_once(
    script: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(script, "find_program", lambda name: None)
    words, missing = script.player_words()
    assert words == ["random", "greedy,random=0.5", "greedy", "alphabeta:2"]
    assert missing == ["fairy-stockfish", "gnushogi", "gpsusi"]


def test_programs_that_are_there_get_their_settings(
    script: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(script, "find_program", lambda name: f"/games/{name}")
    words, missing = script.player_words()
    assert missing == []
    assert 'usi:"/games/fairy-stockfish",Skill Level=-20,depth=1' in words
    assert any("gnushogi_usi.py" in word and word.endswith(",depth=1") for word in words)
    assert any("gpsusi" in word and "--memory-use-percent 10" in word for word in words)
    assert len(words) == len(set(words)) == len(script.RUNGS)


def test_neighbours_meet_and_the_network_meets_everybody(script: ModuleType) -> None:
    network = RandomPlayer()
    rungs = [GreedyPlayer() for _ in range(4)]
    pairs = script.pairs_of(network, rungs)
    met = [(rungs.index(one), rungs.index(other)) for one, other in pairs if one is not network]
    assert met == [(0, 1), (0, 2), (1, 2), (1, 3), (2, 3)]
    assert [other for one, other in pairs if one is network] == rungs


def test_it_prints_a_ladder_and_draws_it(
    script: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    run = start_run(tiny_config(f"run.root={tmp_path}", "run.name=mine")).run_directory
    monkeypatch.setattr(script, "RUNGS", (("", "random"), ("", "greedy")))
    app = typer.Typer()
    app.command()(script.engine_ladder)
    plot, store = tmp_path / "ladder.png", tmp_path / "ladder.sqlite3"
    result = CliRunner().invoke(
        app, [str(run), "--games", "2", "--store", str(store), "--plot", str(plot)]
    )
    assert result.exit_code == 0, result.output
    assert "mine@192" in result.stdout
    assert plot.read_bytes().startswith(b"\x89PNG")

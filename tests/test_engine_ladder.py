"""``scripts/engine_ladder.py``: the pairs that play, and failures of engines."""

import importlib.util
import sys
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

from keisei.evaluation.match import MatchSettings, PlayedGame
from keisei.evaluation.results import Conditions, ResultStore
from keisei.players.bots import AlphaBetaPlayer, GreedyPlayer, RandomPlayer
from keisei.players.player import RESIGNS, LegalIndices
from keisei.shogi.types import Color
from keisei.shogi.vector import VectorShogi
from keisei.training.run import start_run
from keisei.usi.client import UsiEngineError
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


def test_programs_that_are_not_there_are_left_out_by_name(
    script: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(script, "find_program", lambda name: None)
    with ExitStack() as stack:
        players = script.open_rungs(stack)
    assert [player.name for player in players] == [
        rung.name for rung in script.RUNGS if not rung.program
    ]
    errors = capsys.readouterr().err
    assert "left out: Fairy-Stockfish depth 2, fairy-stockfish is not installed\n" in errors
    assert "left out: gpsusi depth 4, gpsusi is not installed\n" in errors


def test_an_engine_that_does_not_start_is_left_out(
    script: ModuleType, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(script, "RUNGS", script.RUNGS[-2:])
    monkeypatch.setattr(script, "find_program", lambda name: f"/nowhere/{name}")
    with ExitStack() as stack:
        assert script.open_rungs(stack) == []
    assert "left out: gpsusi depth 4, program /nowhere/gpsusi not found" in capsys.readouterr().err


def test_programs_that_are_there_get_their_settings(
    script: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(script, "find_program", lambda name: f"/games/{name}")
    specs = [script.spec_of(rung) for rung in script.RUNGS]
    assert len(specs) == len(set(specs))
    fairy = 'usi:"/games/fairy-stockfish",name=Fairy-Stockfish'
    assert f"{fairy} Skill Level -20 depth 1,Skill Level=-20,depth=1,nodes=1000000" in specs
    assert f"{fairy} nodes 3000,nodes=3000" in specs
    assert any("gnushogi_usi.py" in spec and spec.endswith(",depth=1") for spec in specs)
    assert any("gpsusi" in spec and "--memory-use-percent 10" in spec for spec in specs)


def test_neighbours_meet_and_players_may_meet_everybody_but_themselves(script: ModuleType) -> None:
    rungs = [AlphaBetaPlayer(depth) for depth in range(1, 5)]
    pairs = script.pairs_of([RandomPlayer(), AlphaBetaPlayer(2)], rungs)
    names = [(one.name[-1], other.name[-1]) for one, other in pairs]
    assert names[:5] == [("1", "2"), ("1", "3"), ("2", "3"), ("2", "4"), ("3", "4")]
    assert names[5:9] == [("m", "1"), ("m", "2"), ("m", "3"), ("m", "4")]
    assert names[9:] == [("2", "m"), ("2", "1"), ("2", "3"), ("2", "4")]


class Unbeatable(GreedyPlayer):
    """Somebody whose opponents give up."""

    def __init__(self, name: str) -> None:
        self.name = self.identity = name


class Victim(Unbeatable):
    """A player whose engine fails at its first move."""

    def choose(
        self, env: VectorShogi, games: LegalIndices, random: np.random.Generator
    ) -> LegalIndices:
        return np.full(len(games), RESIGNS)


class BrokenEngine(Unbeatable):
    """An engine that no new process helps."""

    def choose(
        self, env: VectorShogi, games: LegalIndices, random: np.random.Generator
    ) -> LegalIndices:
        raise UsiEngineError("given up after 3 processes")


def test_only_open_pairs_play_all_games_and_a_breakdown_ends_only_its_pair(
    script: ModuleType, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    settings = MatchSettings(games=20, ply_limit=30)
    strong, twin, weak = Unbeatable("strong"), Unbeatable("twin"), Victim("weak")
    pairs = [(strong, weak), (BrokenEngine("engine"), weak), (twin, strong)]
    with ResultStore(tmp_path / "ladder.sqlite3", create=True) as store:
        script.play_open(store, pairs, settings, on_games=lambda progress: None)
        games = [store.games_between(*pair, Conditions.of(settings)) for pair in pairs]
    assert games == [script.PROBE_GAMES, 0, 20]
    assert capsys.readouterr().err == ("aborted: engine against weak, given up after 3 processes\n")


def test_those_who_have_not_met_are_kept_apart_only_where_it_is_sure(
    script: ModuleType, tmp_path: Path
) -> None:
    """A chain of pairs with six games each is less certain than one with hundreds."""
    best, middle, worst = (Unbeatable(name) for name in ("best", "middle", "worst"))
    won = PlayedGame(Color.BLACK, Color.BLACK, "checkmate", 50)
    with ResultStore(tmp_path / "ladder.sqlite3", create=True) as store:
        assert script.is_open(store, (best, worst), Conditions())
        for seed, games in enumerate(([won] * 6, [won] * 400)):
            store.add(best, middle, games, conditions=Conditions(), seed=seed)
            store.add(middle, worst, games, conditions=Conditions(), seed=seed)
            assert script.is_open(store, (best, worst), Conditions()) == (seed == 0)
            assert not script.is_open(store, (best, middle), Conditions())


def test_it_prints_a_ladder_and_draws_it(
    script: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    run = start_run(tiny_config(f"run.root={tmp_path}", "run.name=mine")).run_directory
    monkeypatch.setattr(script, "RUNGS", tuple(script.Rung(n) for n in ("random", "greedy")))
    monkeypatch.setattr(script, "BOT_GAMES_FACTOR", 1)
    monkeypatch.setattr(script, "MatchSettings", partial(MatchSettings, ply_limit=30))
    app = typer.Typer()
    app.command()(script.engine_ladder)
    plot, store = tmp_path / "ladder.png", tmp_path / "ladder.sqlite3"
    result = CliRunner().invoke(
        app,
        [
            str(run),
            f"{run}:policy,temperature=2",
            "--games",
            "2",
            "--store",
            str(store),
            "--plot",
            str(plot),
        ],
    )
    assert result.exit_code == 0, result.output
    assert result.stdout.count("mine@192") == 2
    assert plot.read_bytes().startswith(b"\x89PNG")

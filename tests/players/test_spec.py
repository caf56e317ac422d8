"""Every kind of player spec, and the messages for invalid ones."""

import shutil
import sys
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from keisei.errors import KeiseiError
from keisei.network.loading import read_network
from keisei.network.onnx.onnx_export import export_onnx
from keisei.players.bots import (
    AlphaBetaPlayer,
    GreedyPlayer,
    RandomizedPlayer,
    RandomPlayer,
)
from keisei.players.network import PolicyPlayer, SearchPlayer
from keisei.players.spec import PlayerSpecError, make_player, open_players
from keisei.players.usi_player import UsiPlayer
from keisei.shogi.vector import VectorShogi
from tests.tiny_runs import tiny_run

STUB = f'usi:"{sys.executable}" "{Path(__file__).parents[1] / "usi" / "usi_stub.py"}" none'


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_run(tmp_path_factory.mktemp("runs") / "mine", checkpoints=2)


@pytest.mark.parametrize(
    ("spec", "kind", "name"),
    [
        ("random", RandomPlayer, "random"),
        ("greedy", GreedyPlayer, "greedy"),
        ("greedy,random=0.5", RandomizedPlayer, "greedy,random=0.5"),
        ("alphabeta:2", AlphaBetaPlayer, "alphabeta:2"),
        ("alphabeta:2,random=0", AlphaBetaPlayer, "alphabeta:2"),
        ("alphabeta:2,random=0.3", RandomizedPlayer, "alphabeta:2,random=0.3"),
        ("alphabeta:1, quiet=4 ,margin=30", AlphaBetaPlayer, "alphabeta:1,quiet=4,margin=30"),
    ],
)
def test_bots(spec: str, kind: type, name: str) -> None:
    with closing(make_player(spec, threads=1)) as player:
        assert isinstance(player, kind)
        assert player.name == player.identity.replace(" v1", "") == name


@pytest.mark.parametrize(
    ("settings", "kind", "suffix", "identity_suffix"),
    [
        ("", PolicyPlayer, "", ":policy,temperature=0.25,mate=1"),
        (":policy", PolicyPlayer, "", ":policy,temperature=0.25,mate=1"),
        (":policy,temperature=0", PolicyPlayer, ",temperature=0", ",temperature=0,mate=1"),
        (":policy,temperature=0.5,mate=0", PolicyPlayer, *[",temperature=0.5,mate=0"] * 2),
        (",mate=3", PolicyPlayer, ",mate=3", ",mate=3"),
        (":search=4", SearchPlayer, ":search=4", ":search=4,v2"),
        (
            ":search=4,mate=0,temperature=1",
            SearchPlayer,
            ":search=4,mate=0,temperature=1",
            ":search=4,mate=0,temperature=1,v2",
        ),
    ],
)
def test_networks(run: Path, settings: str, kind: type, suffix: str, identity_suffix: str) -> None:
    with closing(make_player(f"{run}{settings}", threads=1)) as player:
        assert isinstance(player, kind)
        assert player.name == f"mine@128{suffix}"
        assert player.identity.startswith("mine@128#")
        assert player.identity.endswith(identity_suffix)
        env = VectorShogi(3, seed=1)
        legal_indices = player.choose(env, np.array([0, 2]), np.random.default_rng(0))
        assert legal_indices.shape == (2,)
        assert (legal_indices < env.legal_counts[[0, 2]]).all()


def test_networks_in_the_package() -> None:
    specs = ["frozen:250k", "frozen:250k:search=4", "frozen:250k:policy,mate=1"]
    with open_players(specs, threads=1) as players:
        assert [player.name for player in players] == [
            "frozen:250k", "frozen:250k:search=4", "frozen:250k,mate=1",
        ]  # fmt: skip
        assert len({player.identity for player in players}) == 3
    with pytest.raises(PlayerSpecError, match="there is no such network in the package; there is"):
        make_player("frozen:nothing")


def test_the_player_in_the_package_has_levels() -> None:
    specs = ["builtin", "builtin:search=2", "builtin:level=1", "builtin:level=9"]
    with open_players(specs, threads=1) as players:
        assert [player.name for player in players] == specs
        assert [type(player) for player in players] == [
            PolicyPlayer, SearchPlayer, PolicyPlayer, SearchPlayer,
        ]  # fmt: skip
        assert len({player.identity for player in players}) == 4
        env = VectorShogi(2, seed=1)
        for player in players:
            chosen = player.choose(env, np.array([0, 1]), np.random.default_rng(0))
            assert (chosen < env.legal_counts).all()


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("builtin:level=0", "level=0; it must be from 1 to 10"),
        ("builtin:level=11", "level=11; it must be from 1 to 10"),
        ("builtin:level=high", "level=high; it must be from 1 to 10"),
        ("builtin:level=3,temperature=1", "no setting temperature; there is none with a level"),
    ],
)
def test_levels_that_do_not_exist(spec: str, message: str) -> None:
    with pytest.raises(PlayerSpecError, match=message):
        make_player(spec, threads=1)


@pytest.fixture(scope="module")
def exported(run: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("files") / "mine.onnx"
    path.write_bytes(export_onnx(read_network(run)))
    return path


@pytest.mark.parametrize(
    ("settings", "kind", "suffix", "identity_suffix"),
    [
        ("", PolicyPlayer, "", ":policy,temperature=0.25,mate=1"),
        (":policy", PolicyPlayer, "", ":policy,temperature=0.25,mate=1"),
        (":policy,temperature=0,mate=3", PolicyPlayer, *[",temperature=0,mate=3"] * 2),
        (":search=4", SearchPlayer, ":search=4", ":search=4,v2"),
    ],
)
def test_exported_networks(
    run: Path, exported: Path, settings: str, kind: type, suffix: str, identity_suffix: str
) -> None:
    """They have the name of the run's network and play the same moves."""
    specs = [f"{path}{settings}" for path in (run, exported)]
    with open_players(specs, threads=1) as (original, player):
        assert isinstance(player, kind)
        assert player.name == f"mine@128.onnx{suffix}"
        assert player.identity.startswith("mine@128.onnx#")
        assert player.identity.endswith(identity_suffix)
        env = VectorShogi(8, seed=1, opening_plies=10)
        games = np.arange(8)
        expected = original.choose(env, games, np.random.default_rng(0))
        assert (player.choose(env, games, np.random.default_rng(0)) == expected).all()


def test_a_run_may_be_called_like_a_file(run: Path, tmp_path: Path) -> None:
    copy = tmp_path / "mine.onnx"
    shutil.copytree(run, copy)
    with closing(make_player(str(copy), threads=1)) as player:
        assert player.name == "mine.onnx@128"


def test_a_checkpoint_is_another_player_than_the_next(run: Path) -> None:
    first = run / "checkpoints" / "step-000000000064"
    with open_players([str(run), str(first)], threads=1) as (newest, oldest):
        assert (newest.name, oldest.name) == ("mine@128", "mine@64")
        assert newest.identity != oldest.identity


def test_engines() -> None:
    with closing(make_player(f"{STUB},depth=1,Skill Level=3,processes=1")) as player:
        assert isinstance(player, UsiPlayer)
        assert player.identity.endswith("Skill Level=3 depth 1")
    with closing(make_player(f"{STUB},processes=1")) as player:
        assert player.identity.endswith("byoyomi 1000 ms")
    with closing(make_player(f"{STUB},nodes=9,depth=2,name=mine,processes=1")) as player:
        assert player.name == "mine"
        assert player.identity.endswith(" depth 2 nodes 9"), "whatever it is called"


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        ("", "'' is not a player; a player is random, greedy"),
        ("nobody", "there is no run or checkpoint nobody; a player is random, greedy"),
        ("no/where", "there is no run or checkpoint no/where"),
        ("gredy", "; did you mean greedy"),
        ("builtn:level=4", "; did you mean builtin"),
        ("nobody.onnx", "cannot read nobody.onnx: .*; a player is random, greedy"),
        ("no/where.onnx:search=4", "cannot read no.where.onnx"),
        ("random,luck=1", "there is no setting luck; there is none"),
        ("greedy,", "'' is not a setting; settings are name=value"),
        ("greedy,fast", "'fast' is not a setting; settings are name=value"),
        ("alphabeta", "the depth is missing; alphabeta:2 searches two plies"),
        ("alphabeta:deep", "the depth is missing"),
        ("alphabeta:0", "1 to [0-9]+ plies ahead, not 0"),
        ("alphabeta:1,quiet=some", "quiet=some is not understood"),
        ("alphabeta:1,depth=2", "there is no setting depth; there is quiet"),
        ("usi:", "the command is missing; for example usi:fairy-stockfish"),
        ("usi:'engine", "No closing quotation"),
        ("usi:engine,depth=1,nodes=0", "nodes of an engine is 0, but must be at least 1"),
        ("usi:engine,depth=deep", "depth=deep is not understood"),
        ("usi:engine,depth=0", "but must be at least 1"),
        ("usi:no-such-engine-anywhere", "no-such-engine-anywhere"),
        (f"{STUB},processes=0", "at least 1 process"),
        (f"{STUB},No Such Option=1,processes=1", "No Such Option"),
    ],
)
def test_invalid_specs(spec: str, message: str) -> None:
    with pytest.raises(KeiseiError, match=message):
        make_player(spec, threads=1)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (":search=", "search=; it must be 1 or more"),
        (":search=0", "search=0; it must be 1 or more"),
        (":search=many", "search=many; it must be 1 or more"),
        (":search=4,mate=on", "mate=on is not understood"),
        (":search=4,depth=1", "there is no setting depth; there is mate"),
        (",mate=maybe", "mate=maybe is not understood"),
        (",temperature=-1", "temperature=-1 is not understood"),
        (",temperature=inf", "temperature=inf is not understood"),
        (",temperature=1e-320", "temperature=1e-320 is not understood"),
        (":search=3,temperature=1e300", "temperature=1e300 is not understood"),
        (",search=4", "there is no setting search; there is temperature"),
    ],
)
def test_settings_of_networks_that_make_no_sense(run: Path, settings: str, message: str) -> None:
    with pytest.raises(PlayerSpecError, match=message):
        make_player(f"{run}{settings}", threads=1)


def test_devices_that_do_not_exist(run: Path) -> None:
    with pytest.raises(KeiseiError, match=r"device toaster: .*should be auto, cpu"):
        make_player(str(run), device="toaster")


def test_an_untrained_network_is_never_taken_instead(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    with pytest.raises(KeiseiError, match="has no checkpoint yet"):
        make_player(str(tmp_path))


def test_players_are_closed_also_when_the_next_one_cannot_be_made() -> None:
    with pytest.raises(PlayerSpecError), open_players(["alphabeta:1", "nobody"], threads=2):
        pass

"""The strength of a run: its checkpoints, those that can be loaded, on one ladder."""

import json
from pathlib import Path

import pytest

from keisei.checkpoints.rotation import list_checkpoints
from keisei.errors import KeiseiError
from keisei.evaluation import STANDARD_OPPONENTS
from keisei.evaluation.match import MatchSettings
from keisei.evaluation.results import Conditions, ResultStore
from keisei.evaluation.run_strength import (
    STANDARD_GAMES_FACTOR,
    RunStrength,
    load_spread,
    measure_run,
    spread,
)
from keisei.evaluation.strength_plots import draw_run
from keisei.network.loading import device_config
from keisei.players.bots import AlphaBetaPlayer, GreedyPlayer, RandomPlayer
from keisei.players.player import Player
from keisei.players.spec import make_player
from keisei.plotting import png
from tests.tiny_runs import tiny_run

SETTINGS = MatchSettings(games=4, ply_limit=30)
CPU = device_config("cpu", 1)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return tiny_run(tmp_path / "mine", checkpoints=4)


def measured(run: Path, *opponents: Player, checkpoints: int = 2) -> RunStrength:
    with ResultStore(run.parent / "ladder.sqlite3", create=True) as store:
        return measure_run(
            run,
            opponents or (RandomPlayer(), GreedyPlayer()),
            SETTINGS,
            store,
            checkpoints=checkpoints,
            device=CPU,
        )


def test_checkpoints_play_the_opponents_and_are_rated(run: Path) -> None:
    strength = measured(run)
    assert strength.run == "mine"
    assert [checkpoint.timestep for checkpoint in strength.checkpoints] == [64, 256]
    for checkpoint in strength.checkpoints:
        assert list(checkpoint.scores) == ["random", "greedy"]
        assert {score.games for score in checkpoint.scores.values()} == {4}
        assert checkpoint.standing.games == 8
        assert checkpoint.standing.low < checkpoint.standing.elo < checkpoint.standing.high
    assert {opponent.name for opponent in strength.opponents} == {"random", "greedy"}
    assert strength.ladder.anchor == "random"
    assert strength.left_out == ()
    plain = json.loads(json.dumps(strength.as_dict()))
    assert [checkpoint["name"] for checkpoint in plain["checkpoints"]] == ["mine@64", "mine@256"]
    assert plain["checkpoints"][0]["scores"]["greedy"]["games"] == 4
    assert png(draw_run(strength)).startswith(b"\x89PNG")


def test_standard_opponents_play_more_among_each_other(run: Path) -> None:
    measured(run)
    conditions = Conditions.of(SETTINGS)
    with ResultStore(run.parent / "ladder.sqlite3") as store:
        between = store.games_between(RandomPlayer(), GreedyPlayer(), conditions)
        assert between == 4 * STANDARD_GAMES_FACTOR
        before = sum(player.games for player in store.players(conditions))
    measured(run, checkpoints=4)
    with ResultStore(run.parent / "ladder.sqlite3") as store:
        after = sum(player.games for player in store.players(conditions))
    assert after - before == 2 * (2 * 2 * 4), "two more checkpoints, two opponents, four games"


def test_opponents_may_be_anybody_even_the_run_itself(run: Path) -> None:
    newest = make_player(str(run), threads=1)
    other = AlphaBetaPlayer(1, margin=50)
    strength = measured(run, newest, other, other, checkpoints=2)
    assert [list(checkpoint.scores) for checkpoint in strength.checkpoints] == [
        ["mine@256", "alphabeta:1,margin=50"],
        ["alphabeta:1,margin=50"],
    ]
    assert strength.ladder.anchor == "mine@256"
    assert strength.ladder.notes


def test_the_standard_opponents_are_the_bots_that_their_specs_name() -> None:
    """They are recognised by their names."""
    for spec in STANDARD_OPPONENTS:
        player = make_player(spec, threads=1)
        player.close()
        assert player.name == spec


def test_a_bad_checkpoint_is_left_out_and_told_of(run: Path) -> None:
    bad = list_checkpoints(run / "checkpoints")[-1]
    (bad / "weights.safetensors").write_bytes(b"")
    strength = measured(run)
    assert [checkpoint.timestep for checkpoint in strength.checkpoints] == [64, 192]
    (problem,) = strength.left_out
    assert str(bad) in problem
    assert "truncated" in problem


def test_without_a_good_checkpoint_nothing_is_measured(run: Path, tmp_path: Path) -> None:
    for path in list_checkpoints(run / "checkpoints"):
        (path / "weights.safetensors").write_bytes(b"")
    with pytest.raises(KeiseiError, match=r"can be loaded:\n(.*truncated.*\n?){4}$"):
        measured(run)
    with pytest.raises(KeiseiError, match="can be loaded: there are none"):
        measured(tmp_path / "nothing")


def test_checkpoints_are_spread_evenly_and_end_with_the_newest() -> None:
    paths = [Path(str(number)) for number in range(10)]
    assert [int(path.name) for path in spread(paths, 4)] == [0, 3, 6, 9]
    assert spread(paths, 1) == [paths[-1]]
    assert spread(paths, 10) == spread(paths, 99) == paths
    assert spread([], 3) == []


def test_the_same_weights_are_one_player(run: Path) -> None:
    paths = list_checkpoints(run / "checkpoints")
    chosen, problems = load_spread([*paths, paths[-1]], 5, CPU)
    assert [checkpoint.timestep for checkpoint in chosen] == [64, 128, 192, 256]
    assert problems == []

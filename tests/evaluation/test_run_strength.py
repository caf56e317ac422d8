"""The strength of a run: its checkpoints, those that can be loaded, on the scale."""

import json
from pathlib import Path

import pytest

from keisei.checkpoints.rotation import list_checkpoints
from keisei.errors import KeiseiError
from keisei.evaluation import STANDARD_OPPONENTS
from keisei.evaluation.placing import PlacingSettings
from keisei.evaluation.results import Conditions, ResultStore
from keisei.evaluation.run_strength import (
    RunProgress,
    RunStrength,
    load_spread,
    measure_run,
    spread,
)
from keisei.evaluation.scale import current_scale
from keisei.evaluation.strength_plots import draw_run
from keisei.network.loading import device_config
from keisei.players.bots import AlphaBetaPlayer, GreedyPlayer, RandomPlayer
from keisei.players.player import Player
from keisei.players.spec import make_player
from keisei.plotting import png
from tests.evaluation.scales import bot_scale
from tests.tiny_runs import tiny_run

CONDITIONS = Conditions(ply_limit=30)
CPU = device_config("cpu", 1)


@pytest.fixture
def run(tmp_path: Path) -> Path:
    return tiny_run(tmp_path / "mine", checkpoints=4)


def measured(run: Path, *opponents: Player, checkpoints: int = 2) -> RunStrength:
    with ResultStore(run.parent / "ladder.sqlite3", create=True) as store:
        return measure_run(
            run,
            opponents or (RandomPlayer(), GreedyPlayer()),
            store,
            games=4,
            placing=PlacingSettings(max_games=20),
            checkpoints=checkpoints,
            device=CPU,
            scale=bot_scale(CONDITIONS),
            on_progress=SEEN.append,
        )


SEEN: list[RunProgress] = []


def test_checkpoints_play_the_opponents_and_are_placed(run: Path) -> None:
    SEEN.clear()
    strength = measured(run)
    assert strength.run == "mine"
    assert [checkpoint.timestep for checkpoint in strength.checkpoints] == [64, 256]
    for checkpoint in strength.checkpoints:
        assert list(checkpoint.scores) == ["random", "greedy"]
        assert sum(score.games for score in checkpoint.scores.values()) == 20
        assert min(score.games for score in checkpoint.scores.values()) >= 4
        placed = checkpoint.placement
        assert placed.games == 20
        assert placed.low < placed.rating < placed.high
    assert strength.opponents == (("greedy", 1500.0), ("random", 0.0))
    assert strength.left_out == ()
    assert {(now.checkpoint, now.player) for now in SEEN} == {(0, "mine@64"), (1, "mine@256")}
    plain = json.loads(json.dumps(strength.as_dict()))
    assert [checkpoint["name"] for checkpoint in plain["checkpoints"]] == ["mine@64", "mine@256"]
    assert plain["checkpoints"][0]["scores"]["greedy"]["games"] >= 4
    assert plain["scale"] == 1
    assert png(draw_run(strength)).startswith(b"\x89PNG")


def test_only_missing_games_are_played(run: Path) -> None:
    measured(run)
    with ResultStore(run.parent / "ladder.sqlite3") as store:
        before = sum(player.games for player in store.players(CONDITIONS))
    measured(run, checkpoints=4)
    with ResultStore(run.parent / "ladder.sqlite3") as store:
        after = sum(player.games for player in store.players(CONDITIONS))
    assert after - before == 2 * (2 * 20), "two more checkpoints, twenty games each"


def test_opponents_may_be_anybody_even_the_run_itself(run: Path) -> None:
    newest = make_player(str(run), threads=1)
    other = AlphaBetaPlayer(1, margin=50)
    strength = measured(run, newest, other, other, checkpoints=2)
    assert [list(checkpoint.scores) for checkpoint in strength.checkpoints] == [
        ["mine@256", "alphabeta:1,margin=50"],
        ["alphabeta:1,margin=50"],
    ]
    assert strength.opponents == (), "none of them has a known rating"
    assert {checkpoint.placement.games for checkpoint in strength.checkpoints} == {20}


def test_the_standard_opponents_are_references() -> None:
    for spec in STANDARD_OPPONENTS:
        player = make_player(spec, threads=1)
        player.close()
        assert player.name == spec
        assert player.identity in current_scale().ratings


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

"""The Gymnasium environment of one game: Gymnasium's checker, observations, rewards, errors."""

import pickle
from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env
from gymnasium.utils.env_match import check_environments_match

from keisei.constants import NUM_ACTIONS
from keisei.errors import IllegalMoveError
from keisei.shogi import (
    Color,
    Move,
    PolicyOutputMapper,
    ShogiGame,
    Termination,
    feature_spec,
)
from keisei.shogi.envs import ShogiEnv
from keisei.shogi.notation.sfen import STARTPOS_SFEN
from keisei.shogi.packed import pack_game

MATE_IN_ONE = "4k4/9/4P4/9/9/9/9/9/4K4 b G 1"
DECLARATION_NEXT = "4K4/GGGGSSSS1/BBRR5/9/9/9/9/9/8k w - 1"
BARE_KINGS = "4k4/9/9/9/9/9/9/9/4K4 b - 1"

mapper = PolicyOutputMapper()


def started(start: str = STARTPOS_SFEN, **settings: Any) -> ShogiEnv:
    env = ShogiEnv(**settings)
    env.reset(seed=0, options={"start": start})
    return env


def action(env: ShogiEnv, move: str) -> int:
    return mapper.index(Move.from_usi(move), env.game.turn)


# ---- conformance; every warning of Gymnasium is an error in these tests ----


@pytest.mark.parametrize("settings", [{}, {"opening_plies": 3, "features": "core46+all"}])
def test_the_checker_of_gymnasium_passes(settings: dict[str, Any]) -> None:
    check_env(gymnasium.make("keisei/Shogi-v0", **settings).unwrapped)


def test_a_game_under_gymnasiums_passive_checker() -> None:
    env = gymnasium.make("keisei/Shogi-v0", ply_limit=60)
    observation, _ = env.reset(seed=1)
    env.action_space.seed(1)
    ended = False
    while not ended:
        chosen = env.action_space.sample(observation["action_mask"])
        observation, _, terminated, truncated, _ = env.step(chosen)
        ended = terminated or truncated
    assert truncated


def test_equal_seeds_give_equal_environments() -> None:
    made = [gymnasium.make("keisei/Shogi-v0", opening_plies=6) for _ in range(2)]
    check_environments_match(made[0], made[1], num_steps=20, seed=5)


def test_a_pickled_environment_plays_on_alike() -> None:
    env = started()
    env.step(action(env, "7g7f"))
    twin = pickle.loads(pickle.dumps(env))
    twin.step(action(twin, "3c3d"))
    assert twin.game.usi_position() == "position startpos moves 7g7f 3c3d"
    assert env.game.usi_position() == "position startpos moves 7g7f"


# ---- the stream ----


def test_observations_are_those_of_the_game_at_every_ply() -> None:
    env = ShogiEnv(features="core46+all", ply_limit=100)
    observation, info = env.reset(seed=3)
    game = ShogiGame(ply_limit=100)
    spec = feature_spec("core46+all")
    env.action_space.seed(3)
    ended = False
    while not ended:
        np.testing.assert_array_equal(observation["observation"], spec.encode(pack_game(game))[0])
        assert set(np.flatnonzero(observation["action_mask"])) == set(game.legal_actions)
        assert info == {"turn": game.turn, "ply": game.ply}
        chosen = env.action_space.sample(observation["action_mask"])
        observation, _, terminated, truncated, info = env.step(chosen)
        game.push_action(int(chosen))
        ended = terminated or truncated
    np.testing.assert_array_equal(observation["observation"], spec.encode(pack_game(game))[0])
    assert not observation["action_mask"].any()


def test_a_winning_move_is_rewarded() -> None:
    env = started(MATE_IN_ONE)
    _, reward, terminated, truncated, info = env.step(action(env, "G*5b"))
    assert (reward, terminated, truncated) == (1.0, True, False)
    assert info == {"turn": 1, "ply": 1, "termination": Termination.CHECKMATE, "winner": 0}


def test_a_move_that_lets_the_other_side_declare_is_punished() -> None:
    env = started(DECLARATION_NEXT)
    _, reward, terminated, _, info = env.step(action(env, "1i1h"))
    assert (reward, terminated) == (-1.0, True)
    assert (info["termination"], info["winner"]) == (Termination.DECLARATION, Color.BLACK)


def test_draws_terminate_and_the_ply_limit_truncates() -> None:
    env = started(BARE_KINGS, ply_limit=13)
    for move in ["5i4i", "5a4a", "4i5i", "4a5a"] * 3:
        _, reward, terminated, truncated, info = env.step(action(env, move))
    assert (reward, terminated, truncated) == (0.0, True, False)
    assert info["termination"] == Termination.REPETITION

    env = started(BARE_KINGS, ply_limit=12)
    for move in ["5i4i", "5a4a", "4i5i", "4a5a"] * 2 + ["5i4i", "5a4a", "4i5i", "4a4b"]:
        _, reward, terminated, truncated, info = env.step(action(env, move))
    assert (reward, terminated, truncated) == (0.0, False, True)
    assert (info["termination"], info["winner"]) == (Termination.PLY_LIMIT, -1)


def test_seeds_decide_openings() -> None:
    env = ShogiEnv(opening_plies=4)

    def opening(seed: int | None) -> str:
        env.reset(seed=seed)
        return env.game.usi_position()

    first, second = opening(1), opening(None)
    assert (opening(1), opening(None)) == (first, second)
    assert len({first, second, opening(2)}) == 3


# ---- mistakes ----


def test_an_illegal_action_loses() -> None:
    env = started()
    env.step(action(env, "7g7f"))
    observation, reward, terminated, truncated, info = env.step(0)
    assert (reward, terminated, truncated) == (-1.0, True, False)
    assert info == {"turn": 1, "ply": 1, "termination": Termination.ILLEGAL_MOVE, "winner": 0}
    assert not observation["action_mask"].any()
    assert env.game.usi_position() == "position startpos moves 7g7f"


def test_an_illegal_action_raises_where_that_is_asked_for() -> None:
    env = started(illegal="raise")
    with pytest.raises(IllegalMoveError, match=r"action 13240, move P\*5e: Black has no pawn"):
        env.step(13_240)
    _, reward, terminated, _, _ = env.step(action(env, "7g7f"))
    assert (reward, terminated) == (0.0, False)


@pytest.mark.parametrize("illegal", ["lose", "raise"])
@pytest.mark.parametrize("number", [-1, NUM_ACTIONS])
def test_what_is_no_action_at_all_always_raises(illegal: str, number: int) -> None:
    env = started(illegal=illegal)
    with pytest.raises(IllegalMoveError, match=f"action {number} is out of range"):
        env.step(number)


def test_calls_in_the_wrong_order_are_refused() -> None:
    env = ShogiEnv()
    for call in (lambda: env.step(0), env.render):
        with pytest.raises(gymnasium.error.ResetNeeded, match=r"reset\(\) first"):
            call()
    env = started(MATE_IN_ONE)
    env.step(action(env, "G*5b"))
    with pytest.raises(gymnasium.error.ResetNeeded, match="the game is over"):
        env.step(0)


def test_wrong_settings_are_refused() -> None:
    with pytest.raises(ValueError, match="illegal='ignore': it must be one of lose, raise"):
        ShogiEnv(illegal="ignore")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="render mode 'rgb_array'"):
        ShogiEnv(render_mode="rgb_array")


def test_boards_are_drawn(capsys: pytest.CaptureFixture[str]) -> None:
    assert str(started(render_mode="ansi").render()).count("\n") > 9
    assert str(started(render_mode="svg").render()).startswith("<svg")
    assert started(render_mode="human").render() is None
    assert capsys.readouterr().out.count("Black to move") == 2  # by reset, and by render

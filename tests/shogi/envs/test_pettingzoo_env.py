"""The PettingZoo environment: conformance suites, and comparison with `ShogiGame`."""

import copy
import pickle
import warnings
from typing import Any

import numpy as np
import pytest
from pettingzoo.test import api_test, render_test, seed_test  # type: ignore[import-untyped]

from keisei.constants import NUM_ACTIONS
from keisei.errors import IllegalMoveError
from keisei.shogi import (
    Color,
    DeclarationRule,
    Move,
    PolicyOutputMapper,
    ShogiGame,
    Termination,
    feature_spec,
)
from keisei.shogi.envs import ShogiAECEnv, shogi_v0
from keisei.shogi.notation.sfen import STARTPOS_SFEN
from keisei.shogi.packed import pack_game

MATE_IN_ONE = "4k4/9/4P4/9/9/9/9/9/4K4 b G 1"
DECLARATION_NEXT = "4K4/GGGGSSSS1/BBRR5/9/9/9/9/9/8k w - 1"
BARE_KINGS = "4k4/9/9/9/9/9/9/9/4K4 b - 1"

mapper = PolicyOutputMapper()

WARNINGS = {
    # api_test spares its own board games these two by name.
    "Observation is not a NumPy array",
    "Observation space for each agent probably should be gymnasium.spaces.box or "
    "gymnasium.spaces.discrete",
    # It looks at the observation of an agent whose game is over.
    "Action mask numpy array is all zeros (no legal actions).",
    # It passes an option of no environment.
    "unknown option of reset: 'options'; the only one is 'start'",
}
"""Warnings of `api_test` for every environment whose observations are dictionaries."""


def started(start: str = STARTPOS_SFEN, **settings: Any) -> ShogiAECEnv:
    env = ShogiAECEnv(**settings)
    env.reset(seed=0, options={"start": start})
    return env


def play(env: ShogiAECEnv, *moves: str) -> None:
    for move in moves:
        env.step(mapper.index(Move.from_usi(move), env.game.turn))


# ---- conformance ----


@pytest.mark.parametrize("make", [shogi_v0.env, shogi_v0.raw_env])
def test_api(make: Any) -> None:
    with warnings.catch_warnings(record=True) as remarks:
        warnings.simplefilter("always")
        api_test(make(ply_limit=120, opening_plies=3), num_cycles=1000)
    assert {str(remark.message) for remark in remarks} <= WARNINGS


@pytest.mark.parametrize("make", [shogi_v0.env, shogi_v0.raw_env])
def test_seeds(make: Any) -> None:
    seed_test(lambda: make(ply_limit=120, opening_plies=3), num_cycles=500)


def test_rendering(capsys: pytest.CaptureFixture[str]) -> None:
    render_test(shogi_v0.env, custom_tests={"svg": lambda text: text.startswith("<svg")})
    assert "Black in hand" in capsys.readouterr().out  # what "human" printed


def test_a_pickled_environment_plays_on_alike() -> None:
    env = started(opening_plies=2)
    play(env, "7g7f")
    for twin in (pickle.loads(pickle.dumps(env)), copy.deepcopy(env)):
        play(twin, "3c3d")
        assert twin.game.usi_position() == "position startpos moves 7g7f 3c3d"
        assert env.game.usi_position() == "position startpos moves 7g7f"


# ---- what agents see ----


def test_observations_are_those_of_the_game_at_every_ply() -> None:
    env = ShogiAECEnv(features="core46+all", ply_limit=150)
    env.reset(seed=3)
    game = ShogiGame(ply_limit=150)
    spec = feature_spec("core46+all")
    for agent in env.agent_iter():
        observation, _, termination, truncation, _ = env.last()
        if termination or truncation:
            break
        assert agent == ("black_0", "white_0")[game.turn]
        np.testing.assert_array_equal(observation["observation"], spec.encode(pack_game(game))[0])
        legal = {mapper.index(move, game.turn) for move in game.legal_moves}
        assert set(np.flatnonzero(observation["action_mask"]).tolist()) == legal
        action = env.action_space(agent).sample(observation["action_mask"])
        env.step(action)
        game.push_action(int(action))
    assert game.ply > 50


def test_the_board_is_turned_for_white() -> None:
    env = started()
    first = env.observe("black_0")
    play(env, "7g7f")
    env.reset(options={"start": "lnsgkgsnl/1r5b1/ppppppppp/9/9/9/PPPPPPPPP/1B5R1/LNSGKGSNL w - 1"})
    second = env.observe("white_0")  # the same position with colours swapped and the board turned
    is_black = feature_spec("core46").plane_names.index("mover is Black")
    np.testing.assert_array_equal(first["action_mask"], second["action_mask"])
    assert first["observation"][is_black].all()
    assert not second["observation"][is_black].any()
    for seen in (first, second):
        seen["observation"][is_black] = 0
    np.testing.assert_array_equal(first["observation"], second["observation"])


def test_both_agents_can_be_observed_but_only_one_may_move() -> None:
    env = started()
    play(env, "7g7f")
    white, black = env.observe("white_0"), env.observe("black_0")
    assert white["action_mask"].sum() == 30
    assert not black["action_mask"].any()
    own_pawns = np.flatnonzero(black["observation"][0])
    assert own_pawns.tolist() == [47, *range(54, 56), *range(57, 63)]  # 7f, and rank g without 7g
    for agent, seen in (("white_0", white), ("black_0", black)):
        assert env.observation_space(agent).contains(seen)


def test_every_observation_is_a_new_one() -> None:
    env = started()
    first = env.observe("black_0")
    kept = first["observation"].copy()
    play(env, "7g7f", "3c3d")
    env.observe("black_0")
    np.testing.assert_array_equal(first["observation"], kept)


# ---- endings ----


def test_mate_wins_and_loses() -> None:
    env = started(MATE_IN_ONE)
    play(env, "G*5b")
    assert env.rewards == {"black_0": 1.0, "white_0": -1.0}
    assert env.terminations == {"black_0": True, "white_0": True}
    assert env.truncations == {"black_0": False, "white_0": False}
    ending = {"turn": 1, "ply": 1, "termination": Termination.CHECKMATE, "winner": Color.BLACK}
    assert env.infos == {"black_0": ending, "white_0": ending}
    assert not any(env.observe(agent)["action_mask"].any() for agent in env.possible_agents)


def test_the_ply_limit_truncates() -> None:
    env = started(ply_limit=2)
    play(env, "7g7f")
    assert not any(env.truncations.values())
    play(env, "3c3d")
    assert env.truncations == {"black_0": True, "white_0": True}
    assert env.terminations == {"black_0": False, "white_0": False}
    assert env.rewards == {"black_0": 0.0, "white_0": 0.0}
    assert env.infos["black_0"]["termination"] == Termination.PLY_LIMIT
    assert env.infos["black_0"]["winner"] == -1
    assert not env.observe("black_0")["action_mask"].any()


def test_mate_on_the_last_allowed_ply_is_mate() -> None:
    env = started(MATE_IN_ONE, ply_limit=1, starts=[MATE_IN_ONE])
    play(env, "G*5b")
    assert env.terminations["white_0"]
    assert not env.truncations["white_0"]


def test_fourfold_repetition_is_a_draw_that_terminates() -> None:
    env = started(BARE_KINGS)
    play(env, *["5i4i", "5a4a", "4i5i", "4a5a"] * 3)
    assert env.terminations == {"black_0": True, "white_0": True}
    assert env.rewards == {"black_0": 0.0, "white_0": 0.0}
    assert env.infos["white_0"]["termination"] == Termination.REPETITION


def test_a_side_that_may_declare_wins_at_once_unless_that_is_off() -> None:
    env = started(DECLARATION_NEXT)
    play(env, "1i1h")
    assert env.rewards == {"black_0": 1.0, "white_0": -1.0}
    assert env.infos["black_0"]["termination"] == Termination.DECLARATION
    env = started(DECLARATION_NEXT, declaration=DeclarationRule.OFF)
    play(env, "1i1h")
    assert not any(env.terminations.values())


def test_both_agents_get_their_rewards_and_leave() -> None:
    env = shogi_v0.env()
    env.reset(options={"start": MATE_IN_ONE})
    env.step(mapper.index(Move.from_usi("G*5b"), Color.BLACK))
    rewards = {}
    for agent in env.agent_iter():
        _, reward, termination, _, _ = env.last()
        assert termination
        rewards[agent] = reward
        env.step(None)
    assert rewards == {"black_0": 1.0, "white_0": -1.0}
    assert env.agents == []
    env.reset()
    assert env.agents == ["black_0", "white_0"]


# ---- beginnings ----


def test_white_begins_where_the_start_says_so() -> None:
    assert started(DECLARATION_NEXT).agent_selection == "white_0"


def test_seeds_decide_openings() -> None:
    env = ShogiAECEnv(opening_plies=4)

    def openings(seed: int) -> list[str]:
        env.reset(seed=seed)
        found = [env.game.usi_position()]
        for _ in range(3):
            env.reset()  # continues with the same generator
            found.append(env.game.usi_position())
        return found

    assert openings(1) == openings(1)
    assert len(set(openings(1) + openings(2))) == 8


def test_an_unknown_option_gives_a_warning() -> None:
    env = ShogiAECEnv()
    with pytest.warns(
        UserWarning, match="unknown option of reset: 'sfen'; the only one is 'start'"
    ):
        env.reset(options={"sfen": MATE_IN_ONE})


# ---- mistakes ----


@pytest.mark.parametrize(
    ("action", "message"),
    [
        (
            mapper.index(Move.from_usi("7g7e"), Color.BLACK),
            "cannot go from 7g",
        ),
        (13_240, r"black_0: action 13240, move P\*5e: Black has no pawn in hand"),
        (NUM_ACTIONS, "black_0: action 13527 is out of range, 0 to 13526"),
        (-1, "out of range"),
        (None, "black_0 is to move"),
    ],
)
def test_illegal_actions_raise_and_change_nothing(action: int | None, message: str) -> None:
    env = started()
    before = env.game.sfen()
    with pytest.raises(IllegalMoveError, match=message):
        env.step(action)
    assert env.game.sfen() == before
    assert env.agent_selection == "black_0"
    play(env, "7g7f")


def test_illegal_actions_lose_in_the_wrapped_environment() -> None:
    env = shogi_v0.env()
    env.reset()
    env.step(0)
    results = {}
    for agent in env.agent_iter():
        observation, reward, termination, _, _ = env.last()
        assert termination
        assert not observation["action_mask"].any()
        results[agent] = reward
        env.step(None)
    assert results == {"black_0": -1.0, "white_0": 0.0}


def test_wrong_settings_are_refused() -> None:
    with pytest.raises(
        ValueError, match="render mode 'rgb_array': it must be one of human, ansi, svg"
    ):
        ShogiAECEnv(render_mode="rgb_array")
    with pytest.raises(ValueError, match="core47"):
        ShogiAECEnv(features="core47")


def test_after_the_game_agents_can_only_leave() -> None:
    env = started(MATE_IN_ONE)
    play(env, "G*5b")
    with pytest.raises(ValueError, match="when an agent is dead"):
        env.step(0)


def test_rendering_without_a_mode_draws_nothing() -> None:
    env = started()
    with pytest.warns(UserWarning, match="without a render_mode"):
        assert env.render() is None

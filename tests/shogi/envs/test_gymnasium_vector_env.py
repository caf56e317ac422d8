"""The Gymnasium vector environment, compared with Gymnasium's own vector of single ones."""

from typing import Any

import gymnasium
import numpy as np
import pytest
from gymnasium.utils.env_checker import data_equivalence
from gymnasium.vector import AutoresetMode, SyncVectorEnv
from gymnasium.vector.utils import batch_space

from keisei.constants import NUM_ACTIONS
from keisei.errors import IllegalMoveError
from keisei.shogi import (
    Color,
    Move,
    PolicyOutputMapper,
    Termination,
)
from keisei.shogi.envs import ShogiEnv, ShogiVectorEnv

MATE_IN_ONE = "4k4/9/4P4/9/9/9/9/9/4K4 b G 1"
NEAR_THE_END = "4k4/9/3PPP3/9/9/9/3ppp3/9/4K4 b 2G2Srb2g2srb 1"


def results(env: Any, actions: Any) -> dict[str, Any]:
    names = ("observations", "rewards", "terminations", "truncations", "infos")
    return dict(zip(names, env.step(actions), strict=True))


# ---- the same as N single environments ----


@pytest.mark.parametrize(
    ("settings", "endings"),
    [
        (
            {"starts": [NEAR_THE_END], "ply_limit": 24, "features": "core46+all"},
            {Termination.CHECKMATE, Termination.PLY_LIMIT, Termination.ILLEGAL_MOVE},
        ),
        ({"ply_limit": 30}, {Termination.PLY_LIMIT, Termination.ILLEGAL_MOVE}),
    ],
)
@pytest.mark.parametrize("threads", [1, 2])
def test_it_equals_gymnasiums_vector_of_single_environments(
    settings: dict[str, Any], endings: set[int], threads: int
) -> None:
    number = 5
    fast = ShogiVectorEnv(number, threads=threads, **settings)
    slow: Any = SyncVectorEnv(
        [lambda: ShogiEnv(**settings)] * number, autoreset_mode=AutoresetMode.SAME_STEP
    )
    assert fast.observation_space == slow.observation_space
    assert fast.action_space == slow.action_space
    assert fast.single_observation_space == slow.single_observation_space
    assert fast.single_action_space == slow.single_action_space
    assert data_equivalence(fast.reset(seed=0), slow.reset(seed=0), exact=True)
    chance = np.random.default_rng(0)
    seen: set[int] = set()
    for _ in range(100):
        actions = fast.games.sample_actions()
        blind = chance.random(number) < 0.02
        actions[blind] = chance.integers(NUM_ACTIONS, size=blind.sum())
        mine, theirs = results(fast, actions), results(slow, actions)
        for name, value in theirs.items():
            assert data_equivalence(mine[name], value, exact=True), name
        if "final_info" in mine["infos"]:
            final = mine["infos"]["final_info"]
            seen |= set(final["termination"][final["_termination"]].tolist())
    assert seen == endings
    fast.close()
    slow.close()


def test_random_openings_are_positions_that_single_environments_agree_on() -> None:
    envs = ShogiVectorEnv(4, features="core46+all", opening_plies=7)
    observations, infos = envs.reset(seed=1)
    positions = [envs.games.game(index).usi_position() for index in range(4)]
    assert len(set(positions)) == 4
    for index, position in enumerate(positions):
        single = ShogiEnv(features="core46+all")
        observation, info = single.reset(options={"start": position})
        assert info == {"turn": infos["turn"][index], "ply": infos["ply"][index]}
        for name, value in observation.items():
            np.testing.assert_array_equal(observations[name][index], value)


# ---- as Gymnasium wants vector environments to be ----


def test_make_vec_gives_the_fast_one() -> None:
    envs = gymnasium.make_vec("keisei/Shogi-v0", num_envs=3, features="core46+check", threads=2)
    assert isinstance(envs.unwrapped, ShogiVectorEnv)
    assert envs.num_envs == 3
    assert envs.metadata["autoreset_mode"] is AutoresetMode.SAME_STEP
    assert envs.single_action_space == gymnasium.spaces.Discrete(NUM_ACTIONS)
    assert envs.action_space == batch_space(envs.single_action_space, 3)
    assert envs.observation_space == batch_space(envs.single_observation_space, 3)
    assert envs.spec is not None
    again = gymnasium.make_vec(envs.spec)
    assert isinstance(again, ShogiVectorEnv)
    assert again.games.features.name == "core46+check"
    envs.close()
    envs.close()


def test_make_vec_can_vectorize_the_single_one_too() -> None:
    envs = gymnasium.make_vec("keisei/Shogi-v0", num_envs=2, vectorization_mode="sync")
    assert isinstance(envs, SyncVectorEnv)
    observations, _ = envs.reset(seed=0)
    assert observations in envs.observation_space
    envs.close()


def test_results_have_the_right_types_and_lie_in_their_spaces() -> None:
    envs = ShogiVectorEnv(3, features="core46+all")
    observations, _ = envs.reset(seed=0)
    assert observations in envs.observation_space
    envs.action_space.seed(0)
    for actions in (envs.games.sample_actions(), envs.action_space.sample(), [0, 1, 2]):
        observations, rewards, terminations, truncations, infos = envs.step(actions)
        assert observations in envs.observation_space
        assert (str(rewards.dtype), rewards.shape) == ("float64", (3,))
        assert (str(terminations.dtype), terminations.shape) == ("bool", (3,))
        assert (str(truncations.dtype), truncations.shape) == ("bool", (3,))
    assert all(final in envs.single_observation_space for final in infos["final_obs"])


def test_wrappers_of_gymnasium_accept_it() -> None:
    envs: Any = gymnasium.wrappers.vector.RecordEpisodeStatistics(
        ShogiVectorEnv(2, starts=[NEAR_THE_END], ply_limit=4)
    )
    envs = gymnasium.wrappers.vector.DictInfoToList(envs)
    envs.reset(seed=0)
    for _ in range(4):
        *_, infos = envs.step(envs.unwrapped.games.sample_actions())
    assert [info["episode"]["l"] for info in infos] == [4, 4]
    assert [info["final_info"]["ply"] for info in infos] == [4, 4]


def test_masks_sample_legal_actions() -> None:
    envs = ShogiVectorEnv(2, illegal="raise", opening_plies=3)
    observations, _ = envs.reset(seed=0)
    for _ in range(20):
        actions = envs.action_space.sample(mask=tuple(observations["action_mask"]))
        observations, *_ = envs.step(actions)


@pytest.mark.parametrize("copy", [True, False])
def test_observations_are_kept_or_overwritten_as_asked_for(copy: bool) -> None:
    envs = ShogiVectorEnv(2, copy=copy, opening_plies=9)
    first, _ = envs.reset(seed=0)
    kept = {name: value.copy() for name, value in first.items()}
    second, *_ = envs.step(envs.games.sample_actions())
    for name, value in first.items():
        assert np.shares_memory(value, second[name]) is not copy
        assert np.array_equal(value, kept[name]) is copy


def test_rewards_and_endings_are_the_callers_to_keep() -> None:
    envs = ShogiVectorEnv(1, starts=[MATE_IN_ONE])
    envs.reset(seed=0)
    mate = PolicyOutputMapper().index(Move.from_usi("G*5b"), Color.BLACK)
    _, rewards, terminations, _, infos = envs.step([mate])
    envs.step(envs.games.sample_actions())
    assert (rewards.tolist(), terminations.tolist()) == ([1.0], [True])
    assert infos["final_info"]["winner"].tolist() == [0]
    assert infos["turn"].tolist() == [0]  # of the next game


# ---- beginnings ----


def test_seeds_decide_openings_and_go_on_from_there() -> None:
    envs = ShogiVectorEnv(3, opening_plies=5)

    def positions(seed: int | None) -> list[str]:
        envs.reset(seed=seed)
        return [envs.games.game(index).usi_position() for index in range(3)]

    first, second = positions(1), positions(None)
    assert (positions(1), positions(None)) == (first, second)
    assert len({*first, *second, *positions(2)}) == 9
    assert envs.np_random_seed == 2


def test_without_a_seed_every_environment_is_different() -> None:
    positions = set()
    for _ in range(3):
        envs = ShogiVectorEnv(1, opening_plies=5)
        envs.reset()
        positions.add(envs.games.game(0).sfen())
    assert len(positions) == 3


def test_options_of_reset_are_refused() -> None:
    envs = ShogiVectorEnv(1)
    with pytest.raises(ValueError, match=r"got 'start'; .*starts=\[...\]"):
        envs.reset(options={"start": MATE_IN_ONE})
    envs.reset(options={})


# ---- mistakes ----


def test_illegal_actions_raise_where_that_is_asked_for() -> None:
    envs = ShogiVectorEnv(3, illegal="raise")
    before, _ = envs.reset(seed=0)
    actions = envs.games.sample_actions()
    actions[1] = 13_240
    with pytest.raises(IllegalMoveError, match=r"game 1: action 13240, move P\*5e: Black has no"):
        envs.step(actions)
    np.testing.assert_array_equal(envs.games.planes(), before["observation"])


def test_a_lost_game_can_be_looked_at() -> None:
    envs = ShogiVectorEnv(2)
    envs.reset(seed=0)
    envs.step(envs.games.sample_actions())
    lost = envs.games.game(1).usi_position()
    legal = int(envs.games.legal_actions[0, 0])
    envs.step([legal, 0])
    assert envs.games.finished_game(1).usi_position() == lost
    assert envs.games.game(1).ply == 0
    assert envs.games.game(0).ply == 2


def test_what_is_no_action_at_all_always_raises() -> None:
    envs = ShogiVectorEnv(2)
    envs.reset(seed=0)
    legal = int(envs.games.legal_actions[0, 0])
    for number in (-1, NUM_ACTIONS):
        with pytest.raises(IllegalMoveError, match=f"game 1: action {number} is out of range"):
            envs.step([legal, number])
        with pytest.raises(IllegalMoveError, match=f"game 1: action {number} is out of range"):
            envs.step([0, number])
    with pytest.raises(ValueError, match="2 integers"):
        envs.step([legal])
    assert envs.games.game(0).ply == 0


def test_wrong_settings_are_refused() -> None:
    with pytest.raises(ValueError, match="illegal='ignore'"):
        ShogiVectorEnv(1, illegal="ignore")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="render mode 'human': it must be one of ansi, svg"):
        ShogiVectorEnv(1, render_mode="human")
    with pytest.raises(ValueError, match="num_games is 0"):
        ShogiVectorEnv(0)


def test_boards_are_drawn() -> None:
    envs = ShogiVectorEnv(2, render_mode="svg")
    envs.reset(seed=0)
    assert [str(board)[:4] for board in envs.render()] == ["<svg", "<svg"]
    envs = ShogiVectorEnv(2)
    with pytest.warns(UserWarning, match="without a render_mode"):
        assert envs.render() == (None, None)

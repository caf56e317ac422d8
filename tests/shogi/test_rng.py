"""Chance that belongs to a game: right in its shares, and the same whoever plays beside it."""

import numpy as np

from keisei.selfplay.source import RunSeeds
from keisei.shogi.rng import draw_moves, toss_coins
from keisei.shogi.vector import VectorShogi
from keisei.shogi.vector_kernels import random_states


def test_moves_are_drawn_by_their_probability() -> None:
    probabilities = np.array([0.5, 0.0, 0.3, 0.2, 0.0])
    with np.errstate(divide="ignore"):
        log_probs = np.log(probabilities).astype(np.float32)
    states = random_states(1, 20_000)
    columns = draw_moves(np.tile(log_probs, (20_000, 1)), states)
    shares = np.bincount(columns, minlength=5) / 20_000
    assert np.allclose(shares, probabilities, atol=0.015)
    assert shares[1] == shares[4] == 0.0


def test_coins_are_fair_and_states_move_on() -> None:
    states = random_states(2, 10_000)
    first, second = toss_coins(states), toss_coins(states)
    assert 0.47 < first.mean() < 0.53
    assert 0.47 < (first == second).mean() < 0.53


def test_a_game_has_the_same_chance_wherever_it_is_played() -> None:
    whole = random_states(7, 12)
    assert np.array_equal(
        np.concatenate([random_states(7, 4, first) for first in (0, 4, 8)]), whole
    )
    env = VectorShogi(6, seed=3, opening_plies=8)
    part = VectorShogi(2, seed=3, opening_plies=8, first_game=4)
    assert [part.game(i).sfen() for i in range(2)] == [env.game(i).sfen() for i in (4, 5)]


def test_the_seeds_of_a_run_differ_from_each_other() -> None:
    seeds = [*RunSeeds.of(0), *RunSeeds.of(1)]
    assert len(set(seeds)) == len(seeds)
    assert RunSeeds.of(5) == RunSeeds.of(5)

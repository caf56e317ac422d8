"""Random numbers of games: their distribution, and that they do not depend on other games."""

import numpy as np

from keisei.selfplay.source import RunSeeds
from keisei.shogi.rng import coin_flips, game_rng_states, sample_moves
from keisei.shogi.vector import VectorShogi


def test_moves_are_sampled_by_their_probability() -> None:
    probabilities = np.array([0.5, 0.0, 0.3, 0.2, 0.0])
    with np.errstate(divide="ignore"):
        log_probs = np.log(probabilities).astype(np.float32)
    rng_states = game_rng_states(1, 20_000)
    legal_indices = sample_moves(np.tile(log_probs, (20_000, 1)), rng_states)
    shares = np.bincount(legal_indices, minlength=5) / 20_000
    assert np.allclose(shares, probabilities, atol=0.015)
    assert shares[1] == shares[4] == 0.0


def test_coin_flips_are_fair_and_advance_the_states() -> None:
    rng_states = game_rng_states(2, 10_000)
    first, second = coin_flips(rng_states), coin_flips(rng_states)
    assert 0.47 < first.mean() < 0.53
    assert 0.47 < (first == second).mean() < 0.53


def test_the_random_numbers_of_a_game_do_not_depend_on_the_environment() -> None:
    whole = game_rng_states(7, 12)
    assert np.array_equal(
        np.concatenate([game_rng_states(7, 4, first) for first in (0, 4, 8)]), whole
    )
    env = VectorShogi(6, seed=3, opening_plies=8)
    part = VectorShogi(2, seed=3, opening_plies=8, first_game=4)
    assert [part.game(i).sfen() for i in range(2)] == [env.game(i).sfen() for i in (4, 5)]


def test_the_seeds_of_a_run_differ_from_each_other() -> None:
    seeds = [*RunSeeds.of(0), *RunSeeds.of(1)]
    assert len(set(seeds)) == len(seeds)
    assert RunSeeds.of(5) == RunSeeds.of(5)

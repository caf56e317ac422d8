"""Tree search: proofs are exact, simulations are spent as planned, and it improves the policy."""

import numpy as np
import pytest

from keisei.errors import KeiseiError
from keisei.search.mates import MateSearch
from keisei.search.mcts import TreeSearch
from keisei.search.puct import Puct
from keisei.shogi.game import ShogiGame
from keisei.shogi.material import material_potentials
from keisei.shogi.vector import VectorShogi
from tests.positions import random_games
from tests.predictors import KnownPredictor, zero_value
from tests.sampling import sample

pytestmark = pytest.mark.kernels


def search_at(
    sfen: str,
    simulations: int,
    *,
    material: bool = False,
    mate_plies: int = 0,
    moves: tuple[str, ...] = (),
    ply_limit: int = 512,
) -> tuple[str, float]:
    """(best move, its value) after some moves."""
    env = VectorShogi(1, starts=[sfen], ply_limit=ply_limit)
    for move in moves:
        legal = [m.usi for m in env.game(0).legal_moves]
        env.step([int(env.legal_actions[0, legal.index(move)])])
    search = TreeSearch(
        KnownPredictor(value=material_potentials if material else zero_value),
        simulations,
        mate_plies=mate_plies,
        puct=Puct(c_puct=2.0, fpu_reduction=0.0),  # this policy knows nothing
    )
    result = search.search(env, np.arange(1), np.random.default_rng(0))
    return env.game(0).legal_moves[int(result.legal_indices[0])].usi, float(result.values[0])


def mate_length(game: ShogiGame) -> int:
    """Plies of the shortest mate, 0 if there is none in three."""
    legal = game.legal_actions
    positions = np.array([game.position], dtype=game.position.dtype).view(np.recarray)
    counts = np.array([len(legal)], dtype=np.int32)
    for plies in (1, 3):
        if MateSearch(plies).find(positions, legal[None, :], counts)[0] >= 0:
            return plies
    return 0


def test_every_simulation_is_a_visit_and_the_environment_is_left_alone() -> None:
    env = VectorShogi(6, seed=3, opening_plies=20)
    before = env.state()
    network = KnownPredictor()
    simulations = sample(40, 10)
    search = TreeSearch(network, simulations, mate_plies=0)
    result = search.search(env, np.array([0, 2, 5]), np.random.default_rng(0))
    assert (result.visits.sum(axis=1) == simulations).all()
    assert sum(map(len, network.batches)) <= 3 * (simulations + 1)
    assert (result.legal_indices < env.legal_counts[[0, 2, 5]]).all()
    after = env.state()
    assert all(np.array_equal(before[name], after[name]) for name in before)


def test_games_are_searched_as_if_each_were_alone() -> None:
    env = VectorShogi(4, seed=9, opening_plies=30)
    search = TreeSearch(KnownPredictor(), sample(30, 8))
    together = search.search(env, np.arange(4), np.random.default_rng(0))
    for game in range(4):
        alone = search.search(env, np.array([game]), np.random.default_rng(0))
        assert alone.legal_indices[0] == together.legal_indices[game]
        assert alone.values[0] == together.values[game]


def test_it_takes_what_hangs_and_leaves_what_is_protected() -> None:
    free = "4k4/9/9/4r4/9/9/4R4/9/4K4 b - 1"
    assert search_at(free, 60, material=True)[0] == "5g5d"
    guarded = "4k4/9/4g4/4p4/9/9/4R4/9/4K4 b - 1"
    assert search_at(guarded, 200, material=True)[0] != "5g5d"


def test_a_mate_is_proven_after_one_visit_of_the_move() -> None:
    """Black has few moves, so all of them are considered."""
    move, value = search_at("4k4/9/3+P+P4/9/9/9/9/9/4K4 b - 1", 16)
    assert (move[2:], value) == ("5b", 1.0)


def test_a_mate_in_three_is_found_by_the_mate_search_at_the_root() -> None:
    for game in random_games(seed=3, plies=300):
        if not game.in_check and mate_length(game) == 3:
            break
    for plies, value in ((1, 0.0), (3, 1.0)):
        assert search_at(game.sfen(), 1, mate_plies=plies, ply_limit=1_000)[1] == value


def test_a_proven_loss_is_avoided() -> None:
    """Black is threatened with G*5h mate; only moves that stop it are not lost at once."""
    sfen = "4k4/9/9/9/9/9/4p4/9/3LKL3 b - 1"
    env = VectorShogi(1, starts=[sfen.replace(" b - ", " b g ")])
    search = TreeSearch(KnownPredictor(value=zero_value), 200, mate_plies=0)
    legal_index = int(search.search(env, np.arange(1), np.random.default_rng(0)).legal_indices[0])
    env.step([int(env.legal_actions[0, legal_index])])
    assert env.mates_in_one()[0] == -1


def test_a_repetition_counts_the_moves_before_the_search() -> None:
    """A rook behind, White is glad to repeat for the fourth time."""
    sfen = "4k4/9/9/9/9/9/9/8R/4K4 b - 1"
    shuffle = ("5i5h", "5a5b", "5h5i", "5b5a")
    moves = shuffle * 3
    move, value = search_at(
        sfen, sample(120, 60), material=True, moves=(*moves[:-1],), mate_plies=0
    )
    assert move == "5b5a"
    assert value == 0.0


def test_the_ply_limit_is_a_draw_in_the_tree_too() -> None:
    _, value = search_at("4k4/9/9/9/9/9/9/8R/4K4 b - 1", 40, material=True, ply_limit=1)
    assert value == 0.0


def test_a_temperature_varies_the_moves_and_the_seed_repeats_them() -> None:
    env = VectorShogi(1)
    search = TreeSearch(KnownPredictor(value=zero_value), 8, temperature=1.0)
    legal_indices = [
        int(search.search(env, np.arange(1), np.random.default_rng(seed)).legal_indices[0])
        for seed in (*range(8), *range(8))
    ]
    assert len(set(legal_indices)) > 3
    assert legal_indices[:8] == legal_indices[8:]


@pytest.mark.parametrize("simulations", [0, 100_001])
def test_impossible_numbers_of_simulations_are_refused(simulations: int) -> None:
    with pytest.raises(KeiseiError, match="1 to 100,000"):
        TreeSearch(KnownPredictor(value=zero_value), simulations)

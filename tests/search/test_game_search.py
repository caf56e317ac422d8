"""Search of one game: every simulation counts once, proofs are right, trees are reused."""

from collections import Counter

import numpy as np
import pytest

from keisei.errors import KeiseiError
from keisei.search.game_search import GameSearch
from keisei.search.mates import MateSearch
from keisei.search.mcts import TreeSearch
from keisei.search.puct import Puct
from keisei.shogi.actions import PolicyOutputMapper
from keisei.shogi.game import ShogiGame
from keisei.shogi.vector import VectorShogi
from tests.network.sparse.samples import small_network
from tests.positions import random_games
from tests.predictors import KnownPredictor, by_place
from tests.sampling import IS_COMPILED, sample

pytestmark = pytest.mark.kernels

ACTIONS = PolicyOutputMapper()

CURIOUS = Puct(c_puct=2.0, fpu_reduction=0.0)
"""For a policy that knows nothing: all moves are tried before one is trusted."""


def searched(game: ShogiGame, simulations: int, *, batch_size: int = 8) -> GameSearch:
    search = GameSearch(KnownPredictor(), batch_size=batch_size, megabytes=16, puct=CURIOUS)
    search.begin(game, ply_limit=512)
    extend(search, simulations)
    return search


def extend(search: GameSearch, simulations: int) -> None:
    done = 0
    while done < simulations and not (search.is_proven or search.is_full):
        done += search.step(simulations - done)


def best_move(game: ShogiGame, search: GameSearch) -> str:
    return ACTIONS.move(search.variations()[0].actions[0], game.turn).usi


@pytest.mark.parametrize("batch_size", [1, 3, 16])
def test_every_simulation_is_a_visit_and_nothing_stays_in_flight(batch_size: int) -> None:
    network = KnownPredictor()
    search = GameSearch(network, batch_size=batch_size, megabytes=16)
    search.begin(ShogiGame(), ply_limit=512)
    done = 0
    while done < sample(300, 30):
        number = search.step()
        assert 1 <= number <= batch_size
        done += number
        assert search.simulations == done
        assert not search._batch.trees.in_flight.any()
    largest = max(map(len, network.batches))
    assert largest == min(batch_size, 1 + done // 8, largest)
    visits = [line.visits for line in search.variations(593)]
    assert sum(visits) == done
    assert visits == sorted(visits, reverse=True)


def test_a_batch_finds_what_one_simulation_at_a_time_finds() -> None:
    free = ShogiGame("4k4/9/9/4r4/9/9/4R4/9/4K4 b - 1")
    guarded = ShogiGame("4k4/9/4g4/4p4/9/9/4R4/9/4K4 b - 1")
    for batch_size in (1, 16):
        assert best_move(free, searched(free, sample(200, 80), batch_size=batch_size)) == "5g5d"
        if IS_COMPILED:  # it takes some time to be seen
            assert best_move(guarded, searched(guarded, 400, batch_size=batch_size)) != "5g5d"


def test_lines_can_be_played() -> None:
    for game, _ in zip(random_games(seed=5, plies=60), range(sample(30, 3)), strict=False):
        for line in searched(game.copy(), sample(100, 20)).variations(3):
            trial = game.copy()
            for action in line.actions:
                trial.push_action(action)


def test_mates_in_the_tree_are_as_long_as_the_mate_search_says() -> None:
    """The root is not looked at by the mate search here, so mates of three are found by growing."""
    compared = 0
    for game in random_games(seed=3, plies=300):
        length = len(MateSearch(3).line(game))
        if length == 0 or game.in_check:
            continue
        search = searched(game.copy(), sample(20_000, 60))
        if search.is_proven:
            line = search.variations()[0]
            assert line.mate is not None
            # The tree stops at the first mate that it finds, and leaves out the last move.
            assert line.mate >= length
            assert len(line.actions) in (line.mate, line.mate - 1)
            assert line.value == 1.0
            compared += 1
        if compared == sample(4, 1) or not sample(1, 0):
            break
    assert compared >= sample(4, 0)


def test_who_is_mated_delays_it() -> None:
    """White's king can be taken nowhere; each move loses, and the tree says when."""
    game = ShogiGame("4k4/9/3GPG3/9/9/9/9/9/4K4 w G2r2b4s4n4l17p 2")
    search = searched(game, sample(5_000, 40))
    if search.is_proven:
        lines = search.variations(593)
        assert all(line.mate is not None and line.mate < 0 for line in lines)
        mates = [line.mate for line in lines if line.mate is not None]
        assert mates == sorted(mates)


@pytest.mark.parametrize("is_sparse", [False, True], ids=["batched", "sparse"])
def test_the_tree_is_used_again_two_plies_later(is_sparse: bool) -> None:
    """Over a sparse network nodes get their edges in another order than they were made."""
    game = ShogiGame("4k4/9/9/4r4/9/9/4R4/9/4K4 b - 1")
    simulations = sample(1_500, 300)
    if is_sparse:
        search = GameSearch(small_network(), megabytes=16, puct=CURIOUS)
        search.begin(game, ply_limit=512)
        extend(search, simulations)
    else:
        search = searched(game, simulations)
    line = next(line for line in search.variations(593) if len(line.actions) > 2)
    later = game.copy()
    later.push_action(line.actions[0])
    later.push_action(line.actions[1])
    trees = search._batch.trees
    node = int(trees.children[0, _edge_of(search, 0, line.actions[0])])
    node = int(trees.children[0, _edge_of(search, node, line.actions[1])])
    before = _picture(search, node)
    visits = int(trees.visits[0, node])
    search.begin(later, ply_limit=512)
    assert _picture(search, 0) == before
    assert search.simulations == visits - 1 > 0
    extend(search, 40)
    assert search.simulations == visits + 39


def _edge_of(search: GameSearch, node: int, action: int) -> int:
    edges = search._batch.trees.edges_of(0, node)
    return int(edges.start + np.flatnonzero(search._batch.trees.moves[0, edges] == action)[0])


Picture = tuple[object, ...]


def _picture(search: GameSearch, node: int) -> Picture:
    """All that is known of a node and of those below it, whatever their numbers are."""
    trees = search._batch.trees
    edges = trees.edges_of(0, node)
    of_node = (trees.visits, trees.value_sums, trees.values, trees.proven, trees.tried_counts)
    return (
        *(array[0, node].item() for array in of_node),
        trees.moves[0, edges].tolist(),
        trees.priors[0, edges].tolist(),
        [
            _picture(search, child) if child >= 0 else None
            for child in trees.children[0, edges].tolist()
        ],
    )


def test_another_game_is_searched_from_nothing() -> None:
    search = searched(ShogiGame(), 40)
    search.begin(ShogiGame("startpos moves 7g7f"), ply_limit=512)
    assert search.simulations == 0
    extend(search, 10)
    search.begin(ShogiGame("startpos moves 7g7f"), ply_limit=512)
    assert search.simulations == 10
    search.begin(ShogiGame("startpos moves 7g7f"), ply_limit=400)
    assert search.simulations == 0
    extend(search, 10)
    search.clear()
    search.begin(ShogiGame("startpos moves 7g7f"), ply_limit=400)
    assert search.simulations == 0


def test_a_repetition_counts_the_moves_before_the_search() -> None:
    """A rook behind, White is glad to repeat for the fourth time."""
    shuffle = "5i5h 5a5b 5h5i 5b5a "
    moves = (3 * shuffle).split()[:-1]
    game = ShogiGame(f"sfen 4k4/9/9/9/9/9/9/8R/4K4 b - 1 moves {' '.join(moves)}")
    search = searched(game, sample(150, 60))
    assert best_move(game, search) == "5b5a"
    assert search.variations()[0].value == 0.0


def test_the_ply_limit_is_a_draw() -> None:
    game = ShogiGame("4k4/9/9/9/9/9/9/8R/4K4 b - 1")
    search = GameSearch(KnownPredictor(), megabytes=1)
    search.begin(game, ply_limit=1)
    for _ in range(5):
        search.step()
    assert {line.value for line in search.variations(10) if line.visits} == {0.0}


def test_a_full_memory_ends_the_search_but_not_its_results() -> None:
    search = GameSearch(KnownPredictor(), batch_size=4, megabytes=1)
    search.begin(ShogiGame(), ply_limit=512)
    steps = 0
    while search.step():
        steps += 1
        assert steps < 10_000
    assert search.is_full
    assert 100 < search.permille_full <= 1000
    assert search.variations()[0].visits > 0


def test_only_some_moves_are_searched() -> None:
    game = ShogiGame()
    only = game.legal_actions[[3, 5]]
    search = GameSearch(KnownPredictor(), megabytes=4)
    search.begin(game, ply_limit=512, only=only)
    extend(search, 20)
    assert {line.actions[0] for line in search.variations(593)} == set(only.tolist())


@pytest.mark.parametrize("simulations", [0, 60])
def test_moves_are_drawn_by_visits_or_before_by_the_policy(simulations: int) -> None:
    game, random = ShogiGame(), np.random.default_rng(0)
    search = GameSearch(KnownPredictor(by_place), megabytes=4)
    search.begin(game, ply_limit=512)
    extend(search, simulations)
    lines = search.variations(593)
    if simulations:
        weights = {line.actions[0]: line.visits for line in lines}
    else:
        logits = by_place(game.legal_actions[None])[0]
        weights = dict(zip(game.legal_actions.tolist(), np.exp(logits).tolist(), strict=True))
    draws = sample(2_000, 100)
    drawn = Counter(search.sample(1.0, random).actions[0] for _ in range(draws))
    for action, weight in weights.items():
        expected = draws * weight / sum(weights.values())
        assert abs(drawn[action] - expected) <= 5 * np.sqrt(expected) + 3
    cold = {search.sample(0.01, random).actions[0] for _ in range(20)}
    best = max(weights.values())
    assert all(weights[action] == best for action in cold)


def test_it_needs_a_batch_size_and_some_memory() -> None:
    with pytest.raises(KeiseiError, match="at least 1"):
        GameSearch(KnownPredictor(), batch_size=0)


def test_a_known_number_of_simulations_is_spent_as_in_a_search_of_many_games() -> None:
    """So that a USI engine and a match play the same moves."""
    simulations = sample(64, 12)
    env = VectorShogi(sample(8, 2), seed=11, opening_plies=30)
    games = np.arange(env.num_games)
    search = TreeSearch(KnownPredictor(), simulations, mate_plies=0)
    together = search.search(env, games, np.random.default_rng(0))
    for index in games.tolist():
        game = env.game(index)
        alone = GameSearch(KnownPredictor(), batch_size=1, megabytes=16)
        alone.begin(game, ply_limit=512)
        extend(alone, simulations)
        lines = alone.variations(593)
        legal = game.legal_actions.tolist()
        assert legal.index(lines[0].actions[0]) == together.legal_indices[index]
        assert lines[0].actions == together.lines[index]
        assert lines[0].value == together.values[index]
        visits = {line.actions[0]: line.visits for line in lines}
        assert [visits[action] for action in legal] == together.visits[index, : len(legal)].tolist()

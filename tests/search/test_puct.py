"""The trees are those of a plain implementation; one kernel, batches and threads agree."""

from itertools import islice

import numpy as np
import pytest

from keisei.config_schema import ModelConfig
from keisei.network.sparse.sparse_network import SparseNetwork
from keisei.search.game_search import GameSearch
from keisei.search.mcts import TreeSearch
from keisei.search.puct import Puct
from keisei.search.sparse_simulation import SparseThreads
from keisei.search.trees import LOST, WON
from keisei.shogi.features import feature_spec
from keisei.shogi.game import ShogiGame
from keisei.shogi.vector import VectorShogi
from tests.oracles.slow_puct import Node, slow_search
from tests.positions import random_games
from tests.predictors import KnownPredictor, by_place
from tests.sampling import IS_COMPILED, sample

pytestmark = pytest.mark.kernels

MODEL = ModelConfig(type="sparse", accumulators=8, hidden=8, context=8)


def sparse_network(threads: int = 1) -> SparseNetwork:
    """A network whose values and policies differ between positions."""
    network = SparseNetwork.new(MODEL, feature_spec("core46"), threads=threads, seed=5)
    network.arrays.position_table[:, 0] = 0.02 * np.random.default_rng(1).standard_normal(
        len(network.arrays.position_table)
    )
    network.arrays.move_table[:, 0] = np.random.default_rng(2).standard_normal(
        len(network.arrays.move_table)
    )
    return network


def kernel_tree(search: GameSearch, node: int = 0) -> tuple[object, ...]:
    """The visited part of the tree, in an order that does not depend on how it grew."""
    trees = search._batch.trees
    edges = trees.edges_of(0, node)
    children = trees.children[0, edges].tolist()
    moves = trees.moves[0, edges].tolist()
    below = sorted(
        (move, kernel_tree(search, child))
        for move, child in zip(moves, children, strict=True)
        if child >= 0
    )
    mean = trees.value_sums[0, node] / trees.visits[0, node]
    proven = {1: True, -1: False}.get(int(trees.proven[0, node]))
    return int(trees.visits[0, node]), pytest.approx(-mean, abs=1e-5), str(proven), below


def slow_tree(node: Node) -> tuple[object, ...]:
    below = sorted(
        (move, slow_tree(child)) for move, child in node.children.items() if child.visits
    )
    return node.visits, node.value_sum / node.visits, str(node.is_won), below


DECLARED = "4K4/+R+B7/PPPPPPPPP/9/9/9/9/9/4k4 w RB 2"
"""Whatever White does, Black may declare: 10 pieces and 29 points beside the king."""

POSITIONS = (
    "4k4/9/3GPG3/9/9/9/9/9/4K4 w G2r2b4s4n4l17p 2",  # each move loses
    "4k4/9/4P4/9/9/9/9/9/4K4 b 2G 1",
    "sfen 4k4/9/9/9/9/9/9/8R/4K4 b - 1 moves 5i5h 5a5b 5h5i 5b5a 5i5h 5a5b 5h5i",
    "sfen 8k/9/9/9/9/9/9/R8/4K4 b - 1 moves 9h9a 1a1b 9a9b 1b1a 9b9a 1a1b",  # perpetual check
    DECLARED,
)


@pytest.mark.parametrize("puct", [Puct(), Puct(1.5, 1.0, 0.0)])
def test_the_tree_is_that_of_a_plain_implementation(puct: Puct) -> None:
    network = sparse_network()
    games = [ShogiGame(text, ply_limit=512) for text in POSITIONS]
    games += [game.copy() for game in islice(random_games(seed=8), 5, 160, 16)]
    proofs = 0
    for game in games[: sample(100, 5)]:
        game.ply_limit = 512
        simulations = sample(150, 12)
        reference = slow_search(network, game, simulations, puct)
        search = GameSearch(network, megabytes=4, puct=puct)
        search.begin(game, ply_limit=512)
        search.step(simulations)
        # A difference between such trees would take pytest minutes to explain.
        is_equal = kernel_tree(search) == slow_tree(reference)
        assert is_equal, game.sfen()
        proofs += str(slow_tree(reference)).count("True")
    assert proofs >= sample(20, 0)


def test_who_may_declare_after_any_reply_has_won() -> None:
    game = ShogiGame(DECLARED, ply_limit=512)
    for action in game.legal_actions.tolist():
        reply = game.copy()
        reply.push_action(action)
        assert reply.can_declare
        assert reply.mate_in_one() is None, "nothing else proves it"
    search = GameSearch(sparse_network(), megabytes=4)
    search.begin(game, ply_limit=512)
    search.step(100)
    trees = search._batch.trees
    assert trees.proven[0, 0] == LOST
    children = trees.children[0, trees.edges_of(0, 0)]
    assert trees.proven[0, children].tolist() == [WON] * len(game.legal_actions)


def test_batches_of_any_network_grow_the_same_trees_as_the_kernel_of_sparse_networks() -> None:
    network = sparse_network()

    class Other:
        """The same network behind the interface that all networks have."""

        predict = staticmethod(network.predict)

    env = VectorShogi(sample(9, 2), seed=4, opening_plies=40)
    games, random = np.arange(env.num_games), np.random.default_rng(0)
    simulations = sample(120, 10)
    results = [
        TreeSearch(predictor, simulations).search(env, games, random)
        for predictor in (network, Other(), sparse_network(threads=2))
    ]
    for other in results[1:]:
        assert np.array_equal(results[0].visits, other.visits)
        assert np.array_equal(results[0].legal_indices, other.legal_indices)
        assert results[0].values == pytest.approx(other.values, abs=1e-6)
        assert results[0].lines == other.lines


@pytest.mark.skipif(not IS_COMPILED, reason="kernels run one after the other without the JIT")
def test_threads_in_one_tree_lose_nothing() -> None:
    network = sparse_network(threads=4)
    search = GameSearch(network, megabytes=32)
    for game in islice(random_games(seed=2), 0, 60, 20):
        search.clear()
        search.begin(game.copy(), ply_limit=512)
        done = 0
        while done < 5_000 and not search.is_proven:
            done += search.step(1_000)
        trees = search._batch.trees
        size = int(trees.sizes[0])
        assert search.simulations == done
        assert not trees.in_flight[0, :size].any()
        assert not trees.locks.any()
        for node in range(size):
            edges = trees.edges_of(0, node)
            children = trees.children[0, edges]
            tried = children[: trees.tried_counts[0, node]]
            assert (tried >= 0).all()
            assert (children[len(tried) :] == -1).all()
            if trees.edge_counts[0, node]:
                assert trees.visits[0, tried].sum() == trees.visits[0, node] - 1
                assert trees.priors[0, edges].sum() == pytest.approx(1.0, abs=1e-4)
        assert np.array_equal(
            np.unique(trees.children[0, : trees.num_edges[0]])[1:], np.arange(1, size)
        )


def test_memory_that_is_too_small_at_first_is_enlarged(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("keisei.search.mcts.EDGES_PER_NODE", 1)
    env = VectorShogi(2, seed=4, opening_plies=60)
    simulations = sample(200, 10)
    for network in (sparse_network(), KnownPredictor(by_place)):
        result = TreeSearch(network, simulations, mate_plies=0).search(
            env, np.arange(2), np.random.default_rng(0)
        )
        assert (result.visits.sum(axis=1) == simulations).all()


def test_rows_of_plugins_need_python() -> None:
    network = sparse_network()
    assert SparseThreads.of(network) is not None
    assert SparseThreads.of(KnownPredictor()) is None

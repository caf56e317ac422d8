"""Compile every Numba kernel once, so that later calls and worker processes load it from the cache.

`keisei doctor` runs this.
"""

from collections.abc import Callable

import numpy as np

from keisei.config_schema import ModelConfig
from keisei.constants import MAX_LEGAL_MOVES
from keisei.network.predictor import Prediction
from keisei.network.sparse.adam import (
    ADAM_EPSILON,
    AdamSettings,
    adam_step,
    clear_gradient,
    reduce_gradients,
)
from keisei.network.sparse.gradient import (
    Derivatives,
    Gradient,
    LossSettings,
    Samples,
    add_gradient,
    zeros_like,
)
from keisei.network.sparse.row_store import NOTHING_KEPT
from keisei.network.sparse.sparse_network import SparseNetwork
from keisei.search.alphabeta import AlphaBeta
from keisei.search.game_search import GameSearch
from keisei.search.mates import MateSearch
from keisei.search.mcts import TreeSearch
from keisei.search.tsume import MateSolver
from keisei.shogi.features import feature_spec
from keisei.shogi.game import ShogiGame
from keisei.shogi.material import greedy_legal_indices
from keisei.shogi.packed import (
    Positions,
    legal_from_packed,
    mirror_packed,
    pack_game,
    scale_plies,
    unpack_diagram,
)
from keisei.shogi.perft import perft
from keisei.shogi.position import new_positions
from keisei.shogi.rng import sample_moves, seed_rng_states
from keisei.shogi.vector import VectorShogi


def kernels() -> list[tuple[str, Callable[[], None]]]:
    """Return the groups of kernels: a name, and a function that compiles or loads the group."""
    return [
        ("moves and rules", _one_game),
        ("perft", _perft),
        ("packed positions", _packed),
        ("many games at once", _vector),
        ("observation planes", _planes),
        ("bots and short mates", _bots),
        ("alpha-beta", _alpha_beta),
        ("tree search", _tree_search),
        ("long mates", _long_mates),
        ("sparse network: predictions", _sparse_predictions),
        ("sparse network: tree search", _sparse_search),
        ("sparse network: gradient", _sparse_gradient),
        ("sparse network: optimizer", _sparse_optimizer),
    ]


def _one_game() -> None:
    game = ShogiGame()
    game.push("7g7f")
    game.outcome(claim_declaration=True)
    _ = game.can_declare
    game.pop()


def _perft() -> None:
    perft(ShogiGame().position, 2)


def _packed() -> None:
    packed = pack_game(ShogiGame())
    mirror_packed(packed, packed)
    scale_plies(packed, 256)
    unpack_diagram(packed[0])
    legal, counts = np.zeros((1, MAX_LEGAL_MOVES), np.uint16), np.zeros(1, np.int32)
    legal_from_packed(packed, legal, counts, new_positions(2), 0, 1)


def _vector() -> None:
    env = VectorShogi(1)
    env.step(env.sample_actions())
    env.mates_in_one()
    env.legal_mask()


def _planes() -> None:
    for dtype in (np.float32, np.uint16, np.uint8):
        feature_spec("core46+all").encode(pack_game(ShogiGame()), dtype=dtype)


class _UniformPredictor:
    """A predictor that gives all moves the same probability."""

    def predict(self, positions: Positions) -> Prediction:
        packed, _, legal_counts = positions
        shape = (len(packed), int(legal_counts.max()))
        return Prediction(np.zeros(shape, np.float32), np.zeros(len(packed), np.float32))


def _bots() -> None:
    env, legal_indices = VectorShogi(1), np.zeros(1, np.int64)
    rng_states = seed_rng_states(np.random.default_rng(0), 1)
    greedy_legal_indices(
        env.positions, env.legal_actions, env.legal_counts, rng_states, legal_indices
    )
    sample_moves(np.zeros((1, 2), np.float32), rng_states)
    MateSearch(3).find(env.positions, env.legal_actions, env.legal_counts)


def _alpha_beta() -> None:
    env = VectorShogi(1)
    rng_states = seed_rng_states(np.random.default_rng(0), 1)
    AlphaBeta(1).search(env.positions, env.legal_actions, env.legal_counts, rng_states)


def _tree_search() -> None:
    TreeSearch(_UniformPredictor(), 2).search(
        VectorShogi(1), np.arange(1), np.random.default_rng(0)
    )
    game, search = ShogiGame(), GameSearch(_UniformPredictor(), batch_size=1, megabytes=1)
    for action in (int(game.legal_actions[0]), None):
        search.begin(game, ply_limit=100)
        while search.simulations < 2 * len(game.legal_actions):
            search.step()
        search.variations()
        if action is not None:  # the second time, the subtree of the first is reused
            game = game.copy()
            game.push_action(action)


def _long_mates() -> None:
    MateSolver(entries=1 << 8).solve(ShogiGame(), 1)


def _sparse_network() -> SparseNetwork:
    """Return the smallest network: compiled code does not depend on sizes."""
    model = ModelConfig(accumulators=8, hidden=8, context=8)
    return SparseNetwork.new(model, feature_spec("core46"), threads=1, seed=0)


def _sparse_predictions() -> None:
    _sparse_network().predict(VectorShogi(1).observe())


def _sparse_search() -> None:
    search = GameSearch(_sparse_network(), megabytes=1)
    search.begin(ShogiGame(), ply_limit=100)
    search.step(2)


def _sparse_gradient() -> None:
    network, env = _sparse_network(), VectorShogi(1)
    work = network.new_workspace()
    numbers = np.zeros(1, np.float32)
    add_gradient(
        network.arrays,
        network.arrays,
        network.rows,
        work,
        Derivatives.of(work),
        Gradient.like(network.arrays),
        Samples(
            indices=np.zeros(1, np.int64),
            advantages=numbers,
            packed=env.packed,
            actions=env.legal_actions[:, 0].copy(),
            log_probs=numbers,
            returns=numbers,
            learns_policy=np.ones(1, np.bool_),
            target_actions=np.zeros((1, 0), np.uint16),
            target_probs=np.zeros((1, 0), np.float32),
            plugins=network.plugin_rows(env.observe()),
            kept=NOTHING_KEPT,
        ),
        LossSettings(0.2, 3.0, 1.0, 1.0, 0.0, 0.0, 0.0),
        0,
        1,
    )


def _sparse_optimizer() -> None:
    weights = _sparse_network().arrays
    gradient = Gradient.like(weights)
    reduce_gradients((gradient, Gradient.like(weights)), np.zeros(1), 0, 1)
    settings = AdamSettings(0.1, 0.1, 0.1, 1.0, 0.99, ADAM_EPSILON, 0.0)
    adam_step(weights, gradient, zeros_like(weights), zeros_like(weights), settings, 0, 1)
    clear_gradient(gradient)

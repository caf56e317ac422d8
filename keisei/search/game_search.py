"""`GameSearch`: tree search of one game until it is stopped, as an engine needs it.

It keeps its tree from move to move, in a bounded memory.
"""

from typing import Final

import numpy as np
import numpy.typing as npt

from keisei.constants import MAX_LEGAL_MOVES
from keisei.errors import KeiseiError
from keisei.network.predictor import Predictor, sample_policy, spread_policy
from keisei.search.mcts import EDGES_PER_NODE, PrincipalVariation, TreeBatch, sample_weights
from keisei.search.puct import Puct
from keisei.search.sparse_simulation import SparseThreads
from keisei.search.trees import EDGE_BYTES, NO_NODE, NODE_BYTES, ROOT, UNPROVEN, Trees, reroot
from keisei.shogi.game import ShogiGame
from keisei.shogi.packed import Positions, pack_game
from keisei.shogi.position import new_positions
from keisei.shogi.rules import DeclarationRule
from keisei.shogi.vector_kernels import branches_of

SPARSE_EDGES_PER_NODE: Final = 40
"""The same for trees over a sparse network, where a node has edges only from its second visit on: a
quarter of them have."""

STEP_PER_THREAD: Final = 256
"""Simulations of a step of `GameSearch` for each thread of a sparse network: about 4 ms."""

SIMULATIONS_PER_BATCH_SLOT: Final = 8
"""A batch is at most one in 8 of the simulations so far: early choices matter most, and those of
one batch do not know each other's results."""


class GameSearch:
    """Searches one game, some simulations at a time; keeps its tree from move to move."""

    def __init__(
        self,
        predictor: Predictor,
        *,
        batch_size: int = 16,
        megabytes: int = 256,
        puct: Puct | None = None,
    ) -> None:
        """Reserve the memory.

        Args:
            predictor: the network; a sparse one says how many threads search.
            batch_size: simulations in flight, at most, of any other network.
            megabytes: how large the tree may grow.
            puct: how visits are divided among moves.
        """
        if batch_size < 1 or megabytes < 1:
            raise KeiseiError("a search needs a batch size and a memory of at least 1")
        threads = SparseThreads.of(predictor)
        self._is_sparse = threads is not None
        per_tree = batch_size if threads is None else threads.threads
        self.step_size = batch_size if threads is None else STEP_PER_THREAD * threads.threads
        """Simulations of a step, at most."""

        edges_per_node = EDGES_PER_NODE if threads is None else SPARSE_EDGES_PER_NODE
        bytes_per_node = NODE_BYTES + edges_per_node * EDGE_BYTES
        nodes = max(megabytes * 1_000_000 // bytes_per_node, 4 * per_tree)
        edges = edges_per_node * nodes + MAX_LEGAL_MOVES * (1 + per_tree)
        trees = Trees.new(1, nodes, edges)
        self._batch = TreeBatch(predictor, threads, puct or Puct(), trees, per_tree=per_tree)
        self._game: ShogiGame | None = None
        self._rules: tuple[int, DeclarationRule] | None = None
        self._is_restricted = False

    def clear(self) -> None:
        """Drop the tree: the next search starts with an empty one."""
        self._game = None
        self._batch.trees.sizes[0] = self._batch.trees.num_edges[0] = 0

    def begin(
        self,
        game: ShogiGame,
        *,
        ply_limit: int,
        declaration: DeclarationRule = DeclarationRule.POINTS_27,
        only: npt.NDArray[np.uint16] | None = None,
    ) -> None:
        """Begin the search of a position, with what the last tree knows of it.

        Args:
            game: with at least one legal move; it must not be changed afterwards.
            ply_limit: the ply at which the game is a draw; beyond the present one.
            declaration: by which rule wins are declared in the tree.
            only: the legal actions that are considered at the root; None: all.
        """
        batch = self._batch
        rules = (ply_limit, declaration)
        node = None if only is not None or self._rules != rules else self._node_of(game)
        if node is None:
            legal = game.legal_actions
            counts = np.array([len(legal)], dtype=np.int32)
            batch.add_roots(Positions(pack_game(game), legal[None], counts), only)
        elif node != ROOT:
            reroot(batch.trees, 0, node, batch.distances)
        self._game, self._rules, self._is_restricted = game, rules, only is not None
        roots = new_positions(1)
        roots[0] = game.position
        branches = branches_of(
            game, self._batch.per_tree, ply_limit=ply_limit, declaration=declaration
        )
        batch.set_games(branches, roots, ply_limit - game.ply + 1)

    @property
    def simulations(self) -> int:
        """Visits of the root moves, those of earlier searches that are in the tree included."""
        return int(self._batch.trees.visits[0, ROOT]) - 1

    @property
    def top_visits(self) -> tuple[int, int]:
        """Visits of the most and of the second most visited root move."""
        trees = self._batch.trees
        tried = int(trees.tried_counts[0, ROOT])
        start = int(trees.edge_starts[0, ROOT])
        visits = trees.visits[0, trees.children[0, start : start + tried]]
        second, first = np.sort(np.concatenate([np.zeros(2, np.int32), visits]))[-2:].tolist()
        return first, second

    @property
    def max_depth(self) -> int:
        """Plies of the longest simulation."""
        return self._batch.max_depth

    @property
    def is_proven(self) -> bool:
        """Whether the result is proven: more simulations cannot change it."""
        return bool(self._batch.trees.proven[0, ROOT] != UNPROVEN)

    @property
    def is_full(self) -> bool:
        """Whether there is no memory left for the simulations in flight."""
        return self._share_used > 1.0

    @property
    def permille_full(self) -> int:
        """Memory in use, in parts of 1,000: 1,000 when it is full."""
        return round(1000 * min(self._share_used, 1.0))

    @property
    def _share_used(self) -> float:
        """Nodes or edges, over what there is without the reserve of simulations in flight."""
        trees, per_tree = self._batch.trees, self._batch.per_tree
        edges = trees.moves.shape[1] - per_tree * MAX_LEGAL_MOVES
        nodes = trees.visits.shape[1] - per_tree
        share: float = max(int(trees.num_edges[0]) / edges, int(trees.sizes[0]) / nodes)
        return share

    def step(self, most: int | None = None) -> int:
        """Run at most `most` simulations; return their number, 0 when it is full or proven."""
        if self.is_full:
            return 0
        number: int = self.step_size
        if not self._is_sparse:
            number = min(number, 1 + self.simulations // SIMULATIONS_PER_BATCH_SLOT)
        if most is not None:
            number = min(number, most)
        left = np.array([number], dtype=np.int64)
        self._batch.simulate(left)
        return number - int(left[0])

    def variations(self, most: int = 1) -> list[PrincipalVariation]:
        """Return the principal variations of the `most` best moves, best first."""
        return self._batch.variations(most)

    def sample(self, temperature: float, random: np.random.Generator) -> PrincipalVariation:
        """Draw a move by its visits to the power of 1 over `temperature`; the best if it mates.

        Before the first simulation it is drawn by the policy.
        """
        lines = self.variations(MAX_LEGAL_MOVES)
        if lines[0].mate is not None:
            return lines[0]
        if self.simulations:
            weights = np.array([line.visits for line in lines], dtype=np.float64)
        else:
            weights = np.exp(self._log_probs(lines))
        return lines[int(sample_weights(weights[None], temperature, random)[0])]

    def sample_policy(self, spread: float, random: np.random.Generator) -> PrincipalVariation:
        """Draw a move by the policy of the position, scaled to a spread, without simulations."""
        lines = self.variations(MAX_LEGAL_MOVES)
        logits = spread_policy(self._log_probs(lines)[None], spread)
        return lines[int(sample_policy(logits, random)[0])]

    def _log_probs(self, lines: list[PrincipalVariation]) -> npt.NDArray[np.float64]:
        """Return the policy's logarithms for the first moves of `lines`, at a new root."""
        known = self._batch.root_log_probs
        return np.array([known[line.actions[0]] for line in lines])

    def _node_of(self, game: ShogiGame) -> int | None:
        """Return the node of a game in the tree; None if it is not there or not expanded."""
        before = self._game
        if before is None or self._is_restricted or before.start != game.start:
            return None
        played, now = before.actions, game.actions
        new = now[len(played) :]
        # The value of repetitions depends on the side at the root.
        if len(now) < len(played) or len(new) % 2 or not np.array_equal(now[: len(played)], played):
            return None
        trees, node = self._batch.trees, ROOT
        for action in new.tolist():
            edges = trees.edges_of(0, node)
            found = np.flatnonzero(trees.moves[0, edges] == action)
            if not len(found):
                return None
            node = int(trees.children[0, edges.start + int(found[0])])
            if node == NO_NODE:
                return None
        return node if trees.edge_counts[0, node] else None

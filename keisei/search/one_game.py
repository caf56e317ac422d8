"""Tree search of one game that can be stopped at any moment: for play by the clock.

The tree and its rules are those of `keisei.search.simulation`. As nobody knows beforehand how many
simulations there will be, the root spends them as the nodes below it do, by what the values seen so
far suggest, and not by sequential halving. Several positions of the tree go to the network at once:
one at a time it would be asked three times as long for each.
"""

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from keisei.constants import MAX_LEGAL_MOVES
from keisei.errors import KeiseiError
from keisei.network.predictor import Predictor
from keisei.search.gumbel import WEIGHTS
from keisei.search.selection import Weights
from keisei.search.simulation import descend, grow, plant
from keisei.search.trees import (
    AS_BELOW,
    COLLIDED,
    LOST,
    NEEDS_NETWORK,
    NO_NODE,
    NO_WALK,
    ROOT,
    UNSURE,
    WON,
    Edges,
    Forest,
    replant,
    write_mate_distances,
)
from keisei.shogi.game import ShogiGame
from keisei.shogi.packed import Positions, pack_game
from keisei.shogi.position import new_positions
from keisei.shogi.rules import DeclarationRule
from keisei.shogi.vector_kernels import branches_of

EDGES_PER_NODE: Final = 100
"""Legal moves of a position, roughly: what memory is shared out by."""

NODE_BYTES: Final = 18 + 26 * EDGES_PER_NODE
SIMULATIONS_PER_WALK: Final = 8
"""A batch is no more than so small a part of the tree: the first choices are worth most, and those
of one batch know nothing of each other's results."""


class Line(NamedTuple):
    """A move of the root, and how the search thinks the game goes on."""

    actions: tuple[int, ...]
    """Policy indices: the move, then the best replies."""

    value: float
    """Of the move for its side, from -1 to 1."""

    visits: int
    """Simulations that began with it."""

    mate: int | None
    """Plies to the forced end, negative if it is the mover who loses; None: nothing is forced."""


class GameSearch:
    """Grows the tree of one game, a batch of simulations at a time."""

    def __init__(
        self,
        predictor: Predictor,
        *,
        walks: int = 16,
        megabytes: int = 256,
        weights: Weights = WEIGHTS,
    ) -> None:
        """Set the memory aside; it is taken when it is needed.

        Args:
            predictor: the network.
            walks: simulations to a batch, at most.
            megabytes: how large the tree may grow.
            weights: how much values count against the policy.
        """
        if walks < 1 or megabytes < 1:
            raise KeiseiError("a search needs at least one walk and one megabyte")
        self.walks = walks
        self._predictor = predictor
        self._weights = weights
        nodes = max(megabytes * 1_000_000 // NODE_BYTES, 4 * walks)
        self._forest = Forest.new(1, nodes, walks=walks, depth=1)
        self._edges = Edges.new(EDGES_PER_NODE * nodes + MAX_LEGAL_MOVES)
        self._scratch = np.zeros(nodes + 1, dtype=np.int32)
        self._game: ShogiGame | None = None
        self._rules: tuple[int, DeclarationRule] | None = None
        self._restricted = False
        self.forget()

    def forget(self) -> None:
        """Let go of the tree: the next search starts from nothing."""
        self._game = None
        self._used = 0
        self.longest = 0
        """Plies of the longest line looked at."""

    def begin(
        self,
        game: ShogiGame,
        *,
        ply_limit: int,
        declaration: DeclarationRule = DeclarationRule.POINTS_27,
        temperature: float = 0.0,
        random: np.random.Generator | None = None,
        only: npt.NDArray[np.uint16] | None = None,
    ) -> None:
        """Plant the tree of a game, or go on with what is left of the one before.

        Args:
            game: with at least one legal move; it must not be changed afterwards.
            ply_limit: the ply at which the game is a draw; beyond the present one.
            declaration: by which rule wins are declared in the tree.
            temperature: of the luck that is added to the root's policy; 0: none.
            random: where luck comes from.
            only: the legal actions that are considered at the root; None: all.
        """
        rules = (ply_limit, declaration)
        node = None if only is not None or self._rules != rules else self._node_of(game)
        if node is None:
            self._plant(game, only)
        elif node != ROOT:
            self._used = int(replant(self._forest, self._edges, 0, node, self._scratch))
        self._game, self._rules, self._restricted = game, rules, only is not None
        depth = ply_limit - game.ply + 1
        walks = self.walks
        self._forest = self._forest._replace(
            paths=np.zeros((walks, depth), dtype=np.int64),
            path_nodes=np.zeros((walks, depth + 1), dtype=np.int32),
        )
        self._forest.luck[:] = 0.0
        if temperature > 0.0:
            random = random or np.random.default_rng()
            self._forest.luck[:] = temperature * random.gumbel(size=self._forest.luck.shape)
        self._branches = branches_of(game, walks, ply_limit=ply_limit, declaration=declaration)
        self._roots = new_positions(1)
        self._roots[0] = game.position
        self.longest = 0

    @property
    def simulations(self) -> int:
        """Visits of the root's moves, those of earlier searches that still count included."""
        return int(self._edges.visits[self._moves_of(ROOT)].sum())

    @property
    def is_settled(self) -> bool:
        """Whether more simulations can't change the outcome: it is certain."""
        return bool(self._forest.certain[0, ROOT] != UNSURE)

    @property
    def is_full(self) -> bool:
        """Whether there is no memory left for another batch."""
        return bool(
            self._used + self.walks * MAX_LEGAL_MOVES > len(self._edges.moves)
            or self._forest.sizes[0] + self.walks > self._forest.values.shape[1]
        )

    @property
    def permille_full(self) -> int:
        """How much of the memory is taken, of 1,000 parts."""
        return round(1000 * self._used / len(self._edges.moves))

    def step(self, most: int | None = None) -> int:
        """Do a batch of simulations, at most `most`; returns how many. None where it is full."""
        if self.is_full:
            return 0
        forest, branches = self._forest, self._branches
        number = max(1, min(self.walks, 1 + self.simulations // SIMULATIONS_PER_WALK))
        if most is not None:
            number = min(number, most)
        wanted = np.where(np.arange(self.walks) < number, AS_BELOW, NO_WALK)
        descend(forest, self._edges, branches, self._roots, wanted, self._weights)
        rows = np.flatnonzero((forest.path_lengths > 0) & (forest.arrivals == NEEDS_NETWORK))
        log_probs, values = np.zeros((0, 1), dtype=np.float32), np.zeros(0, dtype=np.float32)
        if len(rows):
            log_probs, values = self._predictor.predict(branches.observe(rows))
        self._used = int(grow(forest, self._edges, self._used, branches, rows, log_probs, values))
        self.longest = max(self.longest, int(forest.path_lengths.max()))
        return int(((forest.path_lengths > 0) & (forest.arrivals != COLLIDED)).sum())

    def lines(self, most: int = 1) -> list[Line]:
        """The best moves, best first, with the play that is expected; `most` at the most.

        A move that is known to win comes first and one that is known to lose last; else the one
        with the most simulations is the best.
        """
        distances = self._scratch
        write_mate_distances(self._forest, self._edges, 0, distances)
        order = self._ranking(ROOT, distances)[:most]
        return [self._line(int(edge), distances) for edge in order]

    def _line(self, edge: int, distances: npt.NDArray[np.int32]) -> Line:
        forest, edges = self._forest, self._edges
        actions = [int(edges.moves[edge])]
        child = int(edges.children[edge])
        visits = int(edges.visits[edge])
        value, mate = float(forest.values[0, ROOT]), None
        if child != NO_NODE and (visits or forest.certain[0, child] != UNSURE):
            certain = int(forest.certain[0, child])
            value = edges.value_sums[edge] / visits if visits else 0.0
            if certain != UNSURE:
                value = -float(forest.values[0, child])
            if certain in (WON, LOST):
                mate = (1 + int(distances[child])) * (1 if certain == LOST else -1)
        while child != NO_NODE and forest.edge_counts[0, child]:
            best = int(self._ranking(child, distances)[0])
            if edges.children[best] == NO_NODE:
                break
            actions.append(int(edges.moves[best]))
            child = int(edges.children[best])
        return Line(tuple(actions), float(value), visits, mate)

    def _ranking(self, node: int, distances: npt.NDArray[np.int32]) -> npt.NDArray[np.int64]:
        """The edges of a node, the best first."""
        forest, edges, moves = self._forest, self._edges, self._moves_of(node)
        children, visits = edges.children[moves], edges.visits[moves]
        certain = np.where(children == NO_NODE, UNSURE, forest.certain[0, children])
        mates = np.where(certain == LOST, 1, np.where(certain == WON, -1, 0))
        # Who wins hurries, who loses delays.
        nearness = -mates * np.where(mates == 0, 0, distances[children])
        means = np.where(visits > 0, edges.value_sums[moves] / np.maximum(visits, 1), 0.0)
        values = np.where(certain == UNSURE, means, -forest.values[0, children])
        factor = (self._weights.visit + visits.max()) * self._weights.scale / 2
        scores = edges.priors[moves] + np.where(visits > 0, factor * values, 0.0)
        if node == ROOT:
            scores = scores + forest.luck[0, : len(scores)]
        order = np.lexsort((-scores, -visits, -nearness, -mates))
        ranking: npt.NDArray[np.int64] = moves.start + order
        return ranking

    def _moves_of(self, node: int) -> slice:
        start = int(self._forest.edge_starts[0, node])
        return slice(start, start + int(self._forest.edge_counts[0, node]))

    def _plant(self, game: ShogiGame, only: npt.NDArray[np.uint16] | None) -> None:
        legal = game.legal_actions
        counts = np.array([len(legal)], dtype=np.int32)
        prediction = self._predictor.predict(Positions(pack_game(game), legal[None], counts))
        log_probs = np.ascontiguousarray(prediction.log_probs[:, : len(legal)])
        if only is not None:
            kept = np.isin(legal, only)
            legal, log_probs = legal[kept], np.ascontiguousarray(log_probs[:, kept])
            counts[0] = len(legal)
        self._used = int(
            plant(self._forest, self._edges, 0, legal[None], counts, log_probs, prediction.values)
        )

    def _node_of(self, game: ShogiGame) -> int | None:
        """Where a game stands in the tree; None if it does not, or the tree is of no use to it."""
        before = self._game
        if before is None or self._restricted or before.start != game.start:
            return None
        played, now = before.actions, game.actions
        new = now[len(played) :]
        # What repetitions are worth depends on who is at the root.
        if len(now) < len(played) or len(new) % 2 or not np.array_equal(now[: len(played)], played):
            return None
        node = ROOT
        for action in new.tolist():
            moves = self._moves_of(node)
            found = np.flatnonzero(self._edges.moves[moves] == action)
            if not len(found):
                return None
            node = int(self._edges.children[moves.start + int(found[0])])
            if node == NO_NODE:
                return None
        return node if self._forest.edge_counts[0, node] else None

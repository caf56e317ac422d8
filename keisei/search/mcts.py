"""Tree search over a network's policy and value: Gumbel AlphaZero's, strong with few simulations.

`TreeSearch` searches many games together with a fixed number of simulations, so that each
simulation is one call of the network for all of them. `GameSearch` searches one game until it is
stopped: it keeps its tree from move to move, in a bounded memory, and has several simulations in
flight, as calling the network for one position at a time would take three times as long.

Both select, expand, back up and rank by the same code, `TreeBatch`. The root spends its simulations
by sequential halving: the likeliest moves get a few each, then the better half of them more, and so
on. Where their number is not known beforehand, one halving follows another, each with twice as many
simulations. Why not as the nodes below: ``docs/decisions/012-one-ranking.md``.
"""

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from keisei.constants import MAX_LEGAL_MOVES
from keisei.errors import KeiseiError
from keisei.network.predictor import Prediction, Predictor
from keisei.search.mates import MateSearch
from keisei.search.selection import (
    QTransform,
    considered_visits,
    rank_edges,
    write_results,
    write_variation,
)
from keisei.search.simulation import add_roots, expand_and_backup, simulate
from keisei.search.trees import (
    COLLIDED,
    NEEDS_NETWORK,
    NO_NODE,
    NO_SIMULATION,
    ROOT,
    UNPROVEN,
    Edges,
    Trees,
    reroot,
    write_mate_distances,
)
from keisei.shogi.game import ShogiGame
from keisei.shogi.packed import Positions, pack_game
from keisei.shogi.position import Records, new_positions
from keisei.shogi.rules import DeclarationRule
from keisei.shogi.vector import VectorShogi
from keisei.shogi.vector_kernels import Games, branches_of

MAX_SIMULATIONS: Final = 100_000
MAX_CONSIDERED_MOVES: Final = 16
"""Root moves that sequential halving begins with."""

FIRST_HALVING: Final = 64
"""Simulations of the first halving where their number is not known."""

Q_TRANSFORM: Final = QTransform(maxvisit_init=50.0, value_scale=0.1)
"""The paper's value_scale is 1; values of short training are less accurate, so they weigh less."""

EDGES_PER_NODE: Final = 100
"""Legal moves of a position, roughly: what memory is reserved for."""

NODE_BYTES: Final = 18 + 26 * EDGES_PER_NODE
SIMULATIONS_PER_BATCH_SLOT: Final = 8
"""A batch is at most one in 8 of the simulations so far: early choices matter most, and those of
one batch do not know each other's results."""

_NO_PREDICTION: Final = Prediction(np.zeros((0, 1), np.float32), np.zeros(0, np.float32))


class SearchResult(NamedTuple):
    """The results of a search of ``G`` games."""

    legal_indices: npt.NDArray[np.int64]
    """``[G]``: the best move, as an index into the legal list."""

    values: npt.NDArray[np.float64]
    """``[G]``: value of the best move for its side, from -1 to 1."""

    visits: npt.NDArray[np.int64]
    """``[G, M]``: simulations of each legal move."""

    trees: "TreeBatch"
    """The trees, for principal variations."""

    def line(self, row: int) -> tuple[int, ...]:
        """Return the best move of a game and the play expected after it, as policy indices."""
        root = self.trees.edges_of(row, ROOT)
        best = root.start + int(self.legal_indices[row])
        return self.trees.variation(row, best).actions


class PrincipalVariation(NamedTuple):
    """A root move and the play that the search expects after it."""

    actions: tuple[int, ...]
    """Policy indices: the move, then the best replies."""

    value: float
    """Value of the move for its side, from -1 to 1."""

    visits: int
    """Simulations of the move."""

    mate: int | None
    """Plies to the proven mate, negative if the mover is mated; None without one."""


class TreeBatch:
    """The trees of some games, the games that simulations play in, and the network."""

    def __init__(
        self, predictor: Predictor, q_transform: QTransform, trees: Trees, num_edges: int
    ) -> None:
        self.trees = trees
        self.edges = Edges.new(num_edges)
        self.used = 0
        """Edges in use."""

        self.scratch = np.zeros(trees.values.shape[1], dtype=np.int32)
        self.ranking = np.zeros(MAX_LEGAL_MOVES, dtype=np.int64)
        self._predictor = predictor
        self._q_transform = q_transform
        self._games: Games
        self._roots: Records

    def set_games(self, games: Games, roots: Records) -> None:
        """Set the games ``[W]`` that simulations play in and the positions ``[T]`` at the roots."""
        self._games, self._roots = games, roots

    def set_root_noise(self, temperature: float, random: np.random.Generator | None) -> None:
        """Draw the Gumbel noise that is added to the policy at the roots; temperature 0: none."""
        noise = self.trees.root_noise
        noise[:] = 0.0
        if temperature > 0.0:
            random = random or np.random.default_rng()
            noise[:] = temperature * random.gumbel(size=noise.shape)

    def add_roots(self, positions: Positions, only: npt.NDArray[np.uint16] | None = None) -> None:
        """Begin the trees with their roots ``[T]``; `only` restricts the moves of a single root."""
        _, legal, counts = positions
        log_probs, values = self._predictor.predict(positions)
        if only is not None:
            kept = np.flatnonzero(np.isin(legal[0], only))
            legal, log_probs = legal[:, kept], np.ascontiguousarray(log_probs[:, kept])
            counts = np.array([len(kept)], dtype=np.int32)
        self.used = int(add_roots(self.trees, self.edges, legal, counts, log_probs, values))

    def simulate(self, root_visits: npt.NDArray[np.int64]) -> int:
        """Run up to ``W`` simulations with one call of the network; return how many counted.

        ``root_visits[W]``: the considered visit counts, or `NO_SIMULATION`.
        """
        trees, games = self.trees, self._games
        simulate(trees, self.edges, games, self._roots, root_visits, self._q_transform)
        has_path = trees.path_lengths > 0
        rows = np.flatnonzero(has_path & (trees.leaf_states == NEEDS_NETWORK))
        prediction = _NO_PREDICTION
        if len(rows):
            prediction = self._predictor.predict(games.observe(rows))
            needed = self.used + int(games.legal_counts[rows].sum())
            if needed > len(self.edges.moves):
                self.edges = self.edges.enlarged(2 * needed)
        self.used = int(expand_and_backup(trees, self.edges, self.used, games, rows, *prediction))
        return int((has_path & (trees.leaf_states != COLLIDED)).sum())

    def results(self, num_moves: int) -> SearchResult:
        """Return the results of all trees; `num_moves` is the most that a root has."""
        trees = len(self.trees.sizes)
        legal_indices = np.zeros(trees, dtype=np.int64)
        values = np.zeros(trees, dtype=np.float64)
        visits = np.zeros((trees, num_moves), dtype=np.int64)
        memory = (self._q_transform, self.scratch, self.ranking)
        write_results(self.trees, self.edges, *memory, legal_indices, values, visits)
        return SearchResult(legal_indices, values, visits, self)

    def best_edges(self, tree: int, most: int) -> list[int]:
        """Return the edges of the `most` best root moves of a tree, best first."""
        memory = (self._q_transform, self.scratch, self.ranking)
        write_mate_distances(self.trees, self.edges, tree, self.scratch)
        count = int(rank_edges(self.trees, self.edges, tree, ROOT, *memory))
        best: list[int] = self.ranking[: min(most, count)].tolist()
        return best

    def variation(self, tree: int, edge: int) -> PrincipalVariation:
        """Return the principal variation of a root move."""
        memory = (self._q_transform, self.scratch, self.ranking)
        actions = np.zeros(self.trees.path_nodes.shape[1], dtype=np.uint16)
        write_mate_distances(self.trees, self.edges, tree, self.scratch)
        length, value, mate = write_variation(self.trees, self.edges, tree, edge, *memory, actions)
        visits = int(self.edges.visits[edge])
        return PrincipalVariation(tuple(actions[:length].tolist()), value, visits, mate or None)

    def edges_of(self, tree: int, node: int) -> slice:
        """Return where the edges of a node are."""
        start = int(self.trees.edge_starts[tree, node])
        return slice(start, start + int(self.trees.edge_counts[tree, node]))


class TreeSearch:
    """Searches many games together, with the same number of simulations each."""

    def __init__(
        self,
        predictor: Predictor,
        simulations: int,
        *,
        mate_plies: int = 3,
        temperature: float = 0.0,
        q_transform: QTransform = Q_TRANSFORM,
    ) -> None:
        """Make a search.

        Args:
            predictor: the network.
            simulations: simulations for each move.
            mate_plies: longest mate that is searched for at the root first, in plies; 0: none.
            temperature: scale of the Gumbel noise at the root; 0: no noise.
            q_transform: weight of the values against the policy.
        """
        if not 1 <= simulations <= MAX_SIMULATIONS:
            raise KeiseiError(
                f"a search has 1 to {MAX_SIMULATIONS:,} simulations, not {simulations}"
            )
        self.simulations = simulations
        self.temperature = temperature
        self._predictor = predictor
        self._q_transform = q_transform
        self._mates = MateSearch(mate_plies) if mate_plies else None

    def search(
        self, env: VectorShogi, games: npt.NDArray[np.int64], random: np.random.Generator
    ) -> SearchResult:
        """Search the `games` (indices ``[G]``) of an environment, which is not changed."""
        positions, roots = env.observe(games), env.positions[games]
        counts = positions.legal_counts
        batch = TreeBatch(
            self._predictor,
            self._q_transform,
            Trees.new(len(games), self.simulations),
            int(counts.sum()) + len(games) * EDGES_PER_NODE,
        )
        batch.set_games(env.branches(games), roots)
        batch.set_root_noise(self.temperature, random)
        batch.add_roots(positions)
        mates = np.full(len(games), -1, dtype=np.int64)
        if self._mates is not None:
            mates = self._mates.find(roots, positions.legal_actions, counts)
        considered = np.minimum(counts, MAX_CONSIDERED_MOVES).tolist()
        sequences = {moves: considered_visits(moves, self.simulations) for moves in set(considered)}
        for root_visits in np.stack([sequences[moves] for moves in considered], axis=1):
            is_open = (batch.trees.proven[:, ROOT] == UNPROVEN) & (mates < 0) & (counts > 1)
            if not is_open.any():
                break
            batch.simulate(np.where(is_open, root_visits, NO_SIMULATION))
        result = batch.results(int(counts.max()))
        return result._replace(
            legal_indices=np.where(mates >= 0, mates, result.legal_indices),
            values=np.where(mates >= 0, 1.0, result.values),
        )


class GameSearch:
    """Searches one game, a batch of simulations at a time; keeps its tree from move to move."""

    def __init__(
        self,
        predictor: Predictor,
        *,
        batch_size: int = 16,
        megabytes: int = 256,
        q_transform: QTransform = Q_TRANSFORM,
    ) -> None:
        """Reserve the memory.

        Args:
            predictor: the network.
            batch_size: simulations in flight, at most.
            megabytes: how large the tree may grow.
            q_transform: weight of the values against the policy.
        """
        if batch_size < 1 or megabytes < 1:
            raise KeiseiError("a search needs a batch size and a memory of at least 1")
        self.batch_size = batch_size
        nodes = max(megabytes * 1_000_000 // NODE_BYTES, 4 * batch_size)
        self._batch = TreeBatch(
            predictor,
            q_transform,
            Trees.new(1, nodes, batch_size=batch_size, max_depth=1),
            EDGES_PER_NODE * nodes + MAX_LEGAL_MOVES,
        )
        self._game: ShogiGame | None = None
        self._rules: tuple[int, DeclarationRule] | None = None
        self._is_restricted = False
        self._sequence = considered_visits(1, 1)
        """Considered visit counts of the present halving."""

        self._done = 0
        """Simulations of the present halving."""

        self.max_depth = 0
        """Plies of the longest simulation."""

    def clear(self) -> None:
        """Drop the tree: the next search starts with an empty one."""
        self._game = None
        self._batch.used = 0
        self.max_depth = 0

    def begin(
        self,
        game: ShogiGame,
        *,
        ply_limit: int,
        declaration: DeclarationRule = DeclarationRule.POINTS_27,
        temperature: float = 0.0,
        random: np.random.Generator | None = None,
        only: npt.NDArray[np.uint16] | None = None,
        simulations: int | None = None,
    ) -> None:
        """Begin the search of a position, with what the last tree knows of it.

        Args:
            game: with at least one legal move; it must not be changed afterwards.
            ply_limit: the ply at which the game is a draw; beyond the present one.
            declaration: by which rule wins are declared in the tree.
            temperature: scale of the Gumbel noise at the root; 0: no noise.
            random: draws the noise.
            only: the legal actions that are considered at the root; None: all.
            simulations: number of simulations, where it is known.
        """
        batch = self._batch
        rules = (ply_limit, declaration)
        node = None if only is not None or self._rules != rules else self._node_of(game)
        if node is None:
            legal = game.legal_actions
            counts = np.array([len(legal)], dtype=np.int32)
            batch.add_roots(Positions(pack_game(game), legal[None], counts), only)
        elif node != ROOT:
            batch.used = int(reroot(batch.trees, batch.edges, 0, node, batch.scratch))
        self._game, self._rules, self._is_restricted = game, rules, only is not None
        depth = ply_limit - game.ply + 1
        batch.trees = batch.trees._replace(
            paths=np.zeros((self.batch_size, depth), dtype=np.int64),
            path_nodes=np.zeros((self.batch_size, depth + 1), dtype=np.int32),
        )
        batch.set_root_noise(temperature, random)
        roots = new_positions(1)
        roots[0] = game.position
        branches = branches_of(game, self.batch_size, ply_limit=ply_limit, declaration=declaration)
        batch.set_games(branches, roots)
        self._begin_halving(min(simulations or FIRST_HALVING, MAX_SIMULATIONS))
        self.max_depth = 0

    def _begin_halving(self, simulations: int) -> None:
        """Begin a sequential halving over the best root moves so far."""
        batch = self._batch
        root = batch.edges_of(0, ROOT)
        count = root.stop - root.start
        batch.trees.earlier_visits[0, :count] = batch.edges.visits[root]
        self._sequence = considered_visits(min(count, MAX_CONSIDERED_MOVES), simulations)
        self._done = 0

    @property
    def simulations(self) -> int:
        """Visits of the root, those of earlier searches that are still in the tree included."""
        return int(self._batch.edges.visits[self._batch.edges_of(0, ROOT)].sum())

    @property
    def is_proven(self) -> bool:
        """Whether the result is proven: more simulations cannot change it."""
        return bool(self._batch.trees.proven[0, ROOT] != UNPROVEN)

    @property
    def is_full(self) -> bool:
        """Whether there is no memory left for another batch."""
        trees, batch = self._batch.trees, self._batch
        return bool(
            batch.used + self.batch_size * MAX_LEGAL_MOVES > len(batch.edges.moves)
            or trees.sizes[0] + self.batch_size > trees.values.shape[1]
        )

    @property
    def permille_full(self) -> int:
        """Memory in use, in parts of 1,000."""
        return round(1000 * self._batch.used / len(self._batch.edges.moves))

    def step(self, most: int | None = None) -> int:
        """Run a batch of at most `most` simulations; return their number, 0 when it is full."""
        if self.is_full:
            return 0
        if self._done == len(self._sequence):
            self._begin_halving(min(2 * len(self._sequence), MAX_SIMULATIONS))
        number = max(1, min(self.batch_size, 1 + self.simulations // SIMULATIONS_PER_BATCH_SLOT))
        if most is not None:
            number = min(number, most)
        required = self._sequence[self._done : self._done + number]
        root_visits = np.full(self.batch_size, NO_SIMULATION, dtype=np.int64)
        root_visits[: len(required)] = required
        done = self._batch.simulate(root_visits)
        self._done += done
        self.max_depth = max(self.max_depth, int(self._batch.trees.path_lengths.max()))
        return done

    def variations(self, most: int = 1) -> list[PrincipalVariation]:
        """Return the principal variations of the `most` best moves, best first."""
        return [self._batch.variation(0, edge) for edge in self._batch.best_edges(0, most)]

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
        batch, node = self._batch, ROOT
        for action in new.tolist():
            edges = batch.edges_of(0, node)
            found = np.flatnonzero(batch.edges.moves[edges] == action)
            if not len(found):
                return None
            node = int(batch.edges.children[edges.start + int(found[0])])
            if node == NO_NODE:
                return None
        return node if batch.trees.edge_counts[0, node] else None

"""Tree search over a network's policy and value, as in AlphaZero.

`TreeSearch` searches many games with a fixed number of simulations each. `GameSearch` searches one
game until it is stopped, and keeps its tree from move to move, in a bounded memory.

Both run simulations by the same code, `TreeBatch`. Over a sparse network they run in one kernel, in
several threads: on different trees, or in the same one. Any other network evaluates the leaves of
many simulations in one call: one of each tree, or several of the same tree, as calling it for one
position at a time would take three times as long.
"""

from typing import Any, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from keisei.constants import MAX_LEGAL_MOVES
from keisei.errors import KeiseiError
from keisei.network.predictor import Prediction, Predictor, sample_policy
from keisei.search.mates import MateSearch
from keisei.search.puct import Puct, rank_edges, write_results, write_variation
from keisei.search.simulation import (
    COLLIDED,
    NEW_LEAF,
    NO_LEAF,
    add_roots,
    expand_and_backup,
    simulate,
)
from keisei.search.sparse_simulation import SparseThreads
from keisei.search.trees import (
    EDGE_BYTES,
    NO_NODE,
    NODE_BYTES,
    ROOT,
    UNPROVEN,
    Simulations,
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
MAX_LINE: Final = 32
"""Moves of the expected play that `TreeSearch` returns, at most."""

EDGES_PER_NODE: Final = 100
"""Legal moves of a position, roughly: what memory is reserved for."""

BYTES_PER_NODE: Final = NODE_BYTES + EDGES_PER_NODE * EDGE_BYTES

MAX_NODES: Final = 250_000
"""Nodes of the trees that are searched together, at most: some 250 MB."""

MAX_KERNEL_SIMULATIONS: Final = 50_000
"""Simulations of one call of a kernel, at most: about a second, after which Ctrl-C is noticed."""

STEP_PER_THREAD: Final = 256
"""Simulations of a step of `GameSearch` for each thread of a sparse network: about 4 ms."""

SIMULATIONS_PER_BATCH_SLOT: Final = 8
"""A batch is at most one in 8 of the simulations so far: early choices matter most, and those of
one batch do not know each other's results."""

_NO_PREDICTION: Final = Prediction(np.zeros((0, 1), np.float32), np.zeros(0, np.float32))


class SearchResult(NamedTuple):
    """The results of a search of ``G`` games."""

    legal_indices: npt.NDArray[np.int64]
    """``[G]``: the chosen move, as an index into the legal list."""

    values: npt.NDArray[np.float64]
    """``[G]``: value of the best move for its side, from -1 to 1."""

    visits: npt.NDArray[np.int64]
    """``[G, M]``: simulations of each legal move."""

    lines: list[tuple[int, ...]]
    """``[G]``: the best move and the play expected after it, as policy indices."""


class PrincipalVariation(NamedTuple):
    """A root move and the play that the search expects after it."""

    actions: tuple[int, ...]
    """Policy indices: the move, then the best replies."""

    value: float
    """Value of the move for its side, from -1 to 1."""

    visits: int
    """Simulations of the move."""

    prior: float
    """Probability of the move by the flattened policy, see `Puct`."""

    mate: int | None
    """Plies to the proven mate, negative if the mover is mated; None without one."""


class TreeBatch:
    """The trees of some games, the games that simulations play in, and the network."""

    def __init__(
        self,
        predictor: Predictor,
        threads: SparseThreads | None,
        puct: Puct,
        trees: Trees,
        *,
        per_tree: int,
    ) -> None:
        """Make empty trees.

        Args:
            predictor: the network.
            threads: those that run simulations over it, if it is a sparse one.
            puct: how visits are divided among moves.
            trees: their memory.
            per_tree: simulations that may be in flight in a tree.
        """
        self.trees = trees
        self.per_tree = per_tree
        self.distances = np.zeros(trees.visits.shape[1], dtype=np.int32)
        self._predictor = predictor
        self._threads = threads
        self._puct = puct
        self._simulations: Simulations
        self._games: Games
        self._roots: Records

    def set_games(self, games: Games, roots: Records, max_depth: int) -> None:
        """Set the games ``[W]`` that simulations play in and the positions ``[T]`` at the roots.

        `max_depth` is the longest path that a simulation can have.
        """
        self._games, self._roots = games, roots
        self._simulations = Simulations.new(len(roots), per_tree=self.per_tree, max_depth=max_depth)

    def add_roots(self, positions: Positions, only: npt.NDArray[np.uint16] | None = None) -> None:
        """Begin the trees with their roots ``[T]``; `only` restricts the moves of a single root."""
        _, legal, counts = positions
        log_probs, values = self._predictor.predict(positions)
        if only is not None:
            kept = np.flatnonzero(np.isin(legal[0], only))
            legal, log_probs = legal[:, kept], np.ascontiguousarray(log_probs[:, kept])
            counts = np.array([len(kept)], dtype=np.int32)
        add_roots(self.trees, legal, counts, log_probs, values, self._puct)

    def simulate(self, left: npt.NDArray[np.int64]) -> None:
        """Run at most ``left[T]`` simulations of each tree, and reduce `left` by them.

        Over a sparse network all of them, unless the root is proven or there is no memory for
        more; else as many as may be in flight together.
        """
        if self._threads is None:
            self._simulate_batch(left)
            return
        arguments = (self.trees, self._simulations, self._games, self._roots, left, self._puct)
        self._threads.run(*arguments)

    def _simulate_batch(self, left: npt.NDArray[np.int64]) -> None:
        """Run simulations with one call of the network."""
        trees, games, simulations = self.trees, self._games, self._simulations
        owners = simulations.owners
        wanted = np.where(trees.proven[:, ROOT] == UNPROVEN, left, 0)
        is_wanted = np.arange(len(owners)) % self.per_tree < wanted[owners]
        simulate(trees, simulations, games, self._roots, is_wanted, self._puct)
        slots = np.flatnonzero(simulations.leaf_states == NEW_LEAF)
        prediction = _NO_PREDICTION
        if len(slots):
            prediction = self._predictor.predict(games.observe(slots))
            new = np.bincount(owners[slots], weights=games.legal_counts[slots])
            needed = int((trees.num_edges[: len(new)] + new).max())
            if needed > trees.moves.shape[1]:
                self.trees = trees.enlarged(2 * needed)
        expand_and_backup(self.trees, simulations, games, slots, *prediction, self._puct)
        has_counted = np.isin(simulations.leaf_states, (NO_LEAF, COLLIDED), invert=True)
        left -= np.bincount(owners[has_counted], minlength=len(left))

    def make_room(self) -> None:
        """Enlarge the trees if one of them has no memory left for the edges of a node."""
        size = self.trees.moves.shape[1]
        if int(self.trees.num_edges.max()) + self.per_tree * MAX_LEGAL_MOVES > size:
            self.trees = self.trees.enlarged(2 * size)

    @property
    def max_depth(self) -> int:
        """Plies of the longest simulation."""
        return int(self._simulations.max_lengths.max())

    def results(self, legal_actions: npt.NDArray[np.uint16]) -> SearchResult:
        """Return the results of all trees; ``legal_actions[T, M]`` are those of the roots."""
        number = len(self._roots)
        legal_indices = np.zeros(number, dtype=np.int64)
        values = np.zeros(number, dtype=np.float64)
        visits = np.zeros(legal_actions.shape, dtype=np.int64)
        lines = np.zeros((number, MAX_LINE), dtype=np.uint16)
        lengths = np.zeros(number, dtype=np.int64)
        outputs = (legal_indices, values, visits, lines, lengths)
        write_results(self.trees, legal_actions, self.distances, *outputs)
        moves = [tuple(line[:length].tolist()) for line, length in zip(lines, lengths, strict=True)]
        return SearchResult(legal_indices, values, visits, moves)

    def variations(self, most: int) -> list[PrincipalVariation]:
        """Return the principal variations of the `most` best moves of the first tree."""
        trees = self.trees
        ranking = np.zeros(MAX_LEGAL_MOVES, dtype=np.int64)
        write_mate_distances(trees, 0, self.distances)
        count = int(rank_edges(trees, 0, self.distances, ranking))
        actions = np.zeros(self._simulations.paths.shape[1], dtype=np.uint16)
        found = []
        for edge in ranking[: min(most, count)].tolist():
            length, value, mate = write_variation(trees, 0, edge, self.distances, actions)
            child = int(trees.children[0, edge])
            visits = 0 if child == NO_NODE else int(trees.visits[0, child])
            line = tuple(actions[:length].tolist())
            prior = float(trees.priors[0, edge])
            found.append(PrincipalVariation(line, value, visits, prior, mate or None))
        return found


class TreeSearch:
    """Searches many games, with the same number of simulations each."""

    def __init__(
        self,
        predictor: Predictor,
        simulations: int,
        *,
        mate_plies: int = 3,
        temperature: float = 0.0,
        puct: Puct | None = None,
    ) -> None:
        """Make a search.

        Args:
            predictor: the network.
            simulations: simulations for each move.
            mate_plies: longest mate that is searched for at the root first, in plies; 0: none.
            temperature: moves are drawn by their visits to the power of 1 over this; 0: the best.
            puct: how visits are divided among moves.
        """
        if not 1 <= simulations <= MAX_SIMULATIONS:
            raise KeiseiError(
                f"a search has 1 to {MAX_SIMULATIONS:,} simulations, not {simulations}"
            )
        self.simulations = simulations
        self.temperature = temperature
        self._predictor = predictor
        self._threads = SparseThreads.of(predictor)
        self._puct = puct or Puct()
        self._mates = MateSearch(mate_plies) if mate_plies else None
        most = MAX_NODES if self._threads is None else MAX_KERNEL_SIMULATIONS
        self._most_games = max(most // simulations, self._threads.threads if self._threads else 1)

    def search(
        self, env: VectorShogi, games: npt.NDArray[np.int64], random: np.random.Generator
    ) -> SearchResult:
        """Search the `games` (indices ``[G]``) of an environment, which is not changed."""
        width = int(env.legal_counts[games].max())
        parts = [
            self._search(env, games[start : start + self._most_games], width)
            for start in range(0, len(games), self._most_games)
        ]
        result = SearchResult(
            np.concatenate([part.legal_indices for part in parts]),
            np.concatenate([part.values for part in parts]),
            np.concatenate([part.visits for part in parts]),
            [line for part in parts for line in part.lines],
        )
        if self.temperature > 0.0:
            sampled = sample_weights(result.visits, self.temperature, random)
            is_open = np.abs(result.values) < 1.0
            result = result._replace(legal_indices=np.where(is_open, sampled, result.legal_indices))
        return result

    def _search(self, env: VectorShogi, games: npt.NDArray[np.int64], width: int) -> SearchResult:
        positions, roots = env.observe(games), env.positions[games]
        counts = positions.legal_counts
        edges = MAX_LEGAL_MOVES + self.simulations * EDGES_PER_NODE
        trees = Trees.new(len(games), self.simulations + 1, edges)
        batch = TreeBatch(self._predictor, self._threads, self._puct, trees, per_tree=1)
        batch.set_games(env.branches(games), roots, self.simulations + 1)
        batch.add_roots(positions)
        mates = np.full(len(games), -1, dtype=np.int64)
        if self._mates is not None:
            mates = self._mates.find(roots, positions.legal_actions, counts)
        left = np.where((mates < 0) & (counts > 1), self.simulations, 0)
        while True:
            left[batch.trees.proven[:, ROOT] != UNPROVEN] = 0
            if not left.any():
                break
            batch.make_room()
            batch.simulate(left)
        result = batch.results(np.ascontiguousarray(positions.legal_actions[:, :width]))
        return result._replace(
            legal_indices=np.where(mates >= 0, mates, result.legal_indices),
            values=np.where(mates >= 0, 1.0, result.values),
        )


def sample_weights(
    weights: npt.NDArray[Any], temperature: float, random: np.random.Generator
) -> npt.NDArray[np.int64]:
    """Draw a move of each game by weights ``[G, M]``, each to the power of 1 over `temperature`."""
    with np.errstate(divide="ignore"):
        return sample_policy(np.log(weights) / temperature, random)


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

        nodes = max(megabytes * 1_000_000 // BYTES_PER_NODE, 4 * per_tree)
        edges = EDGES_PER_NODE * nodes + MAX_LEGAL_MOVES * (1 + per_tree)
        trees = Trees.new(1, nodes, edges)
        self._puct = puct or Puct()
        self._batch = TreeBatch(predictor, threads, self._puct, trees, per_tree=per_tree)
        self._game: ShogiGame | None = None
        self._rules: tuple[int, DeclarationRule] | None = None
        self._is_restricted = False

    def clear(self) -> None:
        """Drop the tree: the next search starts with an empty one."""
        self._game = None
        self._batch.trees.num_edges[0] = 0

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
        trees = self._batch.trees
        edges = int(trees.num_edges[0]) + self._batch.per_tree * MAX_LEGAL_MOVES
        return bool(
            edges > trees.moves.shape[1]
            or trees.sizes[0] + self._batch.per_tree > trees.visits.shape[1]
        )

    @property
    def permille_full(self) -> int:
        """Memory in use, in parts of 1,000."""
        trees = self._batch.trees
        return round(1000 * int(trees.num_edges[0]) / len(trees.moves[0]))

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
            weights = np.array([line.visits for line in lines])
        else:
            weights = np.array([line.prior for line in lines])
            temperature /= self._puct.policy_temperature
        return lines[int(sample_weights(weights[None], temperature, random)[0])]

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

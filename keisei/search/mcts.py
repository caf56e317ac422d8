"""Tree search over a network's policy and value, as in AlphaZero.

`TreeSearch` searches many games with a fixed number of simulations each;
`keisei.search.game_search.GameSearch` one game until it is stopped.

Both run simulations by the same code, `TreeBatch`. Over a sparse network they run in one kernel, in
several threads: on different trees, or in the same one. Any other network evaluates the leaves of
many simulations in one call: one of each tree, or several of the same tree, as calling it for one
position at a time would take three times as long.
"""

from collections.abc import Callable
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
    NO_NODE,
    ROOT,
    UNPROVEN,
    Simulations,
    Trees,
    write_mate_distances,
)
from keisei.shogi.packed import Positions
from keisei.shogi.position import Records
from keisei.shogi.vector import VectorShogi
from keisei.shogi.vector_kernels import Games

MAX_SIMULATIONS: Final = 100_000
MAX_LINE: Final = 32
"""Moves of the expected play that `TreeSearch` returns, at most."""

EDGES_PER_NODE: Final = 100
"""Legal moves of a position, roughly: what memory is reserved for."""

MAX_NODES: Final = 250_000
"""Nodes of the trees that are searched together, at most: some 250 MB."""

MAX_KERNEL_SIMULATIONS: Final = 50_000
"""Simulations of one call of a kernel, at most: about a second, after which Ctrl-C is noticed."""

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

    def log_probs(self, temperature: float) -> npt.NDArray[np.float32]:
        """Return ``[G, M]``: the policy that the search found, as logarithms.

        Visits to the power of 1 over `temperature`; the best move alone where it is proven, or the
        only one.
        """
        is_best = np.arange(self.visits.shape[1]) == self.legal_indices[:, None]
        is_decided = (np.abs(self.values) >= 1.0) | (self.visits.sum(axis=1) == 0)
        with np.errstate(divide="ignore"):
            logits = np.log(np.where(is_decided[:, None], is_best, self.visits)) / temperature
        logits -= logits.max(axis=1, keepdims=True)
        logits -= np.log(np.exp(logits).sum(axis=1, keepdims=True))
        return logits.astype(np.float32)


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
        self._root_policy = legal[0], log_probs[0]
        add_roots(self.trees, legal, counts, log_probs, values, self._puct)

    @property
    def root_log_probs(self) -> dict[int, float]:
        """The network's log-probability of each move at the root that the first tree began with."""
        legal, log_probs = self._root_policy
        return dict(zip(legal.tolist(), log_probs.tolist(), strict=False))

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


class SearchStoppedError(Exception):
    """A search was stopped before its end, by its `should_stop`."""


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
        self,
        env: VectorShogi,
        games: npt.NDArray[np.int64],
        random: np.random.Generator | None = None,
        *,
        should_stop: Callable[[], bool] | None = None,
    ) -> SearchResult:
        """Search the `games` (indices ``[G]``) of an environment, which is not changed.

        Args:
            env: the environment.
            games: which of its games.
            random: draws the moves if there is a temperature.
            should_stop: asked between batches of simulations, which take about a second at most.

        Raises:
            SearchStoppedError: `should_stop` has returned True.
        """
        width = int(env.legal_counts[games].max())
        parts = [
            self._search(env, games[start : start + self._most_games], width, should_stop)
            for start in range(0, len(games), self._most_games)
        ]
        result = SearchResult(
            np.concatenate([part.legal_indices for part in parts]),
            np.concatenate([part.values for part in parts]),
            np.concatenate([part.visits for part in parts]),
            [line for part in parts for line in part.lines],
        )
        if self.temperature > 0.0:
            assert random is not None
            sampled = sample_weights(result.visits, self.temperature, random)
            is_open = np.abs(result.values) < 1.0
            result = result._replace(legal_indices=np.where(is_open, sampled, result.legal_indices))
        return result

    def _search(
        self,
        env: VectorShogi,
        games: npt.NDArray[np.int64],
        width: int,
        should_stop: Callable[[], bool] | None,
    ) -> SearchResult:
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
            if should_stop is not None and should_stop():
                raise SearchStoppedError
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

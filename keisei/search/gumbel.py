"""Tree search over a network, for many games at once: Gumbel AlphaZero's, for few simulations.

All games are searched together, so that each simulation is one call of the network for all of
them. The root spends its simulations by sequential halving: the likeliest moves get a few each,
then the better half of them more, and so on; so even 16 simulations are well spent.
"""

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from keisei.errors import KeiseiError
from keisei.network.predictor import Predictor
from keisei.search.mates import MateSearch
from keisei.search.selection import Weights, write_results
from keisei.search.simulation import descend, grow, plant
from keisei.search.trees import (
    NEEDS_NETWORK,
    NO_WALK,
    ROOT,
    UNSURE,
    Edges,
    Forest,
)
from keisei.shogi.packed import Positions
from keisei.shogi.vector import VectorShogi

MAX_SIMULATIONS: Final = 100_000
CONSIDERED_MOVES: Final = 16
"""Moves of the root that get simulations at first."""

WEIGHTS: Final = Weights(visit=50.0, scale=0.1)
"""The paper has a scale of 1 for networks whose values are good. Those of ten minutes are not."""

_FIRST_EDGES_PER_NODE: Final = 100
"""Legal moves of a position, roughly: what memory is set aside for."""


class SearchResult(NamedTuple):
    """What the search says of ``G`` games."""

    legal_indices: npt.NDArray[np.int64]
    """``[G]``: the best move, as an index into the legal list."""

    values: npt.NDArray[np.float64]
    """``[G]``: what it is worth to the mover, from -1 to 1."""

    visits: npt.NDArray[np.int64]
    """``[G, M]``: simulations that began with each legal move."""


class TreeSearch:
    """Searches with `simulations` positions each, over a network's policy and value."""

    def __init__(
        self,
        predictor: Predictor,
        simulations: int,
        *,
        mate_plies: int = 3,
        temperature: float = 0.0,
        weights: Weights = WEIGHTS,
    ) -> None:
        """Make a search.

        Args:
            predictor: the network.
            simulations: positions to look at for each move.
            mate_plies: mates of up to so many plies are looked for at the root first; 0: none.
            temperature: of the luck that decides which moves are considered; 0: no luck.
            weights: how much values count against the policy.
        """
        if not 1 <= simulations <= MAX_SIMULATIONS:
            raise KeiseiError(
                f"a search has 1 to {MAX_SIMULATIONS:,} simulations, not {simulations}"
            )
        self.simulations = simulations
        self.temperature = temperature
        self._predictor = predictor
        self._weights = weights
        self._mates = MateSearch(mate_plies) if mate_plies else None

    def search(
        self, env: VectorShogi, games: npt.NDArray[np.int64], random: np.random.Generator
    ) -> SearchResult:
        """Search some `games` (indices) of an environment, which is left as it is."""
        positions = env.positions[games]
        legal, counts = env.legal_actions[games], env.legal_counts[games]
        trees = len(games)
        forest = Forest.new(trees, self.simulations)
        if self.temperature > 0.0:
            forest.luck[:] = self.temperature * random.gumbel(size=forest.luck.shape)
        branches = env.branches(games)
        edges = Edges.new(int(counts.sum()) + trees * _FIRST_EDGES_PER_NODE)
        prediction = self._predictor.predict(Positions(env.packed[games], legal, counts))
        used = int(plant(forest, edges, 0, legal, counts, prediction.log_probs, prediction.values))
        mates = (
            np.full(trees, -1, dtype=np.int64)
            if self._mates is None
            else self._mates.find(positions, legal, counts)
        )
        schedules = {
            moves: _wanted_visits(moves, self.simulations)
            for moves in set(np.minimum(counts, CONSIDERED_MOVES).tolist())
        }
        plans = np.stack([schedules[min(int(count), CONSIDERED_MOVES)] for count in counts])
        for simulation in range(self.simulations):
            is_open = (forest.certain[:, ROOT] == UNSURE) & (mates < 0) & (counts > 1)
            if not is_open.any():
                break
            wanted = np.where(is_open, plans[:, simulation], NO_WALK)
            descend(forest, edges, branches, positions, wanted, self._weights)
            rows = np.flatnonzero(is_open & (forest.arrivals == NEEDS_NETWORK))
            if len(rows):
                prediction = self._predictor.predict(branches.observe(rows))
                needed = used + int(branches.legal_counts[rows].sum())
                if needed > len(edges.moves):
                    edges = edges.enlarged(2 * needed)
            used = int(
                grow(forest, edges, used, branches, rows, prediction.log_probs, prediction.values)
            )
        legal_indices = np.zeros(trees, dtype=np.int64)
        values = np.zeros(trees, dtype=np.float64)
        visits = np.zeros((trees, int(counts.max())), dtype=np.int64)
        write_results(forest, edges, self._weights, legal_indices, values, visits)
        return SearchResult(
            np.where(mates >= 0, mates, legal_indices), np.where(mates >= 0, 1.0, values), visits
        )


def _wanted_visits(moves: int, simulations: int) -> npt.NDArray[np.int64]:
    """For each simulation, how many visits the root move must have had that it goes to.

    Sequential halving, written so that nothing has to be remembered: a round gives each of the
    moves still considered the same number of visits, and a move that fell behind never has as many
    as the next one asks for.

    >>> _wanted_visits(4, 12).tolist()
    [0, 0, 0, 0, 1, 1, 2, 2, 3, 3, 4, 4]
    """
    wanted: list[int] = []
    rounds = max(1, int(np.ceil(np.log2(moves))))
    considered, visits = moves, 0
    while len(wanted) < simulations:
        each = max(1, simulations // (rounds * considered))
        for _ in range(each):
            wanted += [visits] * considered
            visits += 1
        considered = max(2, considered // 2) if moves > 1 else 1
    return np.array(wanted[:simulations], dtype=np.int64)

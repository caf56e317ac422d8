"""What a tree that has been searched is good for: how far its mates are, and the next search."""

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from keisei.constants import MAX_LEGAL_MOVES, MOVE_BUFFER
from keisei.shogi.jit import int64, jit
from keisei.shogi.tables import NUM_CLASSES

ROOT: Final = 0
NO_NODE: Final = -1

UNSURE, WON, LOST, FIXED = 0, 1, -1, 2
"""What is certain of a node, for its mover. A fixed one is not looked into: it is a draw, or it
repeats an earlier position, which one may do again and again but gets nowhere by."""

NEEDS_NETWORK, IS_CERTAIN, COLLIDED = 0, 1, 2
"""What a simulation has arrived at. A collision, with a position that the network is still to be
asked about for another walk, is no simulation."""

NO_WALK: Final = -1
AS_BELOW: Final = -2
"""In place of a number of visits: no simulation; choose at the root as everywhere below it."""


class Forest(NamedTuple):
    """``T`` trees of up to ``S + 1`` nodes each, and ``W`` walks of up to ``D`` plies in them.

    Values are those of the mover at the node.
    """

    edge_starts: npt.NDArray[np.int64]  # [T, S + 1]: where a node's moves begin in the edges
    edge_counts: npt.NDArray[np.int32]  # [T, S + 1]: 0 for what is over
    values: npt.NDArray[np.float32]  # [T, S + 1]: the network's word, or the certain value
    certain: npt.NDArray[np.int8]  # [T, S + 1]: UNSURE, WON, LOST, FIXED
    in_check: npt.NDArray[np.bool_]  # [T, S + 1]
    sizes: npt.NDArray[np.int32]  # [T]: nodes so far
    owners: npt.NDArray[np.int32]  # [W]: the tree that a walk goes down
    paths: npt.NDArray[np.int64]  # [W, D]: edges of the current simulation
    path_nodes: npt.NDArray[np.int32]  # [W, D + 1]: nodes of the current simulation
    path_lengths: npt.NDArray[np.int32]  # [W]: how many edges
    arrivals: npt.NDArray[np.int8]  # [W]: NEEDS_NETWORK, IS_CERTAIN or COLLIDED
    luck: npt.NDArray[np.float32]  # [T, 593]: Gumbel noise on the root's log-probabilities
    scores: npt.NDArray[np.float64]  # [1024]: of moves, overwritten
    replies: npt.NDArray[np.uint16]  # [1024]: overwritten
    checking: npt.NDArray[np.uint64]  # [classes, 2]: overwritten

    @classmethod
    def new(cls, trees: int, simulations: int, *, walks: int = 1, depth: int = 0) -> "Forest":
        """Trees without any node.

        Args:
            trees: how many.
            simulations: nodes that each can have beside its root.
            walks: how many go down each tree at a time.
            depth: plies that a walk can have; 0: as many as a tree has nodes.
        """
        shape = (trees, simulations + 1)
        depth = depth or simulations + 1
        return cls(
            edge_starts=np.zeros(shape, dtype=np.int64),
            edge_counts=np.zeros(shape, dtype=np.int32),
            values=np.zeros(shape, dtype=np.float32),
            certain=np.zeros(shape, dtype=np.int8),
            in_check=np.zeros(shape, dtype=np.bool_),
            sizes=np.zeros(trees, dtype=np.int32),
            owners=np.repeat(np.arange(trees, dtype=np.int32), walks),
            paths=np.zeros((trees * walks, depth), dtype=np.int64),
            path_nodes=np.zeros((trees * walks, depth + 1), dtype=np.int32),
            path_lengths=np.zeros(trees * walks, dtype=np.int32),
            arrivals=np.zeros(trees * walks, dtype=np.int8),
            luck=np.zeros((trees, MAX_LEGAL_MOVES), dtype=np.float32),
            scores=np.zeros(MOVE_BUFFER, dtype=np.float64),
            replies=np.zeros(MOVE_BUFFER, dtype=np.uint16),
            checking=np.zeros((NUM_CLASSES, 2), dtype=np.uint64),
        )


class Edges(NamedTuple):
    """The moves of all nodes of all trees, one after the other."""

    moves: npt.NDArray[np.uint16]
    priors: npt.NDArray[np.float32]
    """Log-probabilities of the policy."""

    children: npt.NDArray[np.int32]
    """The node that a move leads to, `NO_NODE` before its first visit."""

    visits: npt.NDArray[np.int32]
    under_way: npt.NDArray[np.int32]
    """Walks that went this way and whose result is not known yet."""

    value_sums: npt.NDArray[np.float64]
    """Of its simulations, for the side that makes the move."""

    @classmethod
    def new(cls, size: int) -> "Edges":
        """Room for `size` moves; memory that is not used yet is not taken yet."""
        return cls(
            np.zeros(size, dtype=np.uint16),
            np.zeros(size, dtype=np.float32),
            np.zeros(size, dtype=np.int32),
            np.zeros(size, dtype=np.int32),
            np.zeros(size, dtype=np.int32),
            np.zeros(size, dtype=np.float64),
        )

    def enlarged(self, size: int) -> "Edges":
        """The same moves, with room for `size`."""
        larger = Edges.new(size)
        for name, values in self._asdict().items():
            getattr(larger, name)[: len(values)] = values
        return larger


@jit
def write_mate_distances(
    forest: Forest, edges: Edges, tree: int, distances: npt.NDArray[np.int32]
) -> None:
    """Write into ``distances[S + 1]`` in how many plies each decided node ends; -1: undecided.

    The winner hurries and the loser delays, as far as the tree knows. A node that is won without a
    move of its own is won by the next one.
    """
    for node in range(int64(forest.sizes[tree]) - 1, -1, -1):  # children come after their parents
        start = int64(forest.edge_starts[tree, node])
        count = int64(forest.edge_counts[tree, node])
        certain = int64(forest.certain[tree, node])
        distance = -1
        if certain == WON:
            distance = 1
            shortest = -1
            for edge in range(start, start + count):
                child = int64(edges.children[edge])
                if child != NO_NODE and forest.certain[tree, child] == LOST:
                    length = 1 + int64(distances[child])
                    if shortest < 0 or length < shortest:
                        shortest = length
            if shortest > 0:
                distance = shortest
        elif certain == LOST:
            distance = 0
            for edge in range(start, start + count):
                distance = max(distance, 1 + int64(distances[int64(edges.children[edge])]))
        distances[node] = distance


@jit
def replant(
    forest: Forest, edges: Edges, tree: int, root: int, places: npt.NDArray[np.int32]
) -> int:
    """Make `root`, a node with moves, the root of a tree that has all edges to itself.

    What does not follow from it is forgotten. ``places[S + 1]`` is overwritten. Returns how many
    edges are used.
    """
    size = int64(forest.sizes[tree])
    for node in range(size):
        places[node] = NO_NODE
    places[root] = ROOT
    kept, used = 0, 0
    # Nodes and moves only ever go down, as children come after their parents: nothing is
    # overwritten that is still to be read.
    for node in range(root, size):
        if places[node] == NO_NODE:
            continue
        start = int64(forest.edge_starts[tree, node])
        count = int64(forest.edge_counts[tree, node])
        place = kept
        kept += 1
        places[node] = place
        for edge in range(start, start + count):
            child = int64(edges.children[edge])
            if child != NO_NODE:
                places[child] = ROOT  # to be kept; where, is known when it is its turn
        forest.edge_starts[tree, place] = used
        forest.edge_counts[tree, place] = count
        forest.values[tree, place] = forest.values[tree, node]
        forest.certain[tree, place] = forest.certain[tree, node]
        forest.in_check[tree, place] = forest.in_check[tree, node]
        for k in range(count):
            edges.moves[used + k] = edges.moves[start + k]
            edges.priors[used + k] = edges.priors[start + k]
            edges.children[used + k] = edges.children[start + k]
            edges.visits[used + k] = edges.visits[start + k]
            edges.under_way[used + k] = edges.under_way[start + k]
            edges.value_sums[used + k] = edges.value_sums[start + k]
        used += count
    for edge in range(used):
        child = int64(edges.children[edge])
        if child != NO_NODE:
            edges.children[edge] = places[child]
    forest.sizes[tree] = kept
    return used

"""The arrays of the search trees, the distance of proven mates in them, and rerooting.

A tree has nodes, a node has edges, one for each legal move, and a simulation goes from the root to
a leaf. What is known of a move is kept at the node that it leads to: an edge has only the move, its
prior and its child, which makes the many edges that are never tried cheap.
"""

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from keisei.constants import MOVE_BUFFER
from keisei.shogi.jit import int64, jit, jit_inner
from keisei.shogi.tables import NUM_CLASSES

ROOT: Final = 0
NO_NODE: Final = -1

UNPROVEN, WON, LOST, FIXED = 0, 1, -1, 2
"""What is proven of a node, for the side to move there. A fixed node has a known value and is never
expanded: a draw, or a repetition of an earlier position, which leads nowhere."""

EDGE_BYTES: Final = 10
NODE_BYTES: Final = 42


class Trees(NamedTuple):
    """``T`` trees of up to ``S`` nodes and ``E`` edges each."""

    sizes: npt.NDArray[np.int32]  # [T]: nodes so far
    num_edges: npt.NDArray[np.int64]  # [T]: edges so far
    num_expanded: npt.NDArray[np.int32]  # [T]: nodes that have edges
    locks: npt.NDArray[np.int64]  # [T]: held by the thread that changes the tree

    expanded: npt.NDArray[np.int32]  # [T, S]: nodes that have edges, in the order of their edges
    edge_starts: npt.NDArray[np.int64]  # [T, S]: index of a node's first edge
    edge_counts: npt.NDArray[np.int32]  # [T, S]: 0 before the node is expanded
    tried_counts: npt.NDArray[np.int32]  # [T, S]: edges with a child; they come first
    visits: npt.NDArray[np.int32]  # [T, S]: simulations that came here; the root begins with 1
    in_flight: npt.NDArray[np.int32]  # [T, S]: simulations that are not backed up yet
    value_sums: npt.NDArray[np.float64]  # [T, S]: of the visits, for the side that moved here
    values: npt.NDArray[np.float32]  # [T, S]: network's or proven, for the side to move
    proven: npt.NDArray[np.int8]  # [T, S]: UNPROVEN, WON, LOST, FIXED
    in_check: npt.NDArray[np.bool_]  # [T, S]

    moves: npt.NDArray[np.uint16]  # [T, E]: policy indices
    priors: npt.NDArray[np.float32]  # [T, E]: probabilities by the policy
    children: npt.NDArray[np.int32]  # [T, E]: the node it leads to, or NO_NODE

    @classmethod
    def new(cls, trees: int, nodes: int, edges: int) -> "Trees":
        """Reserve memory for trees; the system provides it when it is first written."""
        shape, edge_shape = (trees, nodes), (trees, edges)
        return cls(
            sizes=np.zeros(trees, dtype=np.int32),
            num_edges=np.zeros(trees, dtype=np.int64),
            num_expanded=np.zeros(trees, dtype=np.int32),
            locks=np.zeros(trees, dtype=np.int64),
            expanded=np.zeros(shape, dtype=np.int32),
            edge_starts=np.zeros(shape, dtype=np.int64),
            edge_counts=np.zeros(shape, dtype=np.int32),
            tried_counts=np.zeros(shape, dtype=np.int32),
            visits=np.zeros(shape, dtype=np.int32),
            in_flight=np.zeros(shape, dtype=np.int32),
            value_sums=np.zeros(shape, dtype=np.float64),
            values=np.zeros(shape, dtype=np.float32),
            proven=np.zeros(shape, dtype=np.int8),
            in_check=np.zeros(shape, dtype=np.bool_),
            moves=np.zeros(edge_shape, dtype=np.uint16),
            priors=np.zeros(edge_shape, dtype=np.float32),
            children=np.zeros(edge_shape, dtype=np.int32),
        )

    def enlarged(self, edges: int) -> "Trees":
        """Return the same trees with memory for `edges` edges each."""
        larger = {}
        for name in ("moves", "priors", "children"):
            old = getattr(self, name)
            larger[name] = np.zeros((len(old), edges), dtype=old.dtype)
            larger[name][:, : old.shape[1]] = old
        return self._replace(**larger)

    def edges_of(self, tree: int, node: int) -> slice:
        """Return where the edges of a node are."""
        start = int(self.edge_starts[tree, node])
        return slice(start, start + int(self.edge_counts[tree, node]))


class Simulations(NamedTuple):
    """``W`` simulations that may be in flight at the same time, of up to ``D`` plies."""

    owners: npt.NDArray[np.int32]  # [W]: the tree of a simulation
    paths: npt.NDArray[np.int32]  # [W, D + 1]: its nodes, from the root to the leaf
    lengths: npt.NDArray[np.int32]  # [W]: plies from the root to the leaf
    max_lengths: npt.NDArray[np.int32]  # [W]: of all simulations in this slot
    leaf_states: npt.NDArray[np.int8]  # [W]: what it found there, see `simulation`
    replies: npt.NDArray[np.uint16]  # [W, 1024]: scratch of the search for a mate in one
    checking: npt.NDArray[np.uint64]  # [W, classes, 2]: scratch of the search for a mate in one

    @classmethod
    def new(cls, trees: int, *, per_tree: int = 1, max_depth: int) -> "Simulations":
        """Allocate the simulations of some trees, `per_tree` of each next to each other."""
        number = trees * per_tree
        return cls(
            owners=np.repeat(np.arange(trees, dtype=np.int32), per_tree),
            paths=np.zeros((number, max_depth + 1), dtype=np.int32),
            lengths=np.zeros(number, dtype=np.int32),
            max_lengths=np.zeros(number, dtype=np.int32),
            leaf_states=np.zeros(number, dtype=np.int8),
            replies=np.zeros((number, MOVE_BUFFER), dtype=np.uint16),
            checking=np.zeros((number, NUM_CLASSES, 2), dtype=np.uint64),
        )


@jit
def write_mate_distances(trees: Trees, tree: int, distances: npt.NDArray[np.int32]) -> None:
    """Write the plies to the end of each won or lost node into ``distances[S]``; -1: unproven.

    The winner takes the shortest way and the loser the longest that the tree knows. A node that is
    won although none of its edges is proven ends with the next move.
    """
    for node in range(int64(trees.sizes[tree]) - 1, -1, -1):  # children come after their parents
        start = int64(trees.edge_starts[tree, node])
        proven = int64(trees.proven[tree, node])
        distance = -1
        if proven == WON:
            distance = 1
            shortest = -1
            for edge in range(start, start + int64(trees.tried_counts[tree, node])):
                child = int64(trees.children[tree, edge])
                if trees.proven[tree, child] == LOST:
                    length = 1 + int64(distances[child])
                    if shortest < 0 or length < shortest:
                        shortest = length
            if shortest > 0:
                distance = shortest
        elif proven == LOST:
            distance = 0
            for edge in range(start, start + int64(trees.tried_counts[tree, node])):
                distance = max(distance, 1 + int64(distances[int64(trees.children[tree, edge])]))
        distances[node] = distance


@jit
def reroot(trees: Trees, tree: int, root: int, new_nodes: npt.NDArray[np.int32]) -> None:
    """Make `root`, an expanded node, the root of `tree`: only the nodes below it are kept.

    ``new_nodes[S]`` is scratch.
    """
    size = int64(trees.sizes[tree])
    for node in range(size):
        new_nodes[node] = NO_NODE
    new_nodes[root] = ROOT
    kept = 0
    # Nodes only move towards the front, and children come after their parents: nothing is
    # overwritten that is still to be read.
    for node in range(root, size):
        if new_nodes[node] == NO_NODE:
            continue
        start = int64(trees.edge_starts[tree, node])
        for edge in range(start, start + int64(trees.tried_counts[tree, node])):
            # Marks it as kept; its number follows when it is reached.
            new_nodes[int64(trees.children[tree, edge])] = ROOT
        new_nodes[node] = kept
        trees.edge_starts[tree, kept] = start
        trees.edge_counts[tree, kept] = trees.edge_counts[tree, node]
        trees.tried_counts[tree, kept] = trees.tried_counts[tree, node]
        trees.visits[tree, kept] = trees.visits[tree, node]
        trees.in_flight[tree, kept] = trees.in_flight[tree, node]
        trees.value_sums[tree, kept] = trees.value_sums[tree, node]
        trees.values[tree, kept] = trees.values[tree, node]
        trees.proven[tree, kept] = trees.proven[tree, node]
        trees.in_check[tree, kept] = trees.in_check[tree, node]
        kept += 1
    trees.sizes[tree] = kept
    _move_edges(trees, tree, new_nodes)


@jit_inner
def _move_edges(trees: Trees, tree: int, new_nodes: npt.NDArray[np.int32]) -> None:
    """Close the gaps between the edges of the nodes that are kept."""
    expanded, used = 0, 0
    for place in range(int64(trees.num_expanded[tree])):  # in the order of their edges
        node = int64(new_nodes[int64(trees.expanded[tree, place])])
        if node == NO_NODE:
            continue
        start = int64(trees.edge_starts[tree, node])
        count = int64(trees.edge_counts[tree, node])
        for k in range(count):
            child = int64(trees.children[tree, start + k])
            trees.moves[tree, used + k] = trees.moves[tree, start + k]
            trees.priors[tree, used + k] = trees.priors[tree, start + k]
            trees.children[tree, used + k] = child if child == NO_NODE else new_nodes[child]
        trees.edge_starts[tree, node] = used
        trees.expanded[tree, expanded] = node
        used += count
        expanded += 1
    trees.num_edges[tree] = used
    trees.num_expanded[tree] = expanded

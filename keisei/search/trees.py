"""The arrays of the search trees, the distance of proven mates in them, and rerooting.

Words are those of Gumbel AlphaZero (Danihelka et al., 2022) and of mctx: trees have nodes, nodes
have edges, one for each legal move, and a simulation goes from a root to a leaf.
"""

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from keisei.constants import MAX_LEGAL_MOVES, MOVE_BUFFER
from keisei.shogi.jit import int64, jit
from keisei.shogi.tables import NUM_CLASSES

ROOT: Final = 0
NO_NODE: Final = -1

UNPROVEN, WON, LOST, FIXED = 0, 1, -1, 2
"""What is proven of a node, for the side to move there. A fixed node has a known value and is never
expanded: a draw, or a repetition of an earlier position, which leads nowhere."""

NEEDS_NETWORK, IS_PROVEN, COLLIDED = 0, 1, 2
"""What a simulation found at its leaf. A collision, with a leaf that another simulation of the same
batch has reached and that is not evaluated yet, does not count as a simulation."""

NO_SIMULATION: Final = -1
"""In place of a considered visit count: no simulation."""


class Trees(NamedTuple):
    """``T`` trees of up to ``S + 1`` nodes each, and ``W`` simulations of up to ``D`` plies.

    Values are those of the side to move at the node.
    """

    edge_starts: npt.NDArray[np.int64]  # [T, S + 1]: index of a node's first edge
    edge_counts: npt.NDArray[np.int32]  # [T, S + 1]: 0 where the game is over
    values: npt.NDArray[np.float32]  # [T, S + 1]: by the network, or the proven value
    proven: npt.NDArray[np.int8]  # [T, S + 1]: UNPROVEN, WON, LOST, FIXED
    in_check: npt.NDArray[np.bool_]  # [T, S + 1]
    sizes: npt.NDArray[np.int32]  # [T]: nodes so far
    owners: npt.NDArray[np.int32]  # [W]: the tree of a simulation
    paths: npt.NDArray[np.int64]  # [W, D]: edges of the current simulation
    path_nodes: npt.NDArray[np.int32]  # [W, D + 1]: nodes of the current simulation
    path_lengths: npt.NDArray[np.int32]  # [W]: number of edges
    leaf_states: npt.NDArray[np.int8]  # [W]: NEEDS_NETWORK, IS_PROVEN or COLLIDED
    root_noise: npt.NDArray[np.float32]  # [T, 593]: Gumbel noise on the root's log-probabilities
    earlier_visits: npt.NDArray[np.int32]  # [T, 593]: of root edges, before the present halving
    scores: npt.NDArray[np.float64]  # [1024]: scratch, of the edges of one node
    replies: npt.NDArray[np.uint16]  # [1024]: scratch of the search for a mate in one
    checking: npt.NDArray[np.uint64]  # [classes, 2]: scratch of the search for a mate in one

    @classmethod
    def new(cls, trees: int, max_nodes: int, *, batch_size: int = 1, max_depth: int = 0) -> "Trees":
        """Make trees without any node.

        Args:
            trees: number of trees.
            max_nodes: nodes that each tree can have beside its root.
            batch_size: simulations of each tree that are in flight at the same time.
            max_depth: plies that a simulation can have; 0: as many as a tree has nodes.
        """
        shape = (trees, max_nodes + 1)
        simulations = trees * batch_size
        depth = max_depth or max_nodes + 1
        return cls(
            edge_starts=np.zeros(shape, dtype=np.int64),
            edge_counts=np.zeros(shape, dtype=np.int32),
            values=np.zeros(shape, dtype=np.float32),
            proven=np.zeros(shape, dtype=np.int8),
            in_check=np.zeros(shape, dtype=np.bool_),
            sizes=np.zeros(trees, dtype=np.int32),
            owners=np.repeat(np.arange(trees, dtype=np.int32), batch_size),
            paths=np.zeros((simulations, depth), dtype=np.int64),
            path_nodes=np.zeros((simulations, depth + 1), dtype=np.int32),
            path_lengths=np.zeros(simulations, dtype=np.int32),
            leaf_states=np.zeros(simulations, dtype=np.int8),
            root_noise=np.zeros((trees, MAX_LEGAL_MOVES), dtype=np.float32),
            earlier_visits=np.zeros((trees, MAX_LEGAL_MOVES), dtype=np.int32),
            scores=np.zeros(MOVE_BUFFER, dtype=np.float64),
            replies=np.zeros(MOVE_BUFFER, dtype=np.uint16),
            checking=np.zeros((NUM_CLASSES, 2), dtype=np.uint64),
        )


class Edges(NamedTuple):
    """The moves of all nodes of all trees, ``[E]`` each, those of a node next to each other."""

    moves: npt.NDArray[np.uint16]
    """Policy indices."""

    log_priors: npt.NDArray[np.float32]
    """Log-probabilities of the policy."""

    children: npt.NDArray[np.int32]
    """The node that a move leads to, `NO_NODE` before its first visit."""

    visits: npt.NDArray[np.int32]
    in_flight: npt.NDArray[np.int32]
    """Simulations that took this edge and are not backed up yet."""

    value_sums: npt.NDArray[np.float64]
    """Sum of the values of its simulations, for the side that makes the move."""

    @classmethod
    def new(cls, size: int) -> "Edges":
        """Reserve memory for `size` edges; the system provides it when it is first written."""
        return cls(
            np.zeros(size, dtype=np.uint16),
            np.zeros(size, dtype=np.float32),
            np.zeros(size, dtype=np.int32),
            np.zeros(size, dtype=np.int32),
            np.zeros(size, dtype=np.int32),
            np.zeros(size, dtype=np.float64),
        )

    def enlarged(self, size: int) -> "Edges":
        """Return a copy with memory for `size` edges."""
        larger = Edges.new(size)
        for name, values in self._asdict().items():
            getattr(larger, name)[: len(values)] = values
        return larger


@jit
def write_mate_distances(
    trees: Trees, edges: Edges, tree: int, distances: npt.NDArray[np.int32]
) -> None:
    """Write the plies to the end of each won or lost node into ``distances[S + 1]``; -1: unproven.

    The winner takes the shortest way and the loser the longest that the tree knows. A node that is
    won although none of its edges is proven ends with the next move.
    """
    for node in range(int64(trees.sizes[tree]) - 1, -1, -1):  # children come after their parents
        start = int64(trees.edge_starts[tree, node])
        count = int64(trees.edge_counts[tree, node])
        proven = int64(trees.proven[tree, node])
        distance = -1
        if proven == WON:
            distance = 1
            shortest = -1
            for edge in range(start, start + count):
                child = int64(edges.children[edge])
                if child != NO_NODE and trees.proven[tree, child] == LOST:
                    length = 1 + int64(distances[child])
                    if shortest < 0 or length < shortest:
                        shortest = length
            if shortest > 0:
                distance = shortest
        elif proven == LOST:
            distance = 0
            for edge in range(start, start + count):
                distance = max(distance, 1 + int64(distances[int64(edges.children[edge])]))
        distances[node] = distance


@jit
def reroot(
    trees: Trees, edges: Edges, tree: int, root: int, new_nodes: npt.NDArray[np.int32]
) -> int:
    """Make `root`, an expanded node, the root of `tree`, which owns all edges; return their number.

    Only the nodes below it are kept. ``new_nodes[S + 1]`` is scratch.
    """
    size = int64(trees.sizes[tree])
    for node in range(size):
        new_nodes[node] = NO_NODE
    new_nodes[root] = ROOT
    kept, used = 0, 0
    # Nodes and edges only move towards the front, as children come after their parents: nothing is
    # overwritten that is still to be read.
    for node in range(root, size):
        if new_nodes[node] == NO_NODE:
            continue
        start = int64(trees.edge_starts[tree, node])
        count = int64(trees.edge_counts[tree, node])
        new_node = kept
        kept += 1
        new_nodes[node] = new_node
        for edge in range(start, start + count):
            child = int64(edges.children[edge])
            if child != NO_NODE:
                new_nodes[child] = ROOT  # marks it as kept; its number follows when it is reached
        trees.edge_starts[tree, new_node] = used
        trees.edge_counts[tree, new_node] = count
        trees.values[tree, new_node] = trees.values[tree, node]
        trees.proven[tree, new_node] = trees.proven[tree, node]
        trees.in_check[tree, new_node] = trees.in_check[tree, node]
        for k in range(count):
            edges.moves[used + k] = edges.moves[start + k]
            edges.log_priors[used + k] = edges.log_priors[start + k]
            edges.children[used + k] = edges.children[start + k]
            edges.visits[used + k] = edges.visits[start + k]
            edges.in_flight[used + k] = edges.in_flight[start + k]
            edges.value_sums[used + k] = edges.value_sums[start + k]
        used += count
    for edge in range(used):
        child = int64(edges.children[edge])
        if child != NO_NODE:
            edges.children[edge] = new_nodes[child]
    trees.sizes[tree] = kept
    return used

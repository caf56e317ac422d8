"""What a tree that has been searched is good for: how far its mates are, and the next search."""

import numpy as np
import numpy.typing as npt

from keisei.search.forest import LOST, NO_NODE, ROOT, WON, Edges, Forest
from keisei.shogi.jit import int64, jit


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

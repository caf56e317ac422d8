"""Selection of edges during a search, and the final ranking of the moves of a node.

As in Gumbel AlphaZero (Danihelka et al., 2022): moves are compared by the logits of the policy plus
the transformed values seen so far, the improved policy. At the root, sequential halving says how
many visits the next move must have; at interior nodes, visits follow the improved policy.
"""

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from keisei.search.trees import (
    LOST,
    NO_NODE,
    ROOT,
    UNPROVEN,
    WON,
    Edges,
    Trees,
    write_mate_distances,
)
from keisei.shogi.jit import int64, jit, jit_inner
from keisei.shogi.position import Array

_MATE_RANK: Final = 1 << 30
"""Rank of a mate that is on the board; each ply until then costs 1."""


class QTransform(NamedTuple):
    """Weight of the values against the policy, with the names of mctx.

    A value from -1 to 1 is multiplied by ``(maxvisit_init + max_visits) * value_scale / 2`` and
    added to the log-probability of its move; ``max_visits`` are those of the most visited move.
    """

    maxvisit_init: float
    value_scale: float


def considered_visits(moves: int, simulations: int) -> npt.NDArray[np.int64]:
    """Return the visit count that the root move of each simulation must have: ``[simulations]``.

    Sequential halving as a fixed sequence, as in mctx: a round gives each of the moves still
    considered the same number of visits, and a move that fell behind never has as many as a later
    simulation requires.

    >>> considered_visits(4, 12).tolist()
    [0, 0, 0, 0, 1, 1, 2, 2, 3, 3, 4, 4]
    """
    sequence: list[int] = []
    rounds = max(1, int(np.ceil(np.log2(moves))))
    considered, visits = moves, 0
    while len(sequence) < simulations:
        for _ in range(max(1, simulations // (rounds * considered))):
            sequence += [visits] * considered
            visits += 1
        considered = max(2, considered // 2) if moves > 1 else 1
    return np.array(sequence[:simulations], dtype=np.int64)


@jit_inner
def select_root(
    trees: Trees, edges: Edges, tree: int, considered: int, q_transform: QTransform
) -> int:
    """Return the best root edge among those with `considered` visits, or of all if none has."""
    _write_scores(trees, edges, tree, ROOT, q_transform)
    start = int64(trees.edge_starts[tree, ROOT])
    count = int64(trees.edge_counts[tree, ROOT])
    best = -1
    for attempt in range(2):
        for k in range(count):
            visits = _visits(trees, edges, tree, ROOT, k) + edges.in_flight[start + k]
            is_considered = attempt == 1 or visits == considered
            if is_considered and (best < 0 or trees.scores[k] > trees.scores[best]):
                best = k
        if best >= 0:
            break
    return start + best


@jit_inner
def select_interior(
    trees: Trees, edges: Edges, tree: int, node: int, q_transform: QTransform
) -> int:
    """Return the edge whose share of the visits lags most behind the improved policy."""
    total = _write_scores(trees, edges, tree, node, q_transform)
    start = int64(trees.edge_starts[tree, node])
    count = int64(trees.edge_counts[tree, node])
    top = trees.scores[0]
    for k in range(1, count):
        top = max(top, trees.scores[k])
    norm = 0.0
    for k in range(count):
        norm += np.exp(trees.scores[k] - top)
    best, best_lag = 0, -2.0
    for k in range(count):
        visits = edges.visits[start + k] + edges.in_flight[start + k]
        lag = np.exp(trees.scores[k] - top) / norm - visits / (1.0 + total)
        if lag > best_lag:
            best, best_lag = k, lag
    return start + best


@jit
def write_results(
    trees: Trees,
    edges: Edges,
    q_transform: QTransform,
    distances: Array,
    ranking: Array,
    legal_indices: Array,
    values: Array,
    visits: Array,
) -> None:
    """Write the best move of each tree, its value, and the visits of all root moves.

    ``legal_indices[T]``, ``values[T]``, ``visits[T, M]``; scratch: ``distances[S + 1]`` and
    ``ranking[593]``.
    """
    for tree in range(len(legal_indices)):
        write_mate_distances(trees, edges, tree, distances)
        count = rank_edges(trees, edges, tree, ROOT, q_transform, distances, ranking)
        start = int64(trees.edge_starts[tree, ROOT])
        best = int64(ranking[0])
        for k in range(count):
            visits[tree, k] = edges.visits[start + k]
        legal_indices[tree] = best - start
        root_value = float(trees.values[tree, ROOT])
        values[tree] = _edge_value(trees, edges, tree, best, root_value)


@jit
def write_variation(
    trees: Trees,
    edges: Edges,
    tree: int,
    edge: int,
    q_transform: QTransform,
    distances: Array,
    ranking: Array,
    actions: Array,
) -> tuple[int, float, int]:
    """Write a root move and the best replies that are in the tree into ``actions[D]``.

    Returns the number of actions, the value of the move, and the plies of the mate that it leads
    to: below 0 if its own side is mated, 0 without a proven mate. ``ranking[593]`` is scratch.
    """
    value = _edge_value(trees, edges, tree, edge, float(trees.values[tree, ROOT]))
    child = int64(edges.children[edge])
    mate = 0
    if child != NO_NODE and trees.proven[tree, child] in (WON, LOST):
        mate = 1 + int64(distances[child])
        if trees.proven[tree, child] == WON:
            mate = -mate
    actions[0] = edges.moves[edge]
    length = 1
    while child != NO_NODE and trees.edge_counts[tree, child] and length < len(actions):
        rank_edges(trees, edges, tree, child, q_transform, distances, ranking)
        best = int64(ranking[0])
        child = int64(edges.children[best])
        if child != NO_NODE:
            actions[length] = edges.moves[best]
            length += 1
    return length, value, mate


@jit
def rank_edges(
    trees: Trees,
    edges: Edges,
    tree: int,
    node: int,
    q_transform: QTransform,
    distances: Array,
    ranking: Array,
) -> int:
    """Write the edges of a node into ``ranking[593]``, the best first; return their number.

    Moves that are proven to win come first, the shortest mate before longer ones, and moves that
    are proven to lose last, the longest resistance first. Others are ranked by visits, at the root
    by those of the present halving, and with equal visits by the improved policy.
    ``distances[S + 1]`` is from `write_mate_distances`.
    """
    _write_scores(trees, edges, tree, node, q_transform)
    start = int64(trees.edge_starts[tree, node])
    count = int64(trees.edge_counts[tree, node])
    for k in range(count):
        mate_rank = _mate_rank(trees, edges, tree, start + k, distances)
        visits = _visits(trees, edges, tree, node, k)
        place = k
        while place > 0:
            other = int64(ranking[place - 1])
            other_mate_rank = _mate_rank(trees, edges, tree, other, distances)
            other_visits = _visits(trees, edges, tree, node, other - start)
            if mate_rank != other_mate_rank:
                is_better = mate_rank > other_mate_rank
            elif visits != other_visits:
                is_better = visits > other_visits
            else:
                is_better = trees.scores[k] > trees.scores[other - start]
            if not is_better:
                break
            ranking[place] = other
            place -= 1
        ranking[place] = start + k
    return count


@jit_inner
def _visits(trees: Trees, edges: Edges, tree: int, node: int, k: int) -> int:
    """Return the visits of edge `k` of a node; at the root those of the present halving."""
    visits = int64(edges.visits[int64(trees.edge_starts[tree, node]) + k])
    return visits - int64(trees.earlier_visits[tree, k]) if node == ROOT else visits


@jit_inner
def _mate_rank(trees: Trees, edges: Edges, tree: int, edge: int, distances: Array) -> int:
    """Return a rank above 0 for a move that is proven to win, below 0 for one that loses."""
    child = int64(edges.children[edge])
    if child == NO_NODE:
        return 0
    proven = int64(trees.proven[tree, child])
    if proven == LOST:
        return _MATE_RANK - int64(distances[child])
    if proven == WON:
        return int64(distances[child]) - _MATE_RANK
    return 0


@jit_inner
def _edge_value(trees: Trees, edges: Edges, tree: int, edge: int, unvisited: float) -> float:
    """Return the value of a move for its side: proven, the mean of its visits, or `unvisited`."""
    child = int64(edges.children[edge])
    if child == NO_NODE:
        return unvisited
    if trees.proven[tree, child] != UNPROVEN:
        return -float(trees.values[tree, child])
    if edges.visits[edge] == 0:
        return unvisited
    return float(edges.value_sums[edge] / edges.visits[edge])


@jit_inner
def _write_scores(trees: Trees, edges: Edges, tree: int, node: int, q_transform: QTransform) -> int:
    """Write the logits of the improved policy into ``scores``; return the visits of all edges.

    Simulations in flight count as visits. At the root, its noise is added.
    """
    start = int64(trees.edge_starts[tree, node])
    count = int64(trees.edge_counts[tree, node])
    max_visits, total = 0, 0
    for edge in range(start, start + count):
        visits = int64(edges.visits[edge]) + int64(edges.in_flight[edge])
        max_visits = max(max_visits, visits)
        total += visits
    unvisited = _mixed_value(trees, edges, tree, node)
    factor = (q_transform.maxvisit_init + max_visits) * q_transform.value_scale / 2
    for k in range(count):
        value = _edge_value(trees, edges, tree, start + k, unvisited)
        trees.scores[k] = edges.log_priors[start + k] + factor * value
        if node == ROOT:
            trees.scores[k] += trees.root_noise[tree, k]
    return total


@jit_inner
def _mixed_value(trees: Trees, edges: Edges, tree: int, node: int) -> float:
    """Return the value given to unvisited moves: the network's, mixed with those of visits."""
    start = int64(trees.edge_starts[tree, node])
    total, weight, weighted = 0, 0.0, 0.0
    for edge in range(start, start + int64(trees.edge_counts[tree, node])):
        visits = int64(edges.visits[edge])
        if visits:
            prior = np.exp(edges.log_priors[edge])
            total += visits
            weight += prior
            weighted += prior * _edge_value(trees, edges, tree, edge, 0.0)
    if weight <= 0.0:
        return float(trees.values[tree, node])
    return float((trees.values[tree, node] + total * weighted / weight) / (1 + total))

"""Which move of a tree is looked at next, and which is played in the end.

As in Gumbel AlphaZero (Danihelka et al., 2022): moves are compared by the policy as the values seen
so far improve it. At the root the plan of sequential halving says how many visits the next move
has; below it, visits follow the improved policy.
"""

from typing import NamedTuple

import numpy as np

from keisei.search.trees import (
    LOST,
    NO_NODE,
    ROOT,
    UNSURE,
    WON,
    Edges,
    Forest,
)
from keisei.shogi.jit import int64, jit, jit_inner
from keisei.shogi.position import Array


class Weights(NamedTuple):
    """How much the values count against the policy."""

    visit: float
    """Visits that are added to those of the most visited move."""

    scale: float
    """What a value difference of 2, all that there can be, adds to a log-probability per visit."""


@jit_inner
def root_choice(forest: Forest, edges: Edges, tree: int, wanted: int, weights: Weights) -> int:
    """The best move among those with exactly so many visits; any move if there is none."""
    _write_scores(forest, edges, tree, ROOT, weights)
    start = int64(forest.edge_starts[tree, ROOT])
    count = int64(forest.edge_counts[tree, ROOT])
    best = -1
    for pass_number in range(2):
        for k in range(count):
            visits = edges.visits[start + k] + edges.under_way[start + k]
            is_considered = pass_number == 1 or visits == wanted
            if is_considered and (best < 0 or forest.scores[k] > forest.scores[best]):
                best = k
        if best >= 0:
            break
    return start + best


@jit_inner
def inner_choice(forest: Forest, edges: Edges, tree: int, node: int, weights: Weights) -> int:
    """The move whose visits lag most behind the improved policy."""
    total = _write_scores(forest, edges, tree, node, weights)
    start = int64(forest.edge_starts[tree, node])
    count = int64(forest.edge_counts[tree, node])
    top = forest.scores[0]
    for k in range(1, count):
        top = max(top, forest.scores[k])
    norm = 0.0
    for k in range(count):
        norm += np.exp(forest.scores[k] - top)
    best, best_lag = 0, -2.0
    for k in range(count):
        visits = edges.visits[start + k] + edges.under_way[start + k]
        lag = np.exp(forest.scores[k] - top) / norm - visits / (1.0 + total)
        if lag > best_lag:
            best, best_lag = k, lag
    return start + best


@jit
def write_results(
    forest: Forest,
    edges: Edges,
    weights: Weights,
    legal_indices: Array,
    values: Array,
    visits: Array,
) -> None:
    """Write for each tree its best move, what that is worth, and the visits of all moves.

    The best is the best by score among those with most visits; but a move that is known to win
    comes before all others, and one that is known to lose after them.
    ``legal_indices[T]``, ``values[T]``, ``visits[T, M]``.
    """
    for tree in range(len(legal_indices)):
        _write_scores(forest, edges, tree, ROOT, weights)
        start = int64(forest.edge_starts[tree, ROOT])
        best, best_class = -1, 0
        for k in range(int64(forest.edge_counts[tree, ROOT])):
            visits[tree, k] = edges.visits[start + k]
            child = int64(edges.children[start + k])
            certain = UNSURE if child == NO_NODE else int64(forest.certain[tree, child])
            move_class = 1 if certain == LOST else (-1 if certain == WON else 0)
            if (
                best < 0
                or move_class > best_class
                or (move_class == best_class and visits[tree, k] > visits[tree, best])
                or (
                    move_class == best_class
                    and visits[tree, k] == visits[tree, best]
                    and forest.scores[k] > forest.scores[best]
                )
            ):
                best, best_class = k, move_class
        legal_indices[tree] = best
        values[tree] = _value_of(
            forest, edges, tree, start + best, float(forest.values[tree, ROOT])
        )


@jit_inner
def _write_scores(forest: Forest, edges: Edges, tree: int, node: int, weights: Weights) -> int:
    """``scores[k]``: log-probability of move k, improved by what is known of its value.

    Returns the sum of all visits, those under way included.
    """
    start = int64(forest.edge_starts[tree, node])
    count = int64(forest.edge_counts[tree, node])
    most, total = 0, 0
    for edge in range(start, start + count):
        visits = int64(edges.visits[edge]) + int64(edges.under_way[edge])
        most = max(most, visits)
        total += visits
    unseen = _unseen_value(forest, edges, tree, node)
    factor = (weights.visit + most) * weights.scale / 2
    for k in range(count):
        value = _value_of(forest, edges, tree, start + k, unseen)
        forest.scores[k] = edges.priors[start + k] + factor * value
        if node == ROOT:
            forest.scores[k] += forest.luck[tree, k]
    return total


@jit_inner
def _value_of(forest: Forest, edges: Edges, tree: int, edge: int, unseen: float) -> float:
    """What a move is worth to its side: certain, or the mean of its visits, or `unseen`."""
    child = int64(edges.children[edge])
    if child == NO_NODE:
        return unseen
    if forest.certain[tree, child] != UNSURE:
        return -float(forest.values[tree, child])
    if edges.visits[edge] == 0:
        return unseen
    return float(edges.value_sums[edge] / edges.visits[edge])


@jit_inner
def _unseen_value(forest: Forest, edges: Edges, tree: int, node: int) -> float:
    """What moves without a visit are taken to be worth: the node's word, and what was seen."""
    start = int64(forest.edge_starts[tree, node])
    seen, weight, weighted = 0, 0.0, 0.0
    for edge in range(start, start + int64(forest.edge_counts[tree, node])):
        visits = int64(edges.visits[edge])
        if visits:
            prior = np.exp(edges.priors[edge])
            seen += visits
            weight += prior
            weighted += prior * _value_of(forest, edges, tree, edge, 0.0)
    if weight <= 0.0:
        return float(forest.values[tree, node])
    return float((forest.values[tree, node] + seen * weighted / weight) / (1 + seen))

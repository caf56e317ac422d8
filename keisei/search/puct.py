"""Which edge a simulation takes, by AlphaZero's PUCT, and the ranking of moves after a search.

The policy only says where to look: its probabilities are flattened, and values decide. Why so, and
why not sequential halving at the root as in Gumbel AlphaZero: ``docs/decisions/015-puct.md``.
"""

from typing import Final, NamedTuple

import numpy as np

from keisei.search.trees import LOST, NO_NODE, ROOT, UNPROVEN, WON, Trees, write_mate_distances
from keisei.shogi.jit import int64, jit, jit_inner
from keisei.shogi.position import Array

SEARCH_VERSION: Final = 2
"""Part of a player's identity: goes up when searches begin to play differently, so that games of
both are not counted together."""

_MATE_RANK: Final = 1 << 30
"""Rank of a mate that is on the board; each ply until then costs 1."""


class Puct(NamedTuple):
    """How visits are divided among the moves of a node.

    The move with the highest ``value + c_puct * prior * sqrt(visits of the node) / (1 + visits)``
    is next.
    """

    c_puct: float = 0.6
    """Weight of the priors against the values, which lie between -1 and 1."""

    policy_scale: float = 2.5
    """Standard deviation of the logarithms of a node's priors: those of the policy's probabilities
    are scaled to it. How sure a policy sounds differs tenfold between networks and says little."""

    fpu_reduction: float = 0.0
    """A move that was not tried yet counts as the network's value of the node, less this times the
    root of the priors that were tried; at the root of the tree without that."""


@jit_inner
def select_edge(trees: Trees, tree: int, node: int, puct: Puct) -> int:
    """Return the edge that the next simulation takes at an expanded node.

    Among the moves not tried yet only the likeliest can be best, which stands in front of the
    others: the time depends on the moves tried, not on all of them. A simulation in flight counts
    as a loss (virtual loss): others go elsewhere meanwhile.
    """
    start = int64(trees.edge_starts[tree, node])
    count = int64(trees.edge_counts[tree, node])
    tried = int64(trees.tried_counts[tree, node])
    # The simulation that asks is itself in flight.
    visits_here = int64(trees.visits[tree, node]) + int64(trees.in_flight[tree, node]) - 1
    scale = puct.c_puct * np.sqrt(float(visits_here))
    best, best_score = -1, -np.inf
    tried_prior = 0.0
    for edge in range(start, start + tried):
        child = int64(trees.children[tree, edge])
        prior = float(trees.priors[tree, edge])
        tried_prior += prior
        proven = int64(trees.proven[tree, child])
        if proven == WON:
            continue  # the move loses
        waiting = int64(trees.in_flight[tree, child])
        visits = int64(trees.visits[tree, child]) + waiting
        if proven != UNPROVEN:
            value = -float(trees.values[tree, child])
        else:
            value = (float(trees.value_sums[tree, child]) - waiting) / visits
        score = value + scale * prior / (1 + visits)
        if score > best_score:
            best, best_score = edge, score
    if tried < count:
        untried = start + tried
        value = float(trees.values[tree, node])
        if node != ROOT:
            value -= puct.fpu_reduction * np.sqrt(tried_prior)
        if value + scale * trees.priors[tree, untried] > best_score:
            best = untried
            trees.tried_counts[tree, node] = tried + 1
            bring_likeliest_forward(trees, tree, untried + 1, start + count)
    return max(best, start)  # any, if all of them lose


@jit_inner
def bring_likeliest_forward(trees: Trees, tree: int, start: int, stop: int) -> None:
    """Exchange the likeliest of the untried edges from `start` to `stop` with the first of them."""
    if start >= stop:
        return
    likeliest = start
    for edge in range(start + 1, stop):
        if trees.priors[tree, edge] > trees.priors[tree, likeliest]:
            likeliest = edge
    move, prior = trees.moves[tree, start], trees.priors[tree, start]
    trees.moves[tree, start] = trees.moves[tree, likeliest]
    trees.priors[tree, start] = trees.priors[tree, likeliest]
    trees.moves[tree, likeliest] = move
    trees.priors[tree, likeliest] = prior


@jit
def write_results(
    trees: Trees,
    legal_actions: Array,
    distances: Array,
    legal_indices: Array,
    values: Array,
    visits: Array,
    lines: Array,
    line_lengths: Array,
) -> None:
    """Write the best root move of each tree, its value, all visits and the expected play.

    Args:
        trees: ``T`` of them.
        legal_actions: ``[T, M]``, of the roots; visits and indices are in their order.
        distances: ``[S]``, scratch.
        legal_indices: ``[T]``, written.
        values: ``[T]``, written.
        visits: ``[T, M]``, written.
        lines: ``[T, L]``, written: the best move and the play expected after it.
        line_lengths: ``[T]``, written.
    """
    for tree in range(len(legal_indices)):
        write_mate_distances(trees, tree, distances)
        best = best_edge(trees, tree, ROOT, distances)
        start = int64(trees.edge_starts[tree, ROOT])
        for edge in range(start, start + int64(trees.edge_counts[tree, ROOT])):
            index = 0
            while legal_actions[tree, index] != trees.moves[tree, edge]:
                index += 1
            child = int64(trees.children[tree, edge])
            visits[tree, index] = 0 if child == NO_NODE else trees.visits[tree, child]
            if edge == best:
                legal_indices[tree] = index
        values[tree] = edge_value(trees, tree, ROOT, best)
        line_lengths[tree] = _write_line(trees, tree, best, distances, lines[tree])


@jit
def write_variation(
    trees: Trees, tree: int, edge: int, distances: Array, actions: Array
) -> tuple[int, float, int]:
    """Write a root move and the best replies that are in the tree into ``actions[L]``.

    Returns the number of actions, the value of the move, and the plies of the mate that it leads
    to: below 0 if its own side is mated, 0 without a proven mate.
    """
    value = edge_value(trees, tree, ROOT, edge)
    child = int64(trees.children[tree, edge])
    mate = 0
    if child != NO_NODE and trees.proven[tree, child] in (WON, LOST):
        mate = 1 + int64(distances[child])
        if trees.proven[tree, child] == WON:
            mate = -mate
    return _write_line(trees, tree, edge, distances, actions), value, mate


@jit_inner
def _write_line(trees: Trees, tree: int, edge: int, distances: Array, actions: Array) -> int:
    actions[0] = trees.moves[tree, edge]
    length = 1
    child = int64(trees.children[tree, edge])
    while child != NO_NODE and trees.tried_counts[tree, child] and length < len(actions):
        edge = best_edge(trees, tree, child, distances)
        actions[length] = trees.moves[tree, edge]
        length += 1
        child = int64(trees.children[tree, edge])
    return length


@jit
def rank_edges(trees: Trees, tree: int, distances: Array, ranking: Array) -> int:
    """Write the edges of the root into ``ranking[593]``, the best first; return their number.

    ``distances[S]`` is from `write_mate_distances`.
    """
    start = int64(trees.edge_starts[tree, ROOT])
    count = int64(trees.edge_counts[tree, ROOT])
    for k in range(count):
        place = k
        while place > 0 and _is_better(
            trees, tree, start + k, int64(ranking[place - 1]), distances
        ):
            ranking[place] = ranking[place - 1]
            place -= 1
        ranking[place] = start + k
    return count


@jit_inner
def best_edge(trees: Trees, tree: int, node: int, distances: Array) -> int:
    """Return the best edge of a node: a tried one, if there is any."""
    start = int64(trees.edge_starts[tree, node])
    tried = int64(trees.tried_counts[tree, node])
    if tried == 0:
        tried = int64(trees.edge_counts[tree, node])
    best = start
    for edge in range(start + 1, start + tried):
        if _is_better(trees, tree, edge, best, distances):
            best = edge
    return best


@jit_inner
def _is_better(trees: Trees, tree: int, edge: int, other: int, distances: Array) -> bool:
    """Whether an edge is the better move of two.

    Moves that are proven to win come first, the shortest mate before longer ones, and moves that
    are proven to lose last, the longest resistance first. Others are ranked by visits, then by
    their priors.
    """
    rank = _mate_rank(trees, tree, edge, distances)
    other_rank = _mate_rank(trees, tree, other, distances)
    if rank != other_rank:
        return rank > other_rank
    visits, other_visits = _visits(trees, tree, edge), _visits(trees, tree, other)
    if visits != other_visits:
        return visits > other_visits
    return bool(trees.priors[tree, edge] > trees.priors[tree, other])


@jit_inner
def _visits(trees: Trees, tree: int, edge: int) -> int:
    child = int64(trees.children[tree, edge])
    return 0 if child == NO_NODE else int64(trees.visits[tree, child])


@jit_inner
def _mate_rank(trees: Trees, tree: int, edge: int, distances: Array) -> int:
    """Return a rank above 0 for a move that is proven to win, below 0 for one that loses."""
    child = int64(trees.children[tree, edge])
    if child == NO_NODE:
        return 0
    proven = int64(trees.proven[tree, child])
    if proven == LOST:
        return _MATE_RANK - int64(distances[child])
    if proven == WON:
        return int64(distances[child]) - _MATE_RANK
    return 0


@jit_inner
def edge_value(trees: Trees, tree: int, node: int, edge: int) -> float:
    """Return the value of a move for its side: proven, the mean of its visits, or the node's."""
    child = int64(trees.children[tree, edge])
    if child == NO_NODE:
        return float(trees.values[tree, node])
    if trees.proven[tree, child] != UNPROVEN:
        return -float(trees.values[tree, child])
    if trees.visits[tree, child] == 0:
        return float(trees.values[tree, node])
    return float(trees.value_sums[tree, child] / trees.visits[tree, child])

"""How the trees of a search over a network grow.

A simulation walks from the root of each tree to a position that the network has not seen yet
(`descend`), asks the network about all of them at once, and carries what it says back up (`grow`).

The rules are those of the games themselves: repetition with the moves played before the search,
declarations, the ply limit. What is known for certain - mates, and what they force - is kept as
such, and never averaged with guesses.
"""

from typing import Final

from keisei.search.forest import (
    FIXED,
    IS_CERTAIN,
    LOST,
    NEEDS_NETWORK,
    NO_NODE,
    ROOT,
    UNSURE,
    WON,
    Edges,
    Forest,
)
from keisei.search.tree_choices import Weights, inner_choice, root_choice
from keisei.shogi.jit import int64, jit, jit_inner
from keisei.shogi.mate import find_mate
from keisei.shogi.position import Array, Records, play
from keisei.shogi.rules import NO_TERMINATION, NO_WINNER, perpetual_checker
from keisei.shogi.vector_kernels import Games, advance

REPEATING_COST: Final = 0.2
"""What a position that occurred before is short of a draw, for the side at the root: to shuffle to
and fro in a level position is no way to win it."""


@jit
def descend(
    forest: Forest,
    edges: Edges,
    games: Games,
    roots: Records,
    wanted: Array,
    weights: Weights,
) -> None:
    """Walk each tree down to a new position, which is left in `games`.

    Args:
        forest: where each walk went, and whether the network is needed, is written here.
        edges: the moves of the trees.
        games: copies of the real games; positions and histories beyond the root are overwritten.
        roots: ``[T]``, the positions at the roots.
        wanted: ``[T]``: only root moves with so many visits are considered; -1: no simulation.
        weights: see there.
    """
    for tree in range(len(roots)):
        forest.path_lengths[tree] = 0
        forest.arrivals[tree] = IS_CERTAIN
        if wanted[tree] < 0:
            continue
        games.positions[tree] = roots[tree]
        node = ROOT
        forest.path_nodes[tree, 0] = ROOT
        while True:
            if node == ROOT:
                edge = root_choice(forest, edges, tree, int64(wanted[tree]), weights)
            else:
                edge = inner_choice(forest, edges, tree, node, weights)
            length = int64(forest.path_lengths[tree])
            forest.paths[tree, length] = edge
            forest.path_lengths[tree] = length + 1
            child = int64(edges.children[edge])
            move = int64(edges.moves[edge])
            if child == NO_NODE:
                child = int64(forest.sizes[tree])
                forest.sizes[tree] = child + 1
                edges.children[edge] = child
                forest.path_nodes[tree, length + 1] = child
                _arrive(forest, games, tree, child, move)
                break
            forest.path_nodes[tree, length + 1] = child
            if forest.certain[tree, child] != UNSURE:
                break
            _pass_through(games, tree, move, forest.in_check[tree, child])
            node = child


@jit_inner
def _pass_through(games: Games, tree: int, move: int, in_check: bool) -> None:
    """Play a move to a position that is known: only the history is kept up."""
    position = games.positions[tree]
    length = int64(position.ply) - int64(position.start_ply) + 1
    games.moves[tree, int64(games.buffers[tree]), length - 1] = move
    play(position, move)
    games.keys[tree, length] = position.key
    games.checks[tree, length] = in_check


@jit_inner
def _arrive(forest: Forest, games: Games, tree: int, node: int, move: int) -> None:
    """Play a move to a new position, and see whether it is decided."""
    mover = 1 - int64(games.positions[tree].turn)
    termination, winner = advance(games, tree, move)
    position = games.positions[tree]
    length = int64(position.ply) - int64(position.start_ply)
    forest.in_check[tree, node] = games.checks[tree, length]
    certain, value = UNSURE, 0.0
    if termination == NO_TERMINATION and games.packed[tree].repetitions:
        checker = perpetual_checker(games.keys[tree], games.checks[tree], length, mover)
        certain = FIXED
        if checker != NO_WINNER:
            value = -1.0 if checker == mover else 1.0
        else:
            value = -REPEATING_COST if forest.path_lengths[tree] % 2 == 0 else REPEATING_COST
    elif termination:
        certain = FIXED if winner == NO_WINNER else (WON if winner == mover else LOST)
        value = 0.0 if winner == NO_WINNER else float(certain)
    elif (
        find_mate(
            position,
            games.legal_actions[tree],
            int64(games.legal_counts[tree]),
            forest.replies,
            forest.checking,
        )
        >= 0
    ):
        certain, value = WON, 1.0
    forest.certain[tree, node] = certain
    forest.edge_counts[tree, node] = 0
    forest.values[tree, node] = value
    forest.arrivals[tree] = NEEDS_NETWORK if certain == UNSURE else IS_CERTAIN


@jit
def plant(
    forest: Forest,
    edges: Edges,
    used: int,
    legal_actions: Array,
    legal_counts: Array,
    log_probs: Array,
    values: Array,
) -> int:
    """Begin each tree with its root; returns how many edges are used."""
    for tree in range(len(legal_counts)):
        forest.sizes[tree] = 1
        forest.certain[tree, ROOT] = UNSURE
        used = _open_node(
            forest, edges, used, tree, ROOT, legal_actions, legal_counts, log_probs, values, tree
        )
    return used


@jit
def grow(
    forest: Forest,
    edges: Edges,
    used: int,
    games: Games,
    rows: Array,
    log_probs: Array,
    values: Array,
) -> int:
    """Add what the network says of the new positions, and carry all results up to the roots.

    ``rows[R]`` are the trees that needed the network, in the order of ``log_probs[R, M]`` and
    ``values[R]``. Returns how many edges are used.
    """
    for row in range(len(rows)):
        tree = int64(rows[row])
        node = int64(forest.path_nodes[tree, forest.path_lengths[tree]])
        used = _open_node(
            forest,
            edges,
            used,
            tree,
            node,
            games.legal_actions,
            games.legal_counts,
            log_probs,
            values,
            row,
        )
    for tree in range(len(forest.sizes)):
        if forest.path_lengths[tree]:
            _carry_up(forest, edges, tree)
    return used


@jit_inner
def _open_node(
    forest: Forest,
    edges: Edges,
    used: int,
    tree: int,
    node: int,
    legal_actions: Array,
    legal_counts: Array,
    log_probs: Array,
    values: Array,
    row: int,
) -> int:
    """Give a node its moves: those of game `tree`, as judged in row `row`."""
    count = int64(legal_counts[tree])
    forest.edge_starts[tree, node] = used
    forest.edge_counts[tree, node] = count
    forest.values[tree, node] = values[row]
    for k in range(count):
        edges.moves[used + k] = legal_actions[tree, k]
        edges.priors[used + k] = log_probs[row, k]
        edges.children[used + k] = NO_NODE
        edges.visits[used + k] = 0
        edges.value_sums[used + k] = 0.0
    return used + count


@jit_inner
def _carry_up(forest: Forest, edges: Edges, tree: int) -> None:
    """Count the simulation at every node and move of its path, and draw certain conclusions."""
    length = int64(forest.path_lengths[tree])
    leaf = int64(forest.path_nodes[tree, length])
    value = float(forest.values[tree, leaf])
    for step in range(length - 1, -1, -1):
        child = int64(forest.path_nodes[tree, step + 1])
        node = int64(forest.path_nodes[tree, step])
        edge = int64(forest.paths[tree, step])
        value = -value
        edges.visits[edge] += 1
        edges.value_sums[edge] += value
        if forest.certain[tree, child] == LOST:
            forest.certain[tree, node] = WON
            forest.values[tree, node] = 1.0
            value = 1.0
        elif forest.certain[tree, child] == WON and _all_moves_lose(forest, edges, tree, node):
            forest.certain[tree, node] = LOST
            forest.values[tree, node] = -1.0
            value = -1.0


@jit_inner
def _all_moves_lose(forest: Forest, edges: Edges, tree: int, node: int) -> bool:
    start = int64(forest.edge_starts[tree, node])
    for edge in range(start, start + int64(forest.edge_counts[tree, node])):
        child = int64(edges.children[edge])
        if child == NO_NODE or forest.certain[tree, child] != WON:
            return False
    return True

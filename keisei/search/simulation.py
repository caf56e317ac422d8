"""How the trees of a search over a network grow.

A simulation walks from the root of each tree to a position that the network has not seen yet
(`descend`), asks the network about all of them at once, and carries what it says back up (`grow`).
Several walks may go down the same tree before the network is asked: the visits that are under way
count when the next one chooses, so that it goes elsewhere, but bring no value yet.

The rules are those of the games themselves: repetition with the moves played before the search,
declarations, the ply limit. What is known for certain - mates, and what they force - is kept as
such, and never averaged with guesses.
"""

from typing import Final

from keisei.search.selection import Weights, inner_choice, root_choice
from keisei.search.trees import (
    AS_BELOW,
    COLLIDED,
    FIXED,
    IS_CERTAIN,
    LOST,
    NEEDS_NETWORK,
    NO_NODE,
    NO_WALK,
    ROOT,
    UNSURE,
    WON,
    Edges,
    Forest,
)
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
    """Walk down the trees to new positions, which are left in `games`.

    Args:
        forest: where each walk went, and whether the network is needed, is written here.
        edges: the moves of the trees.
        games: ``[W]``, copies of the real games; what is beyond the root is overwritten.
        roots: ``[T]``, the positions at the roots.
        wanted: ``[W]``: only root moves with so many visits are considered; or `NO_WALK`,
            `AS_BELOW`.
        weights: see there.
    """
    for walk in range(len(wanted)):
        tree = int64(forest.owners[walk])
        forest.path_lengths[walk] = 0
        forest.arrivals[walk] = IS_CERTAIN
        if wanted[walk] == NO_WALK:
            continue
        games.positions[walk] = roots[tree]
        node = ROOT
        forest.path_nodes[walk, 0] = ROOT
        while True:
            if node == ROOT and wanted[walk] != AS_BELOW:
                edge = root_choice(forest, edges, tree, int64(wanted[walk]), weights)
            else:
                edge = inner_choice(forest, edges, tree, node, weights)
            length = int64(forest.path_lengths[walk])
            forest.paths[walk, length] = edge
            forest.path_lengths[walk] = length + 1
            edges.under_way[edge] += 1
            child = int64(edges.children[edge])
            move = int64(edges.moves[edge])
            if child == NO_NODE:
                child = int64(forest.sizes[tree])
                forest.sizes[tree] = child + 1
                edges.children[edge] = child
                forest.path_nodes[walk, length + 1] = child
                _arrive(forest, games, tree, walk, child, move)
                break
            forest.path_nodes[walk, length + 1] = child
            if forest.certain[tree, child] != UNSURE:
                break
            if forest.edge_counts[tree, child] == 0:
                forest.arrivals[walk] = COLLIDED
                break
            _pass_through(games, walk, move, forest.in_check[tree, child])
            node = child


@jit_inner
def _pass_through(games: Games, walk: int, move: int, in_check: bool) -> None:
    """Play a move to a position that is known: only the history is kept up."""
    position = games.positions[walk]
    length = int64(position.ply) - int64(position.start_ply) + 1
    games.moves[walk, int64(games.buffers[walk]), length - 1] = move
    play(position, move)
    games.keys[walk, length] = position.key
    games.checks[walk, length] = in_check


@jit_inner
def _arrive(forest: Forest, games: Games, tree: int, walk: int, node: int, move: int) -> None:
    """Play a move to a new position, and see whether it is decided."""
    mover = 1 - int64(games.positions[walk].turn)
    termination, winner = advance(games, walk, move)
    position = games.positions[walk]
    length = int64(position.ply) - int64(position.start_ply)
    forest.in_check[tree, node] = games.checks[walk, length]
    certain, value = UNSURE, 0.0
    if termination == NO_TERMINATION and games.packed[walk].repetitions:
        checker = perpetual_checker(games.keys[walk], games.checks[walk], length, mover)
        certain = FIXED
        if checker != NO_WINNER:
            value = -1.0 if checker == mover else 1.0
        else:
            value = -REPEATING_COST if forest.path_lengths[walk] % 2 == 0 else REPEATING_COST
    elif termination:
        certain = FIXED if winner == NO_WINNER else (WON if winner == mover else LOST)
        value = 0.0 if winner == NO_WINNER else float(certain)
    elif (
        find_mate(
            position,
            games.legal_actions[walk],
            int64(games.legal_counts[walk]),
            forest.replies,
            forest.checking,
        )
        >= 0
    ):
        certain, value = WON, 1.0
    forest.certain[tree, node] = certain
    forest.edge_counts[tree, node] = 0
    forest.values[tree, node] = value
    forest.arrivals[walk] = NEEDS_NETWORK if certain == UNSURE else IS_CERTAIN


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
            forest,
            edges,
            used,
            tree,
            ROOT,
            legal_actions[tree],
            legal_counts[tree],
            log_probs[tree],
            values[tree],
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

    ``rows[R]`` are the walks that needed the network, in the order of ``log_probs[R, M]`` and
    ``values[R]``. Returns how many edges are used.
    """
    for row in range(len(rows)):
        walk = int64(rows[row])
        used = _open_node(
            forest,
            edges,
            used,
            int64(forest.owners[walk]),
            int64(forest.path_nodes[walk, forest.path_lengths[walk]]),
            games.legal_actions[walk],
            games.legal_counts[walk],
            log_probs[row],
            values[row],
        )
    for walk in range(len(forest.owners)):
        if forest.path_lengths[walk]:
            _carry_up(forest, edges, walk)
    return used


@jit_inner
def _open_node(
    forest: Forest,
    edges: Edges,
    used: int,
    tree: int,
    node: int,
    legal_actions: Array,
    legal_count: int,
    log_probs: Array,
    value: float,
) -> int:
    """Give a node its moves, with what the network says of them."""
    count = int64(legal_count)
    forest.edge_starts[tree, node] = used
    forest.edge_counts[tree, node] = count
    forest.values[tree, node] = value
    for k in range(count):
        edges.moves[used + k] = legal_actions[k]
        edges.priors[used + k] = log_probs[k]
        edges.children[used + k] = NO_NODE
        edges.visits[used + k] = 0
        edges.under_way[used + k] = 0
        edges.value_sums[used + k] = 0.0
    return used + count


@jit_inner
def _carry_up(forest: Forest, edges: Edges, walk: int) -> None:
    """Count the simulation at every node and move of its path, and draw certain conclusions."""
    tree = int64(forest.owners[walk])
    length = int64(forest.path_lengths[walk])
    leaf = int64(forest.path_nodes[walk, length])
    value = float(forest.values[tree, leaf])
    for step in range(length - 1, -1, -1):
        child = int64(forest.path_nodes[walk, step + 1])
        node = int64(forest.path_nodes[walk, step])
        edge = int64(forest.paths[walk, step])
        edges.under_way[edge] -= 1
        if forest.arrivals[walk] == COLLIDED:
            continue
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

"""The kernels of a simulation: from the roots to new leaves, and back with the network's values.

`simulate` goes from the root of each tree to a position that the network has not evaluated yet; the
network evaluates all of them in one call, and `expand_and_backup` adds the results to the trees.
Several simulations may be in flight in the same tree: they count as visits when the next one
selects a move, so that it goes elsewhere, but have no value yet.

The rules are those of the real games: repetition with the moves played before the search,
declarations, the ply limit. What is proven (mates, and what they force) is kept as such, and never
averaged with estimates.
"""

from typing import Final

from keisei.search.selection import QTransform, select_interior, select_root
from keisei.search.trees import (
    COLLIDED,
    FIXED,
    IS_PROVEN,
    LOST,
    NEEDS_NETWORK,
    NO_NODE,
    NO_SIMULATION,
    ROOT,
    UNPROVEN,
    WON,
    Edges,
    Trees,
)
from keisei.shogi.jit import int64, jit, jit_inner
from keisei.shogi.mate import find_mate
from keisei.shogi.position import Array, Records, play
from keisei.shogi.rules import NO_TERMINATION, NO_WINNER, perpetual_checker
from keisei.shogi.vector_kernels import Games, advance

REPETITION_COST: Final = 0.2
"""Value below a draw of a repeated position, for the side at the root: moving to and fro in an
equal position does not win it."""


@jit
def simulate(
    trees: Trees,
    edges: Edges,
    games: Games,
    roots: Records,
    considered_visits: Array,
    q_transform: QTransform,
) -> None:
    """Go from the roots of the trees to new positions, which are left in `games`.

    Args:
        trees: the path of each simulation and the state of its leaf are written here.
        edges: the edges of the trees.
        games: ``[W]``, copies of the real games; what follows the root is overwritten.
        roots: ``[T]``, the positions at the roots.
        considered_visits: ``[W]``: only root moves with this visit count are considered; or
            `NO_SIMULATION`.
        q_transform: weight of the values against the policy.
    """
    for simulation in range(len(considered_visits)):
        tree = int64(trees.owners[simulation])
        trees.path_lengths[simulation] = 0
        trees.leaf_states[simulation] = IS_PROVEN
        if considered_visits[simulation] == NO_SIMULATION:
            continue
        games.positions[simulation] = roots[tree]
        node = ROOT
        trees.path_nodes[simulation, 0] = ROOT
        while True:
            if node == ROOT:
                considered = int64(considered_visits[simulation])
                edge = select_root(trees, edges, tree, considered, q_transform)
            else:
                edge = select_interior(trees, edges, tree, node, q_transform)
            length = int64(trees.path_lengths[simulation])
            trees.paths[simulation, length] = edge
            trees.path_lengths[simulation] = length + 1
            edges.in_flight[edge] += 1
            child = int64(edges.children[edge])
            move = int64(edges.moves[edge])
            if child == NO_NODE:
                child = int64(trees.sizes[tree])
                trees.sizes[tree] = child + 1
                edges.children[edge] = child
                trees.path_nodes[simulation, length + 1] = child
                _add_leaf(trees, games, tree, simulation, child, move)
                break
            trees.path_nodes[simulation, length + 1] = child
            if trees.proven[tree, child] != UNPROVEN:
                break
            if trees.edge_counts[tree, child] == 0:
                trees.leaf_states[simulation] = COLLIDED
                break
            _pass_through(games, simulation, move, trees.in_check[tree, child])
            node = child


@jit_inner
def _pass_through(games: Games, simulation: int, move: int, in_check: bool) -> None:
    """Play a move to a position that is in the tree: only the history is updated."""
    position = games.positions[simulation]
    length = int64(position.ply) - int64(position.start_ply) + 1
    games.moves[simulation, int64(games.buffers[simulation]), length - 1] = move
    play(position, move)
    games.keys[simulation, length] = position.key
    games.checks[simulation, length] = in_check


@jit_inner
def _add_leaf(trees: Trees, games: Games, tree: int, simulation: int, node: int, move: int) -> None:
    """Play a move to a new position, and find out whether its value is proven."""
    mover = 1 - int64(games.positions[simulation].turn)
    termination, winner = advance(games, simulation, move)
    position = games.positions[simulation]
    length = int64(position.ply) - int64(position.start_ply)
    trees.in_check[tree, node] = games.checks[simulation, length]
    proven, value = UNPROVEN, 0.0
    if termination == NO_TERMINATION and games.packed[simulation].repetitions:
        checker = perpetual_checker(games.keys[simulation], games.checks[simulation], length, mover)
        proven = FIXED
        if checker != NO_WINNER:
            value = -1.0 if checker == mover else 1.0
        else:
            is_root_side = trees.path_lengths[simulation] % 2 == 0
            value = -REPETITION_COST if is_root_side else REPETITION_COST
    elif termination:
        proven = FIXED if winner == NO_WINNER else (WON if winner == mover else LOST)
        value = 0.0 if winner == NO_WINNER else float(proven)
    elif (
        find_mate(
            position,
            games.legal_actions[simulation],
            int64(games.legal_counts[simulation]),
            trees.replies,
            trees.checking,
        )
        >= 0
    ):
        proven, value = WON, 1.0
    trees.proven[tree, node] = proven
    trees.edge_counts[tree, node] = 0
    trees.values[tree, node] = value
    trees.leaf_states[simulation] = NEEDS_NETWORK if proven == UNPROVEN else IS_PROVEN


@jit
def add_roots(
    trees: Trees,
    edges: Edges,
    legal_actions: Array,
    legal_counts: Array,
    log_probs: Array,
    values: Array,
) -> int:
    """Begin each tree with its root; return the number of edges in use.

    ``legal_actions[T, M]``, ``legal_counts[T]``; by the network ``log_probs[T, M]``, ``values[T]``.
    """
    used = 0
    for tree in range(len(legal_counts)):
        trees.sizes[tree] = 1
        trees.proven[tree, ROOT] = UNPROVEN
        used = _expand(
            trees,
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
def expand_and_backup(
    trees: Trees,
    edges: Edges,
    used: int,
    games: Games,
    rows: Array,
    log_probs: Array,
    values: Array,
) -> int:
    """Expand the leaves that the network evaluated and back up all simulations to the roots.

    ``rows[R]`` are the simulations whose leaves needed the network, in the order of
    ``log_probs[R, M]`` and ``values[R]``. `used` edges are in use; returns the new number.
    """
    for row in range(len(rows)):
        simulation = int64(rows[row])
        used = _expand(
            trees,
            edges,
            used,
            int64(trees.owners[simulation]),
            int64(trees.path_nodes[simulation, trees.path_lengths[simulation]]),
            games.legal_actions[simulation],
            games.legal_counts[simulation],
            log_probs[row],
            values[row],
        )
    for simulation in range(len(trees.owners)):
        if trees.path_lengths[simulation]:
            _backup(trees, edges, simulation)
    return used


@jit_inner
def _expand(
    trees: Trees,
    edges: Edges,
    used: int,
    tree: int,
    node: int,
    legal_actions: Array,
    legal_count: int,
    log_probs: Array,
    value: float,
) -> int:
    """Add the edges of a node, with the network's policy and value; return the edges in use."""
    count = int64(legal_count)
    trees.edge_starts[tree, node] = used
    trees.edge_counts[tree, node] = count
    trees.values[tree, node] = value
    for k in range(count):
        edges.moves[used + k] = legal_actions[k]
        edges.log_priors[used + k] = log_probs[k]
        edges.children[used + k] = NO_NODE
        edges.visits[used + k] = 0
        edges.in_flight[used + k] = 0
        edges.value_sums[used + k] = 0.0
    return used + count


@jit_inner
def _backup(trees: Trees, edges: Edges, simulation: int) -> None:
    """Add a simulation to every edge of its path, and mark nodes that it proves won or lost."""
    tree = int64(trees.owners[simulation])
    length = int64(trees.path_lengths[simulation])
    leaf = int64(trees.path_nodes[simulation, length])
    value = float(trees.values[tree, leaf])
    for step in range(length - 1, -1, -1):
        child = int64(trees.path_nodes[simulation, step + 1])
        node = int64(trees.path_nodes[simulation, step])
        edge = int64(trees.paths[simulation, step])
        edges.in_flight[edge] -= 1
        if trees.leaf_states[simulation] == COLLIDED:
            continue
        value = -value
        edges.visits[edge] += 1
        edges.value_sums[edge] += value
        if trees.proven[tree, child] == LOST:
            trees.proven[tree, node] = WON
            trees.values[tree, node] = 1.0
            value = 1.0
        elif trees.proven[tree, child] == WON and _all_moves_lose(trees, edges, tree, node):
            trees.proven[tree, node] = LOST
            trees.values[tree, node] = -1.0
            value = -1.0


@jit_inner
def _all_moves_lose(trees: Trees, edges: Edges, tree: int, node: int) -> bool:
    start = int64(trees.edge_starts[tree, node])
    for edge in range(start, start + int64(trees.edge_counts[tree, node])):
        child = int64(edges.children[edge])
        if child == NO_NODE or trees.proven[tree, child] != WON:
            return False
    return True

"""The parts of a simulation: from the root to a new leaf, and back with the value found there.

A simulation takes the edges that `puct` selects until it comes to a move without a node. There the
rules say whether the value is proven; if not, the network gives value and policy, and the node gets
its edges. Then the value is added to all nodes of the path.

`simulate` and `expand_and_backup` do this for many simulations at a time, between which any network
evaluates all leaves in one call; `keisei.search.sparse_simulation` does all of it in one kernel.
Several simulations may be in flight in the same tree.

The rules are those of the real games: repetition with the moves played before the search,
declarations, the ply limit. What is proven (mates, and what they force) is kept as such, and never
averaged with estimates.
"""

from typing import Final

import numpy as np

from keisei.network.predictor import MIN_DEVIATION
from keisei.search.puct import Puct, bring_likeliest_forward, select_edge
from keisei.search.trees import (
    FIXED,
    LOST,
    NO_NODE,
    ROOT,
    UNPROVEN,
    WON,
    Simulations,
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

NO_LEAF, NEW_LEAF, PROVEN_LEAF, NO_EDGES, COLLIDED = range(5)
"""What a simulation came to: nothing, as it did not run; a node that needs the network; one whose
value is proven; a node whose value is known but not its policy; a leaf of another simulation that
is not evaluated yet, which does not count."""


@jit
def simulate(
    trees: Trees,
    simulations: Simulations,
    games: Games,
    roots: Records,
    is_wanted: Array,
    puct: Puct,
) -> None:
    """Go from the roots of the trees to leaves, which are left in `games`.

    Args:
        trees: there must be memory for each new node.
        simulations: path and state of each simulation are written here.
        games: ``[W]``, copies of the real games; what follows the root is overwritten.
        roots: ``[T]``, the positions at the roots.
        is_wanted: ``[W]``: which simulations to run.
        puct: how edges are selected.
    """
    for slot in range(len(is_wanted)):
        simulations.leaf_states[slot] = NO_LEAF
        if not is_wanted[slot]:
            continue
        begin_descent(trees, simulations, slot, games, roots)
        state, move = descend(trees, simulations, slot, games, puct)
        if state == NEW_LEAF:
            tree = int64(simulations.owners[slot])
            leaf = int64(simulations.paths[slot, simulations.lengths[slot]])
            proven, value = reach_leaf(simulations, slot, games, move)
            state = add_leaf(trees, tree, leaf, games, slot, proven, value)
        simulations.leaf_states[slot] = state


@jit_inner
def begin_descent(
    trees: Trees, simulations: Simulations, slot: int, games: Games, roots: Records
) -> None:
    """Put a simulation to the root of its tree."""
    tree = int64(simulations.owners[slot])
    games.positions[slot] = roots[tree]
    simulations.paths[slot, 0] = ROOT
    simulations.lengths[slot] = 0
    trees.in_flight[tree, ROOT] += 1


@jit_inner
def descend(
    trees: Trees, simulations: Simulations, slot: int, games: Games, puct: Puct
) -> tuple[int, int]:
    """Go on to a leaf by the edges that PUCT selects, and mark the path as in flight.

    Returns the state, and the last move: of `NEW_LEAF` and `NO_EDGES`, it is not played yet.
    """
    tree = int64(simulations.owners[slot])
    length = int64(simulations.lengths[slot])
    node = int64(simulations.paths[slot, length])
    while True:
        edge = select_edge(trees, tree, node, puct)
        move = int64(trees.moves[tree, edge])
        child = int64(trees.children[tree, edge])
        state = NO_LEAF
        if child == NO_NODE:
            child = _new_node(trees, tree)
            trees.children[tree, edge] = child
            state = NEW_LEAF
        elif trees.proven[tree, child] != UNPROVEN:
            state = PROVEN_LEAF
        elif trees.edge_counts[tree, child] == 0:
            is_alone = trees.visits[tree, child] > 0 and trees.in_flight[tree, child] == 0
            state = NO_EDGES if is_alone else COLLIDED
        length += 1
        simulations.paths[slot, length] = child
        trees.in_flight[tree, child] += 1
        if state != NO_LEAF:
            break
        _pass_through(games, slot, move, trees.in_check[tree, child])
        node = child
    simulations.lengths[slot] = length
    simulations.max_lengths[slot] = max(int64(simulations.max_lengths[slot]), length)
    return state, move


@jit_inner
def _new_node(trees: Trees, tree: int) -> int:
    node = int64(trees.sizes[tree])
    trees.sizes[tree] = node + 1
    trees.edge_counts[tree, node] = 0
    trees.tried_counts[tree, node] = 0
    trees.visits[tree, node] = 0
    trees.in_flight[tree, node] = 0
    trees.value_sums[tree, node] = 0.0
    trees.proven[tree, node] = UNPROVEN
    return node


@jit_inner
def _pass_through(games: Games, slot: int, move: int, in_check: bool) -> None:
    """Play a move to a position that is in the tree: only the history is updated."""
    position = games.positions[slot]
    length = int64(position.ply) - int64(position.start_ply) + 1
    games.moves[slot, int64(games.buffers[slot]), length - 1] = move
    play(position, move)
    games.keys[slot, length] = position.key
    games.checks[slot, length] = in_check


@jit_inner
def reach_leaf(simulations: Simulations, slot: int, games: Games, move: int) -> tuple[int, float]:
    """Play the move to a new leaf; return what is proven of it, and its value if that is known.

    It does not touch the trees: other threads may change them meanwhile.
    """
    mover = 1 - int64(games.positions[slot].turn)
    termination, winner = advance(games, slot, move)
    position = games.positions[slot]
    length = int64(position.ply) - int64(position.start_ply)
    proven, value = UNPROVEN, 0.0
    if termination == NO_TERMINATION and games.packed[slot].repetitions:
        checker = perpetual_checker(games.keys[slot], games.checks[slot], length, mover)
        proven = FIXED
        if checker != NO_WINNER:
            value = -1.0 if checker == mover else 1.0
        else:
            is_root_side = simulations.lengths[slot] % 2 == 0
            value = -REPETITION_COST if is_root_side else REPETITION_COST
    elif termination:
        proven = FIXED if winner == NO_WINNER else (WON if winner == mover else LOST)
        value = 0.0 if winner == NO_WINNER else float(proven)
    elif (
        find_mate(
            position,
            games.legal_actions[slot],
            int64(games.legal_counts[slot]),
            simulations.replies[slot],
            simulations.checking[slot],
        )
        >= 0
    ):
        proven, value = WON, 1.0
    return proven, value


@jit_inner
def add_leaf(
    trees: Trees, tree: int, leaf: int, games: Games, slot: int, proven: int, value: float
) -> int:
    """Write what is known of a new leaf without the network; return the state of its simulation."""
    position = games.positions[slot]
    length = int64(position.ply) - int64(position.start_ply)
    trees.in_check[tree, leaf] = games.checks[slot, length]
    trees.proven[tree, leaf] = proven
    trees.values[tree, leaf] = value
    return NEW_LEAF if proven == UNPROVEN else PROVEN_LEAF


@jit
def add_roots(
    trees: Trees,
    legal_actions: Array,
    legal_counts: Array,
    log_probs: Array,
    values: Array,
    puct: Puct,
) -> None:
    """Begin each tree with its root.

    ``legal_actions[T, M]``, ``legal_counts[T]``; by the network ``log_probs[T, M]``, ``values[T]``.
    """
    for tree in range(len(legal_counts)):
        trees.sizes[tree] = 0
        trees.num_edges[tree] = 0
        trees.num_expanded[tree] = 0
        _new_node(trees, tree)
        trees.visits[tree, ROOT] = 1
        expand(
            trees,
            tree,
            ROOT,
            legal_actions[tree],
            legal_counts[tree],
            log_probs[tree],
            values[tree],
            puct,
        )


@jit
def expand_and_backup(
    trees: Trees,
    simulations: Simulations,
    games: Games,
    slots: Array,
    log_probs: Array,
    values: Array,
    puct: Puct,
) -> None:
    """Expand the leaves that the network evaluated and back up all simulations to the roots.

    ``slots[R]`` are the simulations whose leaves needed the network, in the order of
    ``log_probs[R, M]`` and ``values[R]``. There must be memory for their edges.
    """
    for row in range(len(slots)):
        slot = int64(slots[row])
        expand(
            trees,
            int64(simulations.owners[slot]),
            int64(simulations.paths[slot, simulations.lengths[slot]]),
            games.legal_actions[slot],
            games.legal_counts[slot],
            log_probs[row],
            values[row],
            puct,
        )
    for slot in range(len(simulations.owners)):
        if simulations.leaf_states[slot] == COLLIDED:
            take_back(trees, simulations, slot)
        elif simulations.leaf_states[slot] != NO_LEAF:
            backup(trees, simulations, slot)


@jit_inner
def expand(
    trees: Trees,
    tree: int,
    node: int,
    legal_actions: Array,
    legal_count: int,
    log_probs: Array,
    value: float,
    puct: Puct,
) -> None:
    """Add the edges of a node, with the network's policy and value."""
    count = int64(legal_count)
    start = int64(trees.num_edges[tree])
    top, mean, square = log_probs[0], 0.0, 0.0
    for k in range(count):
        top = max(top, log_probs[k])
        mean += log_probs[k] / count
    for k in range(count):
        square += (log_probs[k] - mean) ** 2 / count
    scale = puct.policy_scale / max(np.sqrt(square), MIN_DEVIATION)
    total = 0.0
    for k in range(count):
        prior = np.exp(np.float32(scale * (log_probs[k] - top)))
        total += prior
        trees.moves[tree, start + k] = legal_actions[k]
        trees.priors[tree, start + k] = prior
        trees.children[tree, start + k] = NO_NODE
    for k in range(count):
        trees.priors[tree, start + k] /= total
    trees.values[tree, node] = value
    trees.edge_starts[tree, node] = start
    trees.edge_counts[tree, node] = count
    trees.num_edges[tree] = start + count
    trees.expanded[tree, int64(trees.num_expanded[tree])] = node
    trees.num_expanded[tree] += 1
    bring_likeliest_forward(trees, tree, start, start + count)


@jit_inner
def take_back(trees: Trees, simulations: Simulations, slot: int) -> None:
    """Take back a simulation that collided with another one: it does not count."""
    tree = int64(simulations.owners[slot])
    for step in range(int64(simulations.lengths[slot]) + 1):
        trees.in_flight[tree, int64(simulations.paths[slot, step])] -= 1


@jit_inner
def backup(trees: Trees, simulations: Simulations, slot: int) -> None:
    """Add a simulation to every node of its path, and mark nodes that it proves won or lost."""
    tree = int64(simulations.owners[slot])
    length = int64(simulations.lengths[slot])
    node = int64(simulations.paths[slot, length])
    value = float(trees.values[tree, node])
    for step in range(length, -1, -1):
        node = int64(simulations.paths[slot, step])
        if step < length:
            value = -value
            child = int64(simulations.paths[slot, step + 1])
            if trees.proven[tree, child] == LOST:
                trees.proven[tree, node] = WON
                trees.values[tree, node] = 1.0
            elif trees.proven[tree, child] == WON and _all_moves_lose(trees, tree, node):
                trees.proven[tree, node] = LOST
                trees.values[tree, node] = -1.0
            if trees.proven[tree, node] != UNPROVEN:
                value = float(trees.values[tree, node])
        trees.in_flight[tree, node] -= 1
        trees.visits[tree, node] += 1
        trees.value_sums[tree, node] -= value


@jit_inner
def _all_moves_lose(trees: Trees, tree: int, node: int) -> bool:
    count = int64(trees.edge_counts[tree, node])
    if trees.tried_counts[tree, node] < count:
        return False
    start = int64(trees.edge_starts[tree, node])
    for edge in range(start, start + count):
        if trees.proven[tree, int64(trees.children[tree, edge])] != WON:
            return False
    return True

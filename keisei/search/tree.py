"""The trees of a search over a network: one for each game, grown together, a leaf at a time.

A simulation walks from the root of each tree to a position that the network has not seen yet
(`descend`), asks the network about all of them at once, and carries what it says back up (`grow`).
Several walks may go down the same tree before the network is asked: the visits that are under way
count when the next one chooses, so that it goes elsewhere, but bring no value yet.

How moves are chosen is that of Gumbel AlphaZero (Danihelka et al., 2022): at the root by sequential
halving, below it so that visits follow the policy that the values seen so far suggest.

The rules are those of the games themselves: repetition with the moves played before the search,
declarations, the ply limit. What is known for certain - mates, and what they force - is kept as
such, and never averaged with guesses.
"""

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from keisei.constants import MAX_LEGAL_MOVES, MOVE_BUFFER
from keisei.shogi.jit import int64, jit, jit_inner
from keisei.shogi.mate import find_mate
from keisei.shogi.position import Array, Records, play
from keisei.shogi.rules import NO_TERMINATION, NO_WINNER, perpetual_checker
from keisei.shogi.tables import NUM_CLASSES
from keisei.shogi.vector_kernels import Games, advance

ROOT: Final = 0
NO_NODE: Final = -1

UNSURE, WON, LOST, FIXED = 0, 1, -1, 2
"""What is certain of a node, for its mover. A fixed one is not looked into: it is a draw, or it
repeats an earlier position, which one may do again and again but gets nowhere by."""

REPEATING_COST: Final = 0.2
"""What a position that occurred before is short of a draw, for the side at the root: to shuffle to
and fro in a level position is no way to win it."""

NEEDS_NETWORK, IS_CERTAIN, COLLIDED = 0, 1, 2
"""What a simulation has arrived at. A collision, with a position that the network is still to be
asked about for another walk, is no simulation."""

NO_WALK: Final = -1
AS_BELOW: Final = -2
"""In place of a number of visits: no simulation; choose at the root as everywhere below it."""


class Forest(NamedTuple):
    """``T`` trees of up to ``S + 1`` nodes each, and ``W`` walks of up to ``D`` plies in them.

    Values are those of the mover at the node.
    """

    edge_starts: npt.NDArray[np.int64]  # [T, S + 1]: where a node's moves begin in the edges
    edge_counts: npt.NDArray[np.int32]  # [T, S + 1]: 0 for what is over
    values: npt.NDArray[np.float32]  # [T, S + 1]: the network's word, or the certain value
    certain: npt.NDArray[np.int8]  # [T, S + 1]: UNSURE, WON, LOST, FIXED
    in_check: npt.NDArray[np.bool_]  # [T, S + 1]
    sizes: npt.NDArray[np.int32]  # [T]: nodes so far
    owners: npt.NDArray[np.int32]  # [W]: the tree that a walk goes down
    paths: npt.NDArray[np.int64]  # [W, D]: edges of the current simulation
    path_nodes: npt.NDArray[np.int32]  # [W, D + 1]: nodes of the current simulation
    path_lengths: npt.NDArray[np.int32]  # [W]: how many edges
    arrivals: npt.NDArray[np.int8]  # [W]: NEEDS_NETWORK, IS_CERTAIN or COLLIDED
    luck: npt.NDArray[np.float32]  # [T, 593]: Gumbel noise on the root's log-probabilities
    scores: npt.NDArray[np.float64]  # [1024]: of moves, overwritten
    replies: npt.NDArray[np.uint16]  # [1024]: overwritten
    checking: npt.NDArray[np.uint64]  # [classes, 2]: overwritten

    @classmethod
    def new(cls, trees: int, simulations: int, *, walks: int = 1, depth: int = 0) -> "Forest":
        """Trees without any node.

        Args:
            trees: how many.
            simulations: nodes that each can have beside its root.
            walks: how many go down each tree at a time.
            depth: plies that a walk can have; 0: as many as a tree has nodes.
        """
        shape = (trees, simulations + 1)
        depth = depth or simulations + 1
        return cls(
            edge_starts=np.zeros(shape, dtype=np.int64),
            edge_counts=np.zeros(shape, dtype=np.int32),
            values=np.zeros(shape, dtype=np.float32),
            certain=np.zeros(shape, dtype=np.int8),
            in_check=np.zeros(shape, dtype=np.bool_),
            sizes=np.zeros(trees, dtype=np.int32),
            owners=np.repeat(np.arange(trees, dtype=np.int32), walks),
            paths=np.zeros((trees * walks, depth), dtype=np.int64),
            path_nodes=np.zeros((trees * walks, depth + 1), dtype=np.int32),
            path_lengths=np.zeros(trees * walks, dtype=np.int32),
            arrivals=np.zeros(trees * walks, dtype=np.int8),
            luck=np.zeros((trees, MAX_LEGAL_MOVES), dtype=np.float32),
            scores=np.zeros(MOVE_BUFFER, dtype=np.float64),
            replies=np.zeros(MOVE_BUFFER, dtype=np.uint16),
            checking=np.zeros((NUM_CLASSES, 2), dtype=np.uint64),
        )


class Edges(NamedTuple):
    """The moves of all nodes of all trees, one after the other."""

    moves: npt.NDArray[np.uint16]
    priors: npt.NDArray[np.float32]
    """Log-probabilities of the policy."""

    children: npt.NDArray[np.int32]
    """The node that a move leads to, `NO_NODE` before its first visit."""

    visits: npt.NDArray[np.int32]
    under_way: npt.NDArray[np.int32]
    """Walks that went this way and whose result is not known yet."""

    value_sums: npt.NDArray[np.float64]
    """Of its simulations, for the side that makes the move."""

    @classmethod
    def new(cls, size: int) -> "Edges":
        """Room for `size` moves; memory that is not used yet is not taken yet."""
        return cls(
            np.zeros(size, dtype=np.uint16),
            np.zeros(size, dtype=np.float32),
            np.zeros(size, dtype=np.int32),
            np.zeros(size, dtype=np.int32),
            np.zeros(size, dtype=np.int32),
            np.zeros(size, dtype=np.float64),
        )

    def enlarged(self, size: int) -> "Edges":
        """The same moves, with room for `size`."""
        larger = Edges.new(size)
        for name, values in self._asdict().items():
            getattr(larger, name)[: len(values)] = values
        return larger


class Weights(NamedTuple):
    """How much the values count against the policy."""

    visit: float
    """Visits that are added to those of the most visited move."""

    scale: float
    """What a value difference of 2, all that there can be, adds to a log-probability per visit."""


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
                edge = _root_choice(forest, edges, tree, int64(wanted[walk]), weights)
            else:
                edge = _inner_choice(forest, edges, tree, node, weights)
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
def _root_choice(forest: Forest, edges: Edges, tree: int, wanted: int, weights: Weights) -> int:
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
def _inner_choice(forest: Forest, edges: Edges, tree: int, node: int, weights: Weights) -> int:
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
    columns: Array,
    values: Array,
    visits: Array,
) -> None:
    """Write for each tree its best move, what that is worth, and the visits of all moves.

    The best is the best by score among those with most visits; but a move that is known to win
    comes before all others, and one that is known to lose after them.
    ``columns[T]``, ``values[T]``, ``visits[T, M]``.
    """
    for tree in range(len(columns)):
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
        columns[tree] = best
        values[tree] = _value_of(
            forest, edges, tree, start + best, float(forest.values[tree, ROOT])
        )

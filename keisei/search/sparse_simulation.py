"""Simulations over a sparse network in one kernel: no Python between one and the next.

Threads may work in the same tree. Each holds the tree's lock while it selects and while it backs
up, and lets go of it for the four fifths of the time that rules and network take. A leaf gets its
value on the first visit and its policy on the second: the policy costs more than half of the time,
and three quarters of the leaves are never visited again.
"""

from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from keisei.constants import MAX_LEGAL_MOVES
from keisei.network.sparse.forward import (
    Rows,
    SparseWeights,
    Workspace,
    forward,
    write_rows,
)
from keisei.network.sparse.sparse_network import SparseNetwork
from keisei.search.puct import Puct
from keisei.search.simulation import (
    COLLIDED,
    NEW_LEAF,
    NO_EDGES,
    add_leaf,
    backup,
    begin_descent,
    descend,
    expand,
    reach_leaf,
    take_back,
)
from keisei.search.spin_lock import acquire, give_way, release, yield_address
from keisei.search.trees import ROOT, UNPROVEN, Simulations, Trees
from keisei.shogi.jit import int64, jit, jit_inner
from keisei.shogi.packed import scale_ply
from keisei.shogi.position import Array, Records
from keisei.shogi.threads import RangePool
from keisei.shogi.vector_kernels import Games, advance


class SparseLeaves(NamedTuple):
    """What a thread needs to evaluate leaves."""

    weights: SparseWeights
    rows: Rows
    work: Workspace
    position_plugins: npt.NDArray[np.int32]  # [0]
    move_plugins: npt.NDArray[np.int32]  # [593, 0]
    yield_address: int
    ply_limit: int  # of the network's training; 0: any

    @classmethod
    def of(cls, network: SparseNetwork) -> "SparseLeaves":
        """Make those of one thread; the weights are the network's own."""
        return cls(
            network.arrays,
            network.rows,
            network.new_workspace(),
            np.zeros(0, dtype=np.int32),
            np.zeros((MAX_LEGAL_MOVES, 0), dtype=np.int32),
            yield_address(),
            network.ply_limit,
        )


@jit
def simulate_sparse(
    trees: Trees,
    simulations: Simulations,
    games: Games,
    roots: Records,
    left: Array,
    puct: Puct,
    leaves: SparseLeaves,
    start: int,
    stop: int,
) -> None:
    """Run simulations of the slots `start` to `stop`, one slot after the other.

    Args:
        trees: ``T`` of them.
        simulations: ``W`` slots; other threads may work in the other slots.
        games: ``[W]``, copies of the real games; what follows the root is overwritten.
        roots: ``[T]``, the positions at the roots.
        left: ``[T]`` int64: simulations still to be run in each tree. It ends above 0 if the root
            is proven, or if there is no memory for another node.
        puct: how edges are selected.
        leaves: of this thread.
        start: the first slot.
        stop: the slot behind the last.
    """
    most_nodes, most_edges = trees.visits.shape[1], trees.moves.shape[1]
    # Other threads may be about to add a node and to expand another one of the same tree.
    per_tree = len(simulations.owners) // len(left)
    for slot in range(start, stop):
        tree = int64(simulations.owners[slot])
        while True:
            acquire(trees.locks, tree, leaves.yield_address)
            if (
                left[tree] <= 0
                or trees.proven[tree, ROOT] != UNPROVEN
                or trees.sizes[tree] + per_tree > most_nodes
                or trees.num_edges[tree] + per_tree * MAX_LEGAL_MOVES > most_edges
            ):
                release(trees.locks, tree)
                break
            begin_descent(trees, simulations, slot, games, roots)
            state, move = descend(trees, simulations, slot, games, puct)
            if state == COLLIDED:
                take_back(trees, simulations, slot)
                release(trees.locks, tree)
                give_way(leaves.yield_address)
                continue
            left[tree] -= 1
            if state == NO_EDGES:
                release(trees.locks, tree)
                advance(games, slot, move)
                value = _evaluate(games, slot, leaves, int64(games.legal_counts[slot]))
                acquire(trees.locks, tree, leaves.yield_address)
                expand(
                    trees,
                    tree,
                    int64(simulations.paths[slot, simulations.lengths[slot]]),
                    games.legal_actions[slot],
                    games.legal_counts[slot],
                    leaves.work.logits,
                    value,
                    puct,
                )
                state, move = descend(trees, simulations, slot, games, puct)  # one ply further
            if state == NEW_LEAF:
                release(trees.locks, tree)
                proven, value = reach_leaf(simulations, slot, games, move)
                if proven == UNPROVEN:
                    value = _evaluate(games, slot, leaves, 0)
                acquire(trees.locks, tree, leaves.yield_address)
                leaf = int64(simulations.paths[slot, simulations.lengths[slot]])
                add_leaf(trees, tree, leaf, games, slot, proven, value)
            backup(trees, simulations, slot)
            release(trees.locks, tree)


@jit_inner
def _evaluate(games: Games, slot: int, leaves: SparseLeaves, count: int) -> float:
    """Return the value of the position of a slot; ``leaves.work`` gets the policy of `count` moves.

    With a `count` of 0 the policy is left out.
    """
    packed = games.packed[slot]
    if leaves.ply_limit > 0:
        scale_ply(packed, leaves.ply_limit)
    write_rows(
        games.positions[slot],
        packed,
        games.legal_actions[slot],
        count,
        leaves.rows,
        leaves.position_plugins,
        leaves.move_plugins,
        leaves.work,
    )
    value: float = np.tanh(forward(leaves.weights, leaves.work, count))
    return value


class SparseThreads:
    """The threads that run simulations over a sparse network."""

    def __init__(self, network: SparseNetwork) -> None:
        """Start as many threads as the network has."""
        self.threads = network.threads
        self._network = network
        self._pool = RangePool(network.threads, min_range=1)
        self._spare_leaves: list[SparseLeaves] = []

    @classmethod
    def of(cls, network: object) -> "SparseThreads | None":
        """Make the threads for a network; None if the kernel can't evaluate leaves by it.

        That is so for other types of networks, and for rows of plug-ins, which need Python.
        """
        if not isinstance(network, SparseNetwork):
            return None
        has_plugins = network.position_spec.max_plugin_rows or network.move_spec.max_plugin_rows
        return None if has_plugins else cls(network)

    def run(
        self,
        trees: Trees,
        simulations: Simulations,
        games: Games,
        roots: Records,
        left: npt.NDArray[np.int64],
        puct: Puct,
    ) -> None:
        """Call `simulate_sparse` with these arguments in all threads.

        They work in a single tree together, or each in its share of the trees.
        """
        arguments = (trees, simulations, games, roots, left, puct)
        slots = len(simulations.owners)
        if len(left) == 1 < slots:
            self._pool.run_each(self._run_slot, arguments)
        else:
            self._pool.run(self._run_slots, slots, arguments)

    def _run_slot(self, arguments: tuple[Any, ...], thread: int, _: int) -> None:
        self._run_slots(arguments, thread, thread + 1)

    def _run_slots(self, arguments: tuple[Any, ...], start: int, stop: int) -> None:
        spare = self._spare_leaves
        leaves = spare.pop() if spare else SparseLeaves.of(self._network)
        trees, simulations, games, roots, left, puct = arguments
        simulate_sparse(trees, simulations, games, roots, left, puct, leaves, start, stop)
        spare.append(leaves)

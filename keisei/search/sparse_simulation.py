"""Simulations over a sparse network in one kernel: no Python between one and the next.

Threads may work in the same tree. Each holds the tree's lock while it selects and while it backs
up, and lets go of it for the four fifths of the time that rules and network take.
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
    set_up,
    write_rows,
)
from keisei.network.sparse.sparse_network import SparseNetwork
from keisei.search.puct import Puct
from keisei.search.simulation import (
    COLLIDED,
    NEW_LEAF,
    add_leaf,
    backup,
    descend,
    expand,
    reach_leaf,
    take_back,
)
from keisei.search.spin_lock import acquire, give_way, release, yield_address
from keisei.search.trees import ROOT, UNPROVEN, Simulations, Trees
from keisei.shogi.jit import int64, jit
from keisei.shogi.position import Array, Records
from keisei.shogi.threads import RangePool
from keisei.shogi.vector_kernels import Games


class SparseLeaves(NamedTuple):
    """What a thread needs to evaluate leaves."""

    weights: SparseWeights
    rows: Rows
    work: Workspace
    position_plugins: npt.NDArray[np.int32]  # [0]
    move_plugins: npt.NDArray[np.int32]  # [593, 0]
    yield_address: int

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
    # Other threads may be about to expand nodes of the same tree.
    reserve = len(simulations.owners) // len(left) * MAX_LEGAL_MOVES
    for slot in range(start, stop):
        tree = int64(simulations.owners[slot])
        while True:
            acquire(trees.locks, tree, leaves.yield_address)
            if (
                left[tree] <= 0
                or trees.proven[tree, ROOT] != UNPROVEN
                or trees.sizes[tree] >= most_nodes
                or trees.num_edges[tree] + reserve > most_edges
            ):
                release(trees.locks, tree)
                break
            state, move = descend(trees, simulations, slot, games, roots, puct)
            if state == COLLIDED:
                take_back(trees, simulations, slot)
                release(trees.locks, tree)
                give_way(leaves.yield_address)
                continue
            left[tree] -= 1
            if state == NEW_LEAF:
                release(trees.locks, tree)
                count = int64(0)
                proven, value = reach_leaf(simulations, slot, games, move)
                if proven == UNPROVEN:
                    count = int64(games.legal_counts[slot])
                    packed = games.packed[slot]
                    write_rows(
                        set_up(packed, leaves.work),
                        packed,
                        games.legal_actions[slot],
                        count,
                        leaves.rows,
                        leaves.position_plugins,
                        leaves.move_plugins,
                        leaves.work,
                    )
                    value = np.tanh(forward(leaves.weights, leaves.work, count))
                acquire(trees.locks, tree, leaves.yield_address)
                leaf = int64(simulations.paths[slot, simulations.lengths[slot]])
                add_leaf(trees, tree, leaf, games, slot, proven, value)
                if proven == UNPROVEN:
                    expand(
                        trees,
                        tree,
                        leaf,
                        games.legal_actions[slot],
                        count,
                        leaves.work.logits,
                        value,
                        puct,
                    )
            backup(trees, simulations, slot)
            release(trees.locks, tree)


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

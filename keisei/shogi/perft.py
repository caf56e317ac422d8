"""Perft: count the leaves of the tree of legal moves, the classic test of a move generator."""

import numpy as np

from keisei.constants import MOVE_BUFFER
from keisei.shogi.jit import jit
from keisei.shogi.movegen import legal_moves
from keisei.shogi.position import (
    Array,
    Record,
    play,
    undo,
)


def perft(position: Record, depth: int, *, bulk: bool = True) -> int:
    """Number of sequences of `depth` legal moves from `position`, which is left unchanged.

    With `bulk` the last ply is counted, not played; otherwise every leaf is played and undone.
    """
    if depth <= 0:
        return 1
    stack = np.zeros((depth, MOVE_BUFFER), dtype=np.uint16)
    levels = np.zeros((depth, 3), dtype=np.int64)
    return int(count_leaves(position, stack, levels, bulk))


LEFT, MOVE, CAPTURED = range(3)
"""Columns of `levels`: number of moves left to play, the move on the path, its captured piece."""


@jit
def count_leaves(position: Record, stack: Array, levels: Array, bulk: bool) -> int:
    """Count leaves depth-first; ``stack[depth, 1024]`` holds the legal moves of each level."""
    last = len(stack) - 1
    nodes, level = 0, 0
    is_new = True
    while True:
        if is_new:  # the only call of the generator: each call would be compiled as a copy of it
            levels[level, LEFT], _ = legal_moves(position, stack[level])
            if bulk and level == last:
                nodes += levels[level, LEFT]
                levels[level, LEFT] = 0
        is_new = levels[level, LEFT] > 0
        if is_new:
            levels[level, LEFT] -= 1
            levels[level, MOVE] = stack[level, levels[level, LEFT]]
            levels[level, CAPTURED] = play(position, levels[level, MOVE])
            if level < last:
                level += 1
                continue
            nodes += 1
            is_new = False
        elif level == 0:
            return nodes
        else:
            level -= 1
        undo(position, levels[level, MOVE], levels[level, CAPTURED])

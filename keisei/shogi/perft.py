"""Count the leaves of the tree of legal moves: the classic proof that a generator is right."""

import numpy as np

from keisei.constants import MOVE_BUFFER
from keisei.shogi.jit import int64, jit
from keisei.shogi.movegen import legal_moves
from keisei.shogi.position import Array, Record, play, undo


def perft(position: Record, depth: int, *, bulk: bool = True) -> int:
    """How many sequences of `depth` legal moves there are from `position` (left unchanged).

    With `bulk` the last ply is counted, not played; without, every leaf is played and undone.
    """
    if depth <= 0:
        return 1
    stack = np.zeros((depth, MOVE_BUFFER), dtype=np.uint16)
    return int(count_leaves(position, depth, stack, bulk))


@jit
def count_leaves(position: Record, depth: int, stack: Array, bulk: bool) -> int:
    """Depth-first with an explicit stack: ``stack[level]`` holds the moves still to be played."""
    left = np.zeros(depth, dtype=np.int64)
    current = np.zeros(depth, dtype=np.int64)
    captured = np.zeros(depth, dtype=np.int64)
    nodes = 0
    level = 0
    left[0], _ = legal_moves(position, stack[0])
    while True:
        if bulk and level == depth - 1:
            nodes += left[level]
            left[level] = 0
        if left[level] == 0:
            if level == 0:
                return nodes
            level -= 1
            undo(position, current[level], captured[level])
            continue
        left[level] -= 1
        move = int64(stack[level, left[level]])
        captured[level] = play(position, move)
        if level == depth - 1:
            nodes += 1
            undo(position, move, captured[level])
            continue
        current[level] = move
        level += 1
        left[level], _ = legal_moves(position, stack[level])

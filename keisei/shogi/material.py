"""What positions and moves are worth by their pieces: shaping's potential, the greedy player."""

from typing import Final

import numpy as np
import numpy.typing as npt

from keisei.constants import NUM_HAND_KINDS, NUM_SQUARES
from keisei.shogi.chance import random_below
from keisei.shogi.jit import int64, jit, jit_inner
from keisei.shogi.position import FIRST_ENEMY_CODE, Array, Record, Records, decode
from keisei.shogi.tables import PROMOTED_KIND, UNPROMOTED_KIND

PIECE_POINTS: Final = np.array([1, 3, 4, 5, 6, 8, 10, 0, 7, 6, 6, 6, 10, 12], dtype=np.int64)
"""P L N S G B R K, then +P +L +N +S +B +R, in pawns; in hand a piece is worth the same."""

_SCALE: Final = 30.0
"""Pawns ahead at which the potential reaches tanh(1)."""

_CODE_POINTS: Final = np.concatenate([[0], PIECE_POINTS, -PIECE_POINTS]).astype(np.float32)


def material_potentials(packed: Records) -> npt.NDArray[np.float32]:
    """``[B]``: the mover's material less the opponent's, squashed to -1 .. 1."""
    on_board = _CODE_POINTS[packed["board"]].sum(axis=1)
    hands = packed["hands"].astype(np.float32)
    in_hand = (hands[:, 0] - hands[:, 1]) @ PIECE_POINTS[:NUM_HAND_KINDS].astype(np.float32)
    potentials: npt.NDArray[np.float32] = np.tanh((on_board + in_hand) / np.float32(_SCALE))
    return potentials


@jit
def greedy_columns(
    positions: Records, legal_actions: Array, legal_counts: Array, luck: Array, columns: Array
) -> None:
    """Write the column of a move that wins most material at once into ``columns[B]``.

    Among equals ``luck[B]`` (uint64, random, not 0) decides; it is stirred on the way.
    """
    for index in range(len(positions)):
        best, equals = -1, 0
        for column in range(legal_counts[index]):
            points = material_gain(positions[index], int64(legal_actions[index, column]))
            if points > best:
                best, equals = points, 0
            if points == best:
                equals += 1
                # The n-th equal move replaces the one before with probability 1 / n.
                if random_below(luck, index, equals) == 0:
                    columns[index] = column


@jit_inner
def material_gain(position: Record, move: int) -> int:
    """What a move wins at once, in pawns: what it takes, twice counted, and what promotes."""
    mover = int64(position.turn)
    origin, to, promote = decode(move)
    if origin >= NUM_SQUARES:
        return 0
    points = 0
    taken = int64(position.board[mover, to]) - FIRST_ENEMY_CODE
    if taken >= 0:
        points += PIECE_POINTS[taken] + PIECE_POINTS[UNPROMOTED_KIND[taken]]
    if promote:
        kind = int64(position.board[mover, origin]) - 1
        points += PIECE_POINTS[PROMOTED_KIND[kind]] - PIECE_POINTS[kind]
    return points

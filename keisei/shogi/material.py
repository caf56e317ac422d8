"""Material: a static evaluation in centipawns, its updates by moves, and the greedy policy.

A search evaluates the whole board once, at its root; `move_gain` then gives the change of each
move.
"""

from typing import Final

import numpy as np
import numpy.typing as npt

from keisei.constants import (
    BOARD_SIZE,
    NUM_HAND_KINDS,
    NUM_PIECE_KINDS,
    NUM_SQUARES,
)
from keisei.shogi.jit import int64, jit, jit_inner
from keisei.shogi.position import (
    FIRST_ENEMY_CODE,
    LAST_SQUARE,
    Array,
    Record,
    Records,
    decode,
)
from keisei.shogi.rng import random_below
from keisei.shogi.tables import PROMOTED_KIND, UNPROMOTED_KIND
from keisei.shogi.types import PieceKind

PIECE_POINTS: Final = np.array([1, 3, 4, 5, 6, 8, 10, 0, 7, 6, 6, 6, 10, 12], dtype=np.int64)
"""Values of P L N S G B R K, then +P +L +N +S +B +R, in pawns, on the board and in hand."""

_SCALE: Final = 30.0
"""Material difference, in pawns, at which the potential is tanh(1)."""

_CODE_POINTS: Final = np.concatenate([[0], PIECE_POINTS, -PIECE_POINTS]).astype(np.float32)


def material_potentials(packed: Records) -> npt.NDArray[np.float32]:
    """The mover's material minus the opponent's, squashed to -1 .. 1, ``[B]``."""
    on_board = _CODE_POINTS[packed["board"]].sum(axis=1)
    hands = packed["hands"].astype(np.float32)
    in_hand = (hands[:, 0] - hands[:, 1]) @ PIECE_POINTS[:NUM_HAND_KINDS].astype(np.float32)
    potentials: npt.NDArray[np.float32] = np.tanh((on_board + in_hand) / np.float32(_SCALE))
    return potentials


@jit
def greedy_legal_indices(
    positions: Records,
    legal_actions: Array,
    legal_counts: Array,
    rng_states: Array,
    legal_indices: Array,
) -> None:
    """Write the legal index of a move that wins the most material into ``legal_indices[B]``.

    Ties are broken at random by ``rng_states[B]`` (uint64, not 0), which are advanced.
    """
    for index in range(len(positions)):
        best, equals = -1, 0
        for legal_index in range(legal_counts[index]):
            points = material_gain(positions[index], int64(legal_actions[index, legal_index]))
            if points > best:
                best, equals = points, 0
            if points == best:
                equals += 1
                # Reservoir sampling: the n-th equal move is taken with probability 1 / n.
                if random_below(rng_states, index, equals) == 0:
                    legal_indices[index] = legal_index


@jit_inner
def material_gain(position: Record, move: int) -> int:
    """Material that a move wins, in pawns: a captured piece counts on the board and in hand."""
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


CENTIPAWNS: Final = 100

HAND_VALUES: Final = (CENTIPAWNS * PIECE_POINTS[:NUM_HAND_KINDS]).astype(np.int64)
"""Values of P L N S G B R in hand, in centipawns."""

_MAJOR_KINDS: Final = (PieceKind.BISHOP, PieceKind.ROOK, PieceKind.HORSE, PieceKind.DRAGON)


def _square_values() -> npt.NDArray[np.int64]:
    """Value of each kind on each square, ``[14, 81]``, in its owner's view, in centipawns.

    The positional terms are well below a pawn: only major pieces gain by advancing. When all
    pieces did, the bot advanced into captures and lost to the greedy player; a bonus for a king on
    its own ranks did not help either.
    """
    advance = BOARD_SIZE - 1 - np.arange(NUM_SQUARES) // BOARD_SIZE
    values = np.zeros((NUM_PIECE_KINDS, NUM_SQUARES), dtype=np.int64)
    for kind in _MAJOR_KINDS:
        values[kind] = 2 * advance
    return values + CENTIPAWNS * PIECE_POINTS[:, None]


SQUARE_VALUES: Final = _square_values()
"""``[14, 81]``: value of each kind on each square of its owner's view, in centipawns."""


@jit
def evaluate(position: Record) -> int:
    """Evaluate a position for its mover, in centipawns."""
    mover = int64(position.turn)
    value = 0
    for sq in range(NUM_SQUARES):
        code = int64(position.board[mover, sq])
        if code >= FIRST_ENEMY_CODE:
            value -= SQUARE_VALUES[code - FIRST_ENEMY_CODE, LAST_SQUARE - sq]
        elif code:
            value += SQUARE_VALUES[code - 1, sq]
    for kind in range(NUM_HAND_KINDS):
        held = int64(position.hands[mover, kind]) - int64(position.hands[1 - mover, kind])
        value += HAND_VALUES[kind] * held
    return value


@jit_inner
def move_gain(position: Record, move: int) -> int:
    """Change of the mover's evaluation by a legal move, in centipawns."""
    mover = int64(position.turn)
    origin, to, promote = decode(move)
    if origin >= NUM_SQUARES:
        kind = origin - NUM_SQUARES
        return int64(SQUARE_VALUES[kind, to] - HAND_VALUES[kind])
    kind = int64(position.board[mover, origin]) - 1
    gain = -SQUARE_VALUES[kind, origin]
    if promote:
        kind = PROMOTED_KIND[kind]
    gain += SQUARE_VALUES[kind, to]
    taken = int64(position.board[mover, to]) - FIRST_ENEMY_CODE
    if taken >= 0:
        gain += SQUARE_VALUES[taken, LAST_SQUARE - to] + HAND_VALUES[UNPROMOTED_KIND[taken]]
    return int64(gain)

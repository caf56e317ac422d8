"""What a position is worth, in hundredths of a pawn: material, and where the pieces stand.

The value is kept up move by move: `move_gain` says what a move adds to the mover's value, so that
nothing is ever counted over the whole board but the root of a search.
"""

from typing import Final

import numpy as np
import numpy.typing as npt

from keisei.constants import BOARD_SIZE, NUM_HAND_KINDS, NUM_PIECE_KINDS, NUM_SQUARES
from keisei.shogi.jit import int64, jit, jit_inner
from keisei.shogi.material import PIECE_POINTS
from keisei.shogi.pieces import PieceKind
from keisei.shogi.position import FIRST_ENEMY_CODE, LAST_SQUARE, Record, decode
from keisei.shogi.tables import PROMOTED_KIND, UNPROMOTED_KIND

CENTIPAWNS: Final = 100

HAND_VALUES: Final = (CENTIPAWNS * PIECE_POINTS[:NUM_HAND_KINDS]).astype(np.int64)
"""P L N S G B R in hand."""

_BIG_KINDS: Final = (PieceKind.BISHOP, PieceKind.ROOK, PieceKind.HORSE, PieceKind.DRAGON)


def _square_values() -> npt.NDArray[np.int64]:
    """``[14, 81]``: what each kind is worth on each square, its owner moving up the board.

    Small terms only, well below the price of a pawn: the big pieces like to advance. Where all
    pieces did, the bot ran into the greedy player's and lost to it; a king that likes to stay at
    home was no help either.
    """
    advance = BOARD_SIZE - 1 - np.arange(NUM_SQUARES) // BOARD_SIZE
    values = np.zeros((NUM_PIECE_KINDS, NUM_SQUARES), dtype=np.int64)
    for kind in _BIG_KINDS:
        values[kind] = 2 * advance
    return values + CENTIPAWNS * PIECE_POINTS[:, None]


SQUARE_VALUES: Final = _square_values()
"""``[14, 81]``: piece and place together."""


@jit
def evaluate(position: Record) -> int:
    """The value of a position for its mover."""
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
    """What a legal move adds to the mover's value."""
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

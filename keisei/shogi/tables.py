"""Constant tables that the kernels read: steps, lines, masks, Zobrist keys.

All are for the side that moves up the board (towards row 0): kernels use the mover's view of a
position. Bitboards are rows of two ``uint64`` words (`bitboard.load`). The rows of `NO_SQUARE` are
empty.
"""

from typing import Final

import numpy as np
import numpy.typing as npt

from keisei.constants import (
    BOARD_SIZE,
    HAND_LIMITS,
    NUM_HAND_KINDS,
    NUM_PIECE_KINDS,
    NUM_SQUARES,
    PROMOTION_ZONE_SQUARES,
)
from keisei.shogi.bitboard import Words, as_words
from keisei.shogi.types import PieceKind

NO_SQUARE: Final = NUM_SQUARES
"""The square of a king that is not on the board."""

# Classes of pieces that move alike: gold and the pieces that promote to it share one. The first
# eight are also `PieceKind`s.
PAWN, LANCE, KNIGHT, SILVER, GOLD, BISHOP, ROOK, KING, HORSE, DRAGON = range(10)
NUM_CLASSES: Final = 10
CLASS_OF_KIND: Final = np.array(
    [PAWN, LANCE, KNIGHT, SILVER, GOLD, BISHOP, ROOK, KING, GOLD, GOLD, GOLD, GOLD, HORSE, DRAGON],
    dtype=np.int64,
)
PROMOTED_KIND: Final = np.array(
    [kind.promoted if kind.can_promote else kind for kind in PieceKind], dtype=np.int64
)
UNPROMOTED_KIND: Final = np.array([kind.unpromoted for kind in PieceKind], dtype=np.int64)
HAND_LIMIT_OF_KIND: Final = np.array(HAND_LIMITS, dtype=np.int64)
"""`HAND_LIMITS` as kernels read them."""

# Lines through a square: rows of LOWER and UPPER.
FILE_LINE: Final = 1
ROOK_LINES: Final = (0, FILE_LINE)
BISHOP_LINES: Final = (2, 3)
_LINE_STEPS: Final = ((0, 1), (1, 0), (1, 1), (1, -1))
"""(rows, columns) towards higher squares along rank, file and the two diagonals."""

_ORTHOGONAL: Final = ((-1, 0), (0, -1), (0, 1), (1, 0))
_DIAGONAL: Final = ((-1, -1), (-1, 1), (1, -1), (1, 1))
_DIRECTIONS: Final[dict[int, tuple[tuple[int, int], ...]]] = {
    PAWN: ((-1, 0),),
    KNIGHT: ((-2, -1), (-2, 1)),
    SILVER: ((-1, 0), *_DIAGONAL),
    GOLD: (*_ORTHOGONAL, (-1, -1), (-1, 1)),
    BISHOP: _DIAGONAL,
    ROOK: _ORTHOGONAL,
    KING: (*_ORTHOGONAL, *_DIAGONAL),
}
"""(rows, columns) of single steps by class; for bishop and rook also the directions they slide."""


def _reach(sq: int, row_step: int, column_step: int, max_steps: int) -> int:
    """Bitboard of the squares that up to `max_steps` equal steps lead to on an empty board."""
    row, column = divmod(sq, BOARD_SIZE)
    board = 0
    for _ in range(max_steps):
        row, column = row + row_step, column + column_step
        if not (0 <= row < BOARD_SIZE and 0 <= column < BOARD_SIZE):
            break
        board |= 1 << row * BOARD_SIZE + column
    return board


def _steps_table() -> Words:
    rows: list[int] = []
    for piece_class in range(KING + 1):
        for sq in range(NUM_SQUARES):
            board = 0
            for row_step, column_step in _DIRECTIONS.get(piece_class, ()):
                board |= _reach(sq, row_step, column_step, 1)
            rows.append(board)
        rows.append(0)  # NO_SQUARE
    return as_words(rows).reshape(KING + 1, NUM_SQUARES + 1, 2)


def _line_table(sign: int) -> Words:
    rows: list[int] = []
    for row_step, column_step in _LINE_STEPS:
        rows += [
            _reach(sq, sign * row_step, sign * column_step, BOARD_SIZE) for sq in range(NUM_SQUARES)
        ]
        rows.append(0)  # NO_SQUARE
    return as_words(rows).reshape(len(_LINE_STEPS), NUM_SQUARES + 1, 2)


STEPS: Final = _steps_table()
"""``[class, square]``: single steps; a dragon has those of a bishop, a horse those of a rook."""

LOWER: Final = _line_table(-1)
"""``[line, square]``: the lower squares of a line through a square, on an empty board."""

UPPER: Final = _line_table(1)
"""``[line, square]``: the higher squares of a line through a square, on an empty board."""

_BOARD = (1 << NUM_SQUARES) - 1
_COLUMN_0 = sum(1 << row * BOARD_SIZE for row in range(BOARD_SIZE))

# Rows of MASKS.
ALL, NOT_COLUMN_0, NOT_COLUMN_8, ZONE, NOT_ROW_0, NOT_ROWS_0_1 = range(6)
MASKS: Final = as_words(
    [
        _BOARD,
        _BOARD & ~_COLUMN_0,
        _BOARD & ~(_COLUMN_0 << (BOARD_SIZE - 1)),
        (1 << PROMOTION_ZONE_SQUARES) - 1,
        _BOARD & ~((1 << BOARD_SIZE) - 1),
        _BOARD & ~((1 << 2 * BOARD_SIZE) - 1),
    ]
)
"""The board, the board without a column or rows, the promotion zone."""


def _splitmix64(state: int) -> int:
    """The `state`-th number of the SplitMix64 generator, which no library release can change."""
    mask = (1 << 64) - 1
    z = (state + 1) * 0x9E3779B97F4A7C15 & mask
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & mask
    z = (z ^ z >> 27) * 0x94D049BB133111EB & mask
    return z ^ z >> 31


def _random_numbers(first: int, *shape: int) -> npt.NDArray[np.uint64]:
    numbers = [_splitmix64(first + index) for index in range(int(np.prod(shape)))]
    return np.array(numbers, dtype=np.uint64).reshape(shape)


BOARD_KEYS: Final = _random_numbers(0, 2, NUM_PIECE_KINDS, NUM_SQUARES)
"""``[colour, kind, absolute square]``: Zobrist keys of pieces on the board."""

HAND_KEYS: Final = _random_numbers(10_000, 2, NUM_HAND_KINDS, 19)
"""``[colour, kind, count]``: Zobrist keys of hands."""

WHITE_TO_MOVE_KEY: Final = np.uint64(_splitmix64(20_000))

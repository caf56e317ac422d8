"""Constant tables that the kernels read: steps, lines, masks, Zobrist numbers.

All are written for one side only, the one that moves up the board (to row 0): kernels look at a
position through the mover's eyes. Bitboards are rows of two ``uint64`` words (`bitboard.load`).
Square 81 stands for "no such king": its rows are empty.
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
from keisei.shogi.bitboard import Words, as_words

NO_SQUARE: Final = 81

# How a piece moves: all gold-like pieces share a class. The first eight are also `PieceKind`s.
PAWN, LANCE, KNIGHT, SILVER, GOLD, BISHOP, ROOK, KING, HORSE, DRAGON = range(10)
NUM_CLASSES: Final = 10
CLASS_OF_KIND: Final = np.array(
    [PAWN, LANCE, KNIGHT, SILVER, GOLD, BISHOP, ROOK, KING, GOLD, GOLD, GOLD, GOLD, HORSE, DRAGON],
    dtype=np.int64,
)
PROMOTED_KIND: Final = np.array([8, 9, 10, 11, 4, 12, 13, 7, 8, 9, 10, 11, 12, 13], dtype=np.int64)
UNPROMOTED_KIND: Final = np.array([0, 1, 2, 3, 4, 5, 6, 7, 0, 1, 2, 3, 5, 6], dtype=np.int64)

FILE_LINE: Final = 1
_LINE_STEPS: Final = ((0, 1), (1, 0), (1, 1), (1, -1))
"""(rows, columns) towards higher squares along rank, file and the two diagonals."""

_ORTHOGONAL: Final = ((-1, 0), (0, -1), (0, 1), (1, 0))
_DIAGONAL: Final = ((-1, -1), (-1, 1), (1, -1), (1, 1))
DIRECTIONS: Final[dict[int, tuple[tuple[int, int], ...]]] = {
    PAWN: ((-1, 0),),
    KNIGHT: ((-2, -1), (-2, 1)),
    SILVER: ((-1, 0), *_DIAGONAL),
    GOLD: (*_ORTHOGONAL, (-1, -1), (-1, 1)),
    BISHOP: _DIAGONAL,
    ROOK: _ORTHOGONAL,
    KING: (*_ORTHOGONAL, *_DIAGONAL),
}
"""(rows, columns) of single steps by class; those of bishop and rook are also their lines."""


def _reach(sq: int, row_step: int, column_step: int, most: int) -> int:
    """The squares that up to `most` equal steps lead to on an empty board, as a bitboard."""
    row, column = divmod(sq, BOARD_SIZE)
    board = 0
    for _ in range(most):
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
            for row_step, column_step in DIRECTIONS.get(piece_class, ()):
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
"""``[class, square]``: single steps; those of the bishop and rook are a dragon's and horse's."""

LOWER: Final = _line_table(-1)
"""``[line, square]``: the part of a line with lower squares, on an empty board."""

UPPER: Final = _line_table(1)
"""``[line, square]``: the part of a line with higher squares, on an empty board."""

_BOARD = (1 << NUM_SQUARES) - 1
_COLUMN_0 = sum(1 << row * BOARD_SIZE for row in range(BOARD_SIZE))

# Rows of MASKS.
ALL, NOT_COLUMN_0, NOT_COLUMN_8, ZONE, NOT_ROW_0, NOT_ROWS_0_1 = range(6)
MASKS: Final = as_words(
    [
        _BOARD,
        _BOARD & ~_COLUMN_0,
        _BOARD & ~(_COLUMN_0 << (BOARD_SIZE - 1)),
        (1 << 3 * BOARD_SIZE) - 1,
        _BOARD & ~((1 << BOARD_SIZE) - 1),
        _BOARD & ~((1 << 2 * BOARD_SIZE) - 1),
    ]
)
"""The board, the board less a column or rows, the promotion zone."""


def _splitmix64(state: int) -> int:
    """The `state`-th number of the SplitMix64 generator: fixed for ever, unlike a library's."""
    mask = (1 << 64) - 1
    z = (state + 1) * 0x9E3779B97F4A7C15 & mask
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9 & mask
    z = (z ^ z >> 27) * 0x94D049BB133111EB & mask
    return z ^ z >> 31


def _random_numbers(first: int, *shape: int) -> npt.NDArray[np.uint64]:
    numbers = [_splitmix64(first + index) for index in range(int(np.prod(shape)))]
    return np.array(numbers, dtype=np.uint64).reshape(shape)


BOARD_KEYS: Final = _random_numbers(0, 2, NUM_PIECE_KINDS, NUM_SQUARES)
"""``[colour, kind, absolute square]``: Zobrist numbers of pieces on the board."""

HAND_KEYS: Final = _random_numbers(10_000, 2, NUM_HAND_KINDS, 19)
"""``[colour, kind, count]``: Zobrist numbers of hands."""

WHITE_TO_MOVE_KEY: Final = np.uint64(_splitmix64(20_000))

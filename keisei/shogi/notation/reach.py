"""Which pieces could go to a square by the way they move, pins and checks aside.

Notations ask this of a plain list of pieces, for either side; the kernels, of bitboards in the
mover's view. A test holds the two together.
"""

from collections.abc import Sequence
from typing import Final

from keisei.constants import BOARD_SIZE
from keisei.shogi.pieces import Color, Piece
from keisei.shogi.tables import (
    BISHOP,
    CLASS_OF_KIND,
    DIRECTIONS,
    DRAGON,
    GOLD,
    HORSE,
    KING,
    KNIGHT,
    LANCE,
    PAWN,
    ROOK,
    SILVER,
)

_Directions = tuple[tuple[int, int], ...]

_STEPS: Final[dict[int, _Directions]] = {
    **{stepper: DIRECTIONS[stepper] for stepper in (PAWN, KNIGHT, SILVER, GOLD, KING)},
    HORSE: DIRECTIONS[ROOK],
    DRAGON: DIRECTIONS[BISHOP],
}
_SLIDES: Final[dict[int, _Directions]] = {
    LANCE: DIRECTIONS[PAWN],
    BISHOP: DIRECTIONS[BISHOP],
    ROOK: DIRECTIONS[ROOK],
    HORSE: DIRECTIONS[BISHOP],
    DRAGON: DIRECTIONS[ROOK],
}


def origins(board: Sequence[Piece | None], piece: Piece, target: int) -> list[int]:
    """The squares from which a piece of this kind and colour reaches the target."""
    forward = 1 if piece.color is Color.BLACK else -1
    piece_class = int(CLASS_OF_KIND[piece.kind])
    reached = []
    for directions, reach in ((_STEPS, 1), (_SLIDES, BOARD_SIZE)):
        for rows, columns in directions.get(piece_class, ()):
            row, column = divmod(target, BOARD_SIZE)
            for _ in range(reach):  # backwards, from the target to where the piece may stand
                row, column = row - rows * forward, column - columns * forward
                if not (0 <= row < BOARD_SIZE and 0 <= column < BOARD_SIZE):
                    break
                found = board[row * BOARD_SIZE + column]
                if found == piece:
                    reached.append(row * BOARD_SIZE + column)
                if found is not None:
                    break
    return reached

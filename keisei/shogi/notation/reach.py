"""Which pieces could go to a square by the way they move, pins and checks aside.

Notations ask this of a plain list of pieces, for either side; the tables of the kernels are
bitboards in the mover's view. A test holds the two together.
"""

from collections.abc import Sequence
from typing import Final

from keisei.constants import BOARD_SIZE
from keisei.shogi.pieces import Color, Piece, PieceKind

_GOLD: Final = ((-1, -1), (-1, 0), (-1, 1), (0, -1), (0, 1), (1, 0))
_DIAGONAL: Final = ((-1, -1), (-1, 1), (1, -1), (1, 1))
_STRAIGHT: Final = ((-1, 0), (0, -1), (0, 1), (1, 0))

_Steps = tuple[tuple[int, int], ...]

_STEPS: Final[dict[PieceKind, _Steps]] = {
    PieceKind.PAWN: ((-1, 0),),
    PieceKind.KNIGHT: ((-2, -1), (-2, 1)),
    PieceKind.SILVER: (*_DIAGONAL, (-1, 0)),
    PieceKind.GOLD: _GOLD,
    PieceKind.KING: (*_DIAGONAL, *_STRAIGHT),
    PieceKind.PROMOTED_PAWN: _GOLD,
    PieceKind.PROMOTED_LANCE: _GOLD,
    PieceKind.PROMOTED_KNIGHT: _GOLD,
    PieceKind.PROMOTED_SILVER: _GOLD,
    PieceKind.HORSE: _STRAIGHT,
    PieceKind.DRAGON: _DIAGONAL,
}
"""(rows, columns) of single steps for Black; forward is minus."""

_SLIDES: Final[dict[PieceKind, _Steps]] = {
    PieceKind.LANCE: ((-1, 0),),
    PieceKind.BISHOP: _DIAGONAL,
    PieceKind.ROOK: _STRAIGHT,
    PieceKind.HORSE: _DIAGONAL,
    PieceKind.DRAGON: _STRAIGHT,
}


def origins(board: Sequence[Piece | None], piece: Piece, target: int) -> list[int]:
    """The squares from which a piece of this kind and colour reaches the target."""
    forward = 1 if piece.color is Color.BLACK else -1
    reached = []
    for steps, reach in ((_STEPS, 1), (_SLIDES, BOARD_SIZE)):
        for rows, columns in steps.get(piece.kind, ()):
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

"""The look of a drawn position: sizes, colours, and which way round it is. SVG and PNG share it."""

from dataclasses import dataclass
from typing import Final, Literal

from keisei.constants import BOARD_SIZE, NUM_SQUARES
from keisei.shogi.render.glyphs import Lettering
from keisei.shogi.types import Color, PieceKind

FACE_WOOD: Final = "#fae6b4"
LETTERED_FACES: Final = ("#f8dfa4", "#fffdf7")  # two woods, Black's and White's
SIDE_WOOD: Final = "#bd8b45"
PIECE_EDGE: Final = "#7c5220"
INK: Final = "#1c120a"
PROMOTED_INK: Final = "#c01818"

KING_HEIGHT: Final = 58.0
PIECE_THICKNESS: Final = 2.5
PIECE_SCALE: Final[dict[PieceKind, tuple[float, float]]] = {
    PieceKind.PAWN: (0.74, 0.84),
    PieceKind.LANCE: (0.78, 0.88),
    PieceKind.KNIGHT: (0.84, 0.90),
    PieceKind.SILVER: (0.91, 0.93),
    PieceKind.GOLD: (0.91, 0.93),
    PieceKind.BISHOP: (0.96, 0.97),
    PieceKind.ROOK: (0.96, 0.97),
    PieceKind.KING: (1.0, 1.0),
}
"""Width and height relative to the king: in a set, stronger pieces are larger."""

OUTLINE: Final = ((0.0, -0.5), (0.37, -0.35), (0.5, 0.5), (-0.5, 0.5), (-0.37, -0.35))
"""Corners of a piece, relative to its width and height, its point up."""


def piece_size(kind: PieceKind) -> tuple[float, float]:
    """Return width and height of a piece."""
    wide, high = PIECE_SCALE[kind.unpromoted]
    return 0.86 * KING_HEIGHT * wide, KING_HEIGHT * high


Labels = Literal["japanese", "western", "letters"]
"""Labels of pieces and squares.

``japanese``: kanji on the pieces and for the ranks; ``western``: kanji on the pieces, ranks a to
i as in USI; ``letters``: SFEN letters on the pieces, ranks a to i.
"""

# The picture's own units, which `size` scales. Squares are higher than wide, as on real boards.
CELL_WIDTH: Final = 60
CELL_HEIGHT: Final = 66
RIM: Final = 30  # wood around the grid, with room for the labels of files and ranks
MARGIN: Final = 8
GAP: Final = 14  # between the board and a stand
STAND_WIDTH: Final = 140
PLATE_HEIGHT: Final = 50  # the plate with the player's name, on top of the stand
PLATE_INSET: Final = 8
SLOT_WIDTH: Final = 64  # room for a kind in hand: two columns, four rows
SLOT_HEIGHT: Final = 74
STAND_HEIGHT: Final = PLATE_HEIGHT + 3 * PLATE_INSET + 4 * SLOT_HEIGHT
GRID_WIDTH: Final = BOARD_SIZE * CELL_WIDTH
GRID_HEIGHT: Final = BOARD_SIZE * CELL_HEIGHT
BOARD_WIDTH: Final = GRID_WIDTH + 2 * RIM
BOARD_HEIGHT: Final = GRID_HEIGHT + 2 * RIM
BOARD_X: Final = MARGIN + STAND_WIDTH + GAP
GRID_X: Final = BOARD_X + RIM
GRID_Y: Final = MARGIN + RIM
WIDTH: Final = BOARD_WIDTH + 2 * BOARD_X
HEIGHT: Final = BOARD_HEIGHT + 2 * MARGIN

BOARD_WOOD: Final = "#e6b96c"
STAND_WOOD: Final = "#c98f4b"
WOOD_EDGE: Final = "#8f5f2a"
GRAIN: Final = "#8a5a1e"
BOARD_INK: Final = "#3f270d"
PALE: Final = "#f8e7c3"
ORIGIN_MARK: Final = "#fff07a"
TARGET_MARK: Final = "#ff9a1f"
ALARM: Final = "#d3121f"


@dataclass(frozen=True, slots=True)
class View:
    """The labels and the orientation of the board."""

    labels: Labels
    flip: bool

    @property
    def lettering(self) -> Lettering:
        """The lettering of the pieces."""
        return "letters" if self.labels == "letters" else "kanji"

    def corner(self, sq: int) -> tuple[int, int]:
        """Return the top left corner of a square in the picture."""
        row, column = divmod(NUM_SQUARES - 1 - sq if self.flip else sq, BOARD_SIZE)
        return GRID_X + column * CELL_WIDTH, GRID_Y + row * CELL_HEIGHT

    def at_top(self, color: Color) -> bool:
        """Return whether a player sits at the top of the picture, with pieces that point down."""
        return (color is Color.WHITE) != self.flip

    def stand_corner(self, color: Color) -> tuple[int, int]:
        """Return the top left corner of a player's stand, on that player's right of the board."""
        if self.at_top(color):
            return MARGIN, MARGIN
        return BOARD_X + BOARD_WIDTH + GAP, MARGIN + BOARD_HEIGHT - STAND_HEIGHT

    def held_middle(self, color: Color, index: int) -> tuple[float, float]:
        """Return where the kind at a place in a hand is drawn, counted from 0."""
        x, y = self.stand_corner(color)
        row, column = divmod(index, 2)
        top = y + 2 * PLATE_INSET + PLATE_HEIGHT
        return x + STAND_WIDTH / 2 - 3 + (column - 0.5) * SLOT_WIDTH, top + (
            row + 0.5
        ) * SLOT_HEIGHT

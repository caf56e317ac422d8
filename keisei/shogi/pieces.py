"""Colours, pieces and squares: the nouns of the game.

A square is an ``int``: ``row * 9 + column``, row 0 is rank a, column 0 is file 9, so that
9a = 0 and 1i = 80, as on a printed diagram. Black (sente) moves up the board, to row 0.
"""

from enum import IntEnum
from typing import Final, NamedTuple

from keisei.constants import BOARD_SIZE, NUM_SQUARES
from keisei.errors import NotationError


class Color(IntEnum):
    """The two players. Black (sente) moves first from the usual start position."""

    BLACK = 0
    WHITE = 1

    @property
    def opponent(self) -> "Color":
        """The other player."""
        return Color(1 - self)


class PieceKind(IntEnum):
    """What a piece is, without its colour. The first seven can be held in hand."""

    PAWN = 0
    LANCE = 1
    KNIGHT = 2
    SILVER = 3
    GOLD = 4
    BISHOP = 5
    ROOK = 6
    KING = 7
    PROMOTED_PAWN = 8
    PROMOTED_LANCE = 9
    PROMOTED_KNIGHT = 10
    PROMOTED_SILVER = 11
    HORSE = 12
    DRAGON = 13

    @property
    def promoted(self) -> "PieceKind":
        """What it becomes by promoting; gold, king and promoted pieces have no such kind."""
        if not self.can_promote:
            raise ValueError(f"a {self.name.lower()} does not promote")
        return PieceKind(_PROMOTED[self])

    @property
    def unpromoted(self) -> "PieceKind":
        """What it is in hand after a capture; itself where it is not promoted."""
        return PieceKind(_UNPROMOTED[self])

    @property
    def can_promote(self) -> bool:
        """Whether this kind can promote: P L N S B R."""
        return self in _PROMOTED

    @property
    def is_promoted(self) -> bool:
        """Whether this is one of +P +L +N +S +B +R."""
        return self > PieceKind.KING

    @property
    def symbol(self) -> str:
        """The SFEN letters of the Black piece: ``P`` ... ``K``, ``+P`` ... ``+R``."""
        return SYMBOLS[self]


_PROMOTED: Final = {0: 8, 1: 9, 2: 10, 3: 11, 5: 12, 6: 13}
_UNPROMOTED: Final = (0, 1, 2, 3, 4, 5, 6, 7, 0, 1, 2, 3, 5, 6)

SYMBOLS: Final = ("P", "L", "N", "S", "G", "B", "R", "K", "+P", "+L", "+N", "+S", "+B", "+R")
"""SFEN letters by kind."""

HAND_KINDS: Final = tuple(PieceKind(kind) for kind in range(7))
"""P L N S G B R: what can be held in hand and dropped."""


class Piece(NamedTuple):
    """A piece of a colour, as it stands on the board."""

    color: Color
    kind: PieceKind

    @property
    def symbol(self) -> str:
        """SFEN letters: upper case for Black, lower case for White, ``+`` when promoted."""
        symbol = self.kind.symbol
        return symbol if self.color is Color.BLACK else symbol.lower()


PIECE_BY_SYMBOL: Final = {
    piece.symbol: piece for color in Color for kind in PieceKind for piece in [Piece(color, kind)]
}
"""Pieces by their SFEN letters."""


def square(file: int, rank: int) -> int:
    """The square of a file (1 to 9, from Black's right) and a rank (1 to 9, from the top)."""
    return (rank - 1) * BOARD_SIZE + (BOARD_SIZE - file)


def file_of(sq: int) -> int:
    """File of a square, 1 to 9."""
    return BOARD_SIZE - sq % BOARD_SIZE


def rank_of(sq: int) -> int:
    """Rank of a square, 1 to 9 for a to i."""
    return sq // BOARD_SIZE + 1


ROWS_NEEDED: Final = {PieceKind.PAWN: 1, PieceKind.LANCE: 1, PieceKind.KNIGHT: 2}
"""How many rows must lie ahead of a piece so that it can ever move again."""


def rows_ahead(sq: int, color: Color) -> int:
    """How many rows lie between a square and the far edge, as `color` looks up the board."""
    return rank_of(sq) - 1 if color is Color.BLACK else BOARD_SIZE - rank_of(sq)


SQUARE_NAMES: Final = tuple(
    f"{file_of(sq)}{'abcdefghi'[sq // BOARD_SIZE]}" for sq in range(NUM_SQUARES)
)
"""USI names by square: 9a, 8a, ... 1i."""

_SQUARE_BY_NAME: Final = {name: sq for sq, name in enumerate(SQUARE_NAMES)}


def parse_square(name: str) -> int:
    """The square of a USI name such as ``7g``."""
    try:
        return _SQUARE_BY_NAME[name]
    except KeyError:
        raise NotationError(
            f"{name!r} is not a square; a file 1-9 and a rank a-i are expected, as in '7g'"
        ) from None

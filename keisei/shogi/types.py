"""Colours, pieces, squares, moves and diagrams as plain Python values, without kernels."""

from dataclasses import dataclass, field
from enum import IntEnum
from typing import Final, NamedTuple

from keisei.constants import (
    BOARD_SIZE,
    HAND_LIMITS,
    MAX_MOVE_NUMBER,
    NUM_HAND_KINDS,
    NUM_SQUARES,
    PROMOTION_ZONE_ROWS,
)
from keisei.errors import IllegalPositionError, NotationError


class Color(IntEnum):
    """The two players. Black (sente) moves first from the usual start position."""

    BLACK = 0
    WHITE = 1

    @property
    def opponent(self) -> "Color":
        """The other player."""
        return Color(1 - self)


class PieceKind(IntEnum):
    """The kind of a piece, without its colour. The first seven can be held in hand."""

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
        """The kind after promotion; ValueError for gold, king and promoted pieces."""
        if not self.can_promote:
            raise ValueError(f"a {self.name.lower()} does not promote")
        return PieceKind(_PROMOTED[self])

    @property
    def unpromoted(self) -> "PieceKind":
        """The kind in hand after a capture; the same kind if it is not promoted."""
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

MAX_QUOTED: Final = 200
"""Characters of a text that is no move that its error quotes: it may come from a stranger."""

SYMBOLS: Final = ("P", "L", "N", "S", "G", "B", "R", "K", "+P", "+L", "+N", "+S", "+B", "+R")
"""SFEN letters by kind."""

HAND_KINDS: Final = tuple(PieceKind(kind) for kind in range(7))
"""P L N S G B R: the kinds that can be held in hand and dropped."""


class Piece(NamedTuple):
    """A piece on the board: its colour and its kind."""

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
    """Square of a file (1 to 9, from Black's right) and a rank (1 to 9, from the top)."""
    return (rank - 1) * BOARD_SIZE + (BOARD_SIZE - file)


def file_of(sq: int) -> int:
    """File of a square, 1 to 9."""
    return BOARD_SIZE - sq % BOARD_SIZE


def rank_of(sq: int) -> int:
    """Rank of a square, 1 to 9 for a to i."""
    return sq // BOARD_SIZE + 1


ROWS_NEEDED: Final = {PieceKind.PAWN: 1, PieceKind.LANCE: 1, PieceKind.KNIGHT: 2}
"""Rows that must lie ahead of a piece of this kind for it to have any move."""


def rows_ahead(sq: int, color: Color) -> int:
    """Number of rows between a square and the far edge in the view of `color`."""
    return rank_of(sq) - 1 if color is Color.BLACK else BOARD_SIZE - rank_of(sq)


def in_view_of(color: Color, sq: int) -> int:
    """A square in the view of `color`, who moves up the board: ``80 - sq`` for White."""
    return NUM_SQUARES - 1 - sq if color is Color.WHITE else sq


def in_promotion_zone(sq: int, color: Color) -> bool:
    """Whether `color` promotes on moves into or out of a square."""
    return rows_ahead(sq, color) < PROMOTION_ZONE_ROWS


RANK_LETTERS: Final = "abcdefghi"
"""Ranks from the top as USI names them."""

SQUARE_NAMES: Final = tuple(
    f"{file_of(sq)}{RANK_LETTERS[sq // BOARD_SIZE]}" for sq in range(NUM_SQUARES)
)
"""USI names by square: 9a, 8a, ... 1i."""

_SQUARE_BY_NAME: Final = {name: sq for sq, name in enumerate(SQUARE_NAMES)}


def parse_square(name: str) -> int:
    """Return the square of a USI name such as ``7g``."""
    try:
        return _SQUARE_BY_NAME[name]
    except KeyError:
        raise NotationError(
            f"{name!r} is not a square; a file 1-9 and a rank a-i are expected, as in '7g'"
        ) from None


class Move(NamedTuple):
    """A board move or a drop, in absolute squares (not turned for White).

    >>> Move.from_usi("7g7f")
    Move.from_usi('7g7f')
    """

    from_square: int | None
    """The square that the piece leaves; None for a drop."""

    to_square: int
    """The square that the piece goes to."""

    promote: bool = False
    """Whether the piece promotes."""

    drop: PieceKind | None = None
    """The kind that is dropped; None for a board move."""

    @property
    def usi(self) -> str:
        """USI text: ``7g7f``, ``8h2b+``, ``P*5e``."""
        target = SQUARE_NAMES[self.to_square]
        if self.drop is not None:
            return f"{self.drop.symbol}*{target}"
        assert self.from_square is not None
        return f"{SQUARE_NAMES[self.from_square]}{target}{'+' if self.promote else ''}"

    @classmethod
    def from_usi(cls, text: str) -> "Move":
        """Parse USI text. Whether the move is legal in some position is not checked."""
        if len(text) == 4 and text[1] == "*":
            kind = next((kind for kind in HAND_KINDS if kind.symbol == text[0]), None)
            if kind is None:
                raise NotationError(f"{text!r}: only P L N S G B R can be dropped, not {text[0]!r}")
            return cls(None, parse_square(text[2:]), False, kind)
        if len(text) == 4 or (len(text) == 5 and text[4] == "+"):
            from_square, to_square = parse_square(text[:2]), parse_square(text[2:4])
            if from_square == to_square:
                raise NotationError(f"{text!r}: origin and target are the same square")
            return cls(from_square, to_square, len(text) == 5)
        raise NotationError(
            f"{text[:MAX_QUOTED]!r} is not a USI move; "
            "expected something like '7g7f', '8h2b+' or 'P*5e'"
        )

    def __repr__(self) -> str:
        return f"Move.from_usi({self.usi!r})"

    def __str__(self) -> str:
        return self.usi


Hands = tuple[tuple[int, ...], tuple[int, ...]]
"""Counts of P L N S G B R in Black's hand, then in White's."""

EMPTY_HANDS: Hands = ((0,) * NUM_HAND_KINDS, (0,) * NUM_HAND_KINDS)


@dataclass(frozen=True, slots=True)
class Diagram:
    """A position as a printed diagram shows it: board, hands, side to move, move number.

    `validate` checks whether a game can start from it.
    """

    board: tuple[Piece | None, ...]
    """81 entries by square (9a first, 1i last); None for an empty square."""

    hands: Hands = field(default=EMPTY_HANDS)
    """Counts of P L N S G B R in Black's hand, then in White's."""

    turn: Color = Color.BLACK
    """The side to move."""

    move_number: int = 1
    """Number of the next move, 1 at the start of a game: plies played + 1."""

    def validate(self) -> None:
        """Raise `IllegalPositionError`, with the reason, if no game can start from here.

        One side may lack its king, as in many mating problems, but not both.
        """
        if len(self.board) != NUM_SQUARES:
            raise IllegalPositionError(f"a board has {NUM_SQUARES} squares, not {len(self.board)}")
        self._validate_counts()
        for sq, piece in enumerate(self.board):
            if (
                piece is not None
                and (needed := ROWS_NEEDED.get(piece.kind, 0))
                and rows_ahead(sq, piece.color) < needed
            ):
                raise IllegalPositionError(
                    f"the {piece.kind.name.lower()} on {SQUARE_NAMES[sq]} could never move again"
                )
        self._validate_pawns()

    def _validate_counts(self) -> None:
        kings = [self.board.count(Piece(color, PieceKind.KING)) for color in Color]
        for color in Color:
            if kings[color] > 1:
                raise IllegalPositionError(f"{color.name.title()} has {kings[color]} kings")
        if sum(kings) == 0:
            raise IllegalPositionError("there is no king on the board")
        if any(len(hand) != NUM_HAND_KINDS for hand in self.hands) or len(self.hands) != len(Color):
            raise IllegalPositionError("hands are two rows of seven counts: P L N S G B R")
        on_board = [_UNPROMOTED[piece.kind] for piece in self.board if piece is not None]
        for kind, limit in enumerate(HAND_LIMITS):
            held = [hand[kind] for hand in self.hands]
            if min(held) < 0:
                raise IllegalPositionError("a hand cannot hold a negative number of pieces")
            total = on_board.count(kind) + sum(held)
            if total > limit:
                raise IllegalPositionError(
                    f"{total} pieces of kind {PieceKind(kind).symbol}, but a set has {limit}"
                )
        if not 1 <= self.move_number <= MAX_MOVE_NUMBER:
            raise IllegalPositionError(
                f"move number is {self.move_number}, it must be from 1 to {MAX_MOVE_NUMBER}"
            )

    def _validate_pawns(self) -> None:
        for color in Color:
            pawn = Piece(color, PieceKind.PAWN)
            for column in range(9):
                if self.board[column::9].count(pawn) > 1:
                    raise IllegalPositionError(
                        f"{color.name.title()} has two pawns on file {9 - column} (nifu)"
                    )

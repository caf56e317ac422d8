"""A position as it is drawn on paper: pieces, hands, side to move. Plain Python, no kernels."""

from dataclasses import dataclass, field

from keisei.constants import HAND_LIMITS, MAX_MOVE_NUMBER, NUM_HAND_KINDS, NUM_SQUARES
from keisei.errors import IllegalPositionError
from keisei.shogi.pieces import ROWS_NEEDED, SQUARE_NAMES, Color, Piece, PieceKind, rows_ahead

Hands = tuple[tuple[int, ...], tuple[int, ...]]
"""Counts of P L N S G B R in Black's hand, then in White's."""

EMPTY_HANDS: Hands = ((0,) * NUM_HAND_KINDS, (0,) * NUM_HAND_KINDS)


@dataclass(frozen=True, slots=True)
class Diagram:
    """Everything that a printed diagram shows. `validate` says whether it can be played from."""

    board: tuple[Piece | None, ...]
    """81 entries by square (9a first, 1i last); None where a square is empty."""

    hands: Hands = field(default=EMPTY_HANDS)
    """Counts of P L N S G B R in Black's hand, then in White's."""

    turn: Color = Color.BLACK
    """The side to move."""

    move_number: int = 1
    """Number of the next move, 1 at the start of a game: plies played + 1."""

    def validate(self) -> None:
        """Raise `IllegalPositionError` if no game could be played from here, and say why.

        One side may lack its king (mating problems are often printed so), not both.
        """
        if len(self.board) != NUM_SQUARES:
            raise IllegalPositionError(f"a board has {NUM_SQUARES} squares, not {len(self.board)}")
        self._validate_counts()
        for sq, piece in enumerate(self.board):
            if piece is not None and rows_ahead(sq, piece.color) < ROWS_NEEDED.get(piece.kind, 0):
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
            raise IllegalPositionError("hands are two times seven counts: P L N S G B R")
        for kind, limit in enumerate(HAND_LIMITS):
            held = [hand[kind] for hand in self.hands]
            if min(held) < 0:
                raise IllegalPositionError("a hand cannot hold a negative number of pieces")
            on_board = sum(
                piece is not None and piece.kind.unpromoted == kind for piece in self.board
            )
            if on_board + sum(held) > limit:
                raise IllegalPositionError(
                    f"{on_board + sum(held)} pieces of kind {PieceKind(kind).symbol}, "
                    f"a set has {limit}"
                )
        if not 1 <= self.move_number <= MAX_MOVE_NUMBER:
            raise IllegalPositionError(
                f"move number {self.move_number}, it must be from 1 to {MAX_MOVE_NUMBER}"
            )

    def _validate_pawns(self) -> None:
        for color in Color:
            pawn = Piece(color, PieceKind.PAWN)
            for column in range(9):
                if self.board[column::9].count(pawn) > 1:
                    raise IllegalPositionError(
                        f"{color.name.title()} has two pawns on file {9 - column} (nifu)"
                    )

"""Walking along a line of play with the rules watching: used by every reader and writer."""

from collections.abc import Iterable

from keisei.errors import IllegalMoveError
from keisei.shogi.diagram import Diagram
from keisei.shogi.game import ShogiGame
from keisei.shogi.moves import Move
from keisei.shogi.pieces import HAND_KINDS, Color, Piece, PieceKind


class Replay:
    """A game that is being walked through, with the board at hand in plain Python.

    Notations ask for the piece on a square at every move; a list answers that at once, where
    `ShogiGame.diagram` would draw the whole board each time.
    """

    def __init__(self, start: Diagram, moves: Iterable[Move] = ()) -> None:
        self.game = ShogiGame(start)
        self.board: list[Piece | None] = list(start.board)
        self.turn: Color = start.turn
        self.last_target: int | None = None
        """Where the move before went; None at the start."""
        for move in moves:
            self.play(move)

    def moving_piece(self, move: Move) -> Piece:
        """The piece that a move is about to move or drop."""
        if move.drop is not None:
            return Piece(self.turn, move.drop)
        piece = None if move.from_square is None else self.board[move.from_square]
        if piece is None:
            raise IllegalMoveError(f"{move}: there is no piece to move")
        return piece

    def holds(self, kind: PieceKind) -> bool:
        """Whether the side to move has a piece of this kind in hand."""
        return kind in HAND_KINDS and self.game.hand(self.turn)[kind] > 0

    def play(self, move: Move) -> None:
        """Play a move; `IllegalMoveError` if the rules forbid it, and nothing has changed then."""
        self.game.push(move)
        piece = self.moving_piece(move)
        if move.from_square is not None:
            self.board[move.from_square] = None
        self.board[move.to_square] = (
            Piece(piece.color, piece.kind.promoted) if move.promote else piece
        )
        self.last_target = move.to_square
        self.turn = self.turn.opponent

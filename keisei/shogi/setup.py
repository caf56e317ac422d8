"""Positions from diagrams, and diagrams from positions."""

import numpy as np

from keisei.constants import (
    NUM_HAND_KINDS,
    NUM_PIECE_KINDS,
    NUM_SQUARES,
)
from keisei.errors import IllegalPositionError
from keisei.shogi.attacks import king_is_attacked
from keisei.shogi.jit import int64, jit, jit_inner
from keisei.shogi.position import (
    ENEMY,
    FIRST_ENEMY_CODE,
    LAST_SQUARE,
    OWN,
    Array,
    Record,
    change_hand,
    new_positions,
    put_piece,
)
from keisei.shogi.tables import (
    NO_SQUARE,
    WHITE_TO_MOVE_KEY,
)
from keisei.shogi.types import Color, Diagram, Piece, PieceKind


@jit_inner
def begin_set_up(position: Record, turn: int, ply: int) -> None:
    """Everything but the pieces of a zeroed record."""
    for view in range(2):
        position.kings[view, OWN] = NO_SQUARE
        position.kings[view, ENEMY] = NO_SQUARE
    position.turn = turn
    position.ply = ply
    position.start_ply = ply
    if turn:
        position.key ^= WHITE_TO_MOVE_KEY


@jit
def set_up(position: Record, board: Array, hands: Array, turn: int, ply: int) -> None:
    """Fill a zeroed record from ``board[81]`` (Black's view, piece codes) and ``hands[2, 7]``."""
    begin_set_up(position, turn, ply)
    for sq in range(NUM_SQUARES):
        code = int64(board[sq])
        if code >= FIRST_ENEMY_CODE:
            put_piece(position, 1, code - FIRST_ENEMY_CODE, LAST_SQUARE - sq)
        elif code:
            put_piece(position, 0, code - 1, sq)
    for color in range(2):
        for kind in range(NUM_HAND_KINDS):
            change_hand(position, color, kind, int64(hands[color, kind]))


def from_diagram(diagram: Diagram) -> Record:
    """A record that stands on its own (element 0 of a new array) for a diagram.

    Raises `IllegalPositionError` where no game could be played from it.
    """
    diagram.validate()
    positions = new_positions(1)
    board = np.array(
        [
            0 if piece is None else 1 + piece.kind + NUM_PIECE_KINDS * piece.color
            for piece in diagram.board
        ],
        dtype=np.uint8,
    )
    hands = np.array(diagram.hands, dtype=np.uint8)
    set_up(positions[0], board, hands, int(diagram.turn), diagram.move_number - 1)
    waiting = diagram.turn.opponent
    if king_is_attacked(positions[0], int(waiting)):
        raise IllegalPositionError(
            f"{waiting.name.title()} is in check and it is not {waiting.name.title()}'s turn"
        )
    return positions[0]


def to_diagram(position: Record) -> Diagram:
    """The printed diagram of a record."""
    board = tuple(
        None
        if code == 0
        else Piece(Color((code - 1) // NUM_PIECE_KINDS), PieceKind((code - 1) % NUM_PIECE_KINDS))
        for code in position.board[Color.BLACK].tolist()
    )
    black, white = position.hands.tolist()
    return Diagram(
        board, (tuple(black), tuple(white)), Color(int(position.turn)), int(position.ply) + 1
    )

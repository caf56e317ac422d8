"""Legality in words: positions checked as they are set up, and the reason why a move is illegal.

Plain Python: it runs where positions come in from outside, and after a mistake.
"""

import numpy as np

from keisei.constants import NUM_ACTIONS, NUM_PIECE_KINDS
from keisei.errors import IllegalPositionError
from keisei.shogi.actions import PolicyOutputMapper
from keisei.shogi.attacks import Board, attacked_squares, king_is_attacked
from keisei.shogi.position import Record, new_positions, set_up, to_diagram
from keisei.shogi.types import (
    ROWS_NEEDED,
    SQUARE_NAMES,
    Color,
    Diagram,
    Move,
    Piece,
    PieceKind,
    in_promotion_zone,
    rows_ahead,
)


def from_diagram(diagram: Diagram) -> Record:
    """Set up a diagram as a position record, element 0 of a new array.

    Raises `IllegalPositionError` if no game can start from it.
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


def why_action_is_illegal(position: Record, action: int) -> str:
    """Describe why a policy index is illegal: its move, and the rule that this breaks."""
    if not 0 <= action < NUM_ACTIONS:
        return f"action {action} is out of range, 0 to {NUM_ACTIONS - 1}"
    move = PolicyOutputMapper().move(action, Color(int(position.turn)))
    return f"action {action}, move {move}: {why_illegal(position, move)}"


def why_illegal(position: Record, move: Move) -> str:
    """Name the rule that `move`, which is not legal in `position`, breaks."""
    diagram = to_diagram(position)
    if move.drop is not None:
        return _why_drop(diagram, move, move.drop)
    return _why_board_move(diagram, move)


def _why_drop(diagram: Diagram, move: Move, kind: PieceKind) -> str:
    name, target = kind.name.lower(), SQUARE_NAMES[move.to_square]
    if diagram.hands[diagram.turn][kind] == 0:
        return f"{_side(diagram.turn)} has no {name} in hand"
    if diagram.board[move.to_square] is not None:
        return f"{target} is occupied; pieces are dropped on empty squares"
    if rows_ahead(move.to_square, diagram.turn) < ROWS_NEEDED.get(kind, 0):
        return f"a {name} dropped on {target} could never move again"
    if kind is PieceKind.PAWN:
        file = diagram.board[move.to_square % 9 :: 9]
        if Piece(diagram.turn, PieceKind.PAWN) in file:
            return f"nifu: {_side(diagram.turn)} already has a pawn on file {target[0]}"
    board = list(diagram.board)
    board[move.to_square] = Piece(diagram.turn, kind)
    if _in_check(board, diagram.turn):
        return f"{_side(diagram.turn)} would still be in check"
    return f"uchifuzume: a pawn dropped on {target} would be mate"


def _why_board_move(diagram: Diagram, move: Move) -> str:
    assert move.from_square is not None
    origin, target = SQUARE_NAMES[move.from_square], SQUARE_NAMES[move.to_square]
    piece, taken = diagram.board[move.from_square], diagram.board[move.to_square]
    if piece is None:
        return f"there is no piece on {origin}"
    name = piece.kind.name.lower().replace("_", " ")
    if piece.color is not diagram.turn:
        return f"the {name} on {origin} is {_side(piece.color)}'s, and it is the other side's turn"
    if taken is not None and taken.color is diagram.turn:
        return f"{target} holds a piece of {_side(diagram.turn)}'s own"
    if move.to_square not in attacked_squares(diagram.board, move.from_square, piece):
        return f"a {name} cannot go from {origin} to {target}"
    if move.promote and not piece.kind.can_promote:
        return f"a {name} does not promote"
    in_zone = any(in_promotion_zone(sq, piece.color) for sq in (move.from_square, move.to_square))
    if move.promote and not in_zone:
        return f"neither {origin} nor {target} is in the promotion zone"
    rows_needed = ROWS_NEEDED.get(piece.kind, 0)
    if not move.promote and rows_ahead(move.to_square, piece.color) < rows_needed:
        return f"the {name} must promote on {target}: it could never move again"
    return _why_check(diagram, move, piece)


def _why_check(diagram: Diagram, move: Move, piece: Piece) -> str:
    assert move.from_square is not None
    if piece.kind is PieceKind.KING:
        return f"the king would be in check on {SQUARE_NAMES[move.to_square]}"
    if _in_check(list(diagram.board), diagram.turn):
        return f"{_side(diagram.turn)} would still be in check"
    return (
        f"the {piece.kind.name.lower().replace('_', ' ')} on {SQUARE_NAMES[move.from_square]} is "
        f"pinned: moving it would expose {_side(diagram.turn)}'s king"
    )


def _in_check(board: Board, color: Color) -> bool:
    king = Piece(color, PieceKind.KING)
    if king not in board:
        return False
    square = board.index(king)
    return any(
        square in attacked_squares(board, sq, piece)
        for sq, piece in enumerate(board)
        if piece is not None and piece.color is not color
    )


def _side(color: Color) -> str:
    return color.name.title()

"""Why a move is illegal, in words. Plain Python: it runs only when someone made a mistake."""

from keisei.constants import NUM_ACTIONS, NUM_SQUARES
from keisei.shogi.actions import PolicyOutputMapper
from keisei.shogi.bitboard import load, squares_of
from keisei.shogi.position import Record
from keisei.shogi.setup import to_diagram
from keisei.shogi.tables import (
    BISHOP,
    CLASS_OF_KIND,
    DRAGON,
    FILE_LINE,
    HORSE,
    KING,
    LANCE,
    LOWER,
    ROOK,
    STEPS,
    UPPER,
)
from keisei.shogi.types import (
    ROWS_NEEDED,
    SQUARE_NAMES,
    Color,
    Diagram,
    Move,
    Piece,
    PieceKind,
    rows_ahead,
)

_ZONE_ROWS = 3
_Board = list[Piece | None]


def why_action_is_illegal(position: Record, action: int) -> str:
    """The same for a policy index: a whole sentence, with the move that it stands for."""
    if not 0 <= action < NUM_ACTIONS:
        return f"action {action} is out of range, 0 to {NUM_ACTIONS - 1}"
    move = PolicyOutputMapper().move(action, Color(int(position.turn)))
    return f"action {action}, move {move}: {why_illegal(position, move)}"


def why_illegal(position: Record, move: Move) -> str:
    """The rule that `move`, which is not legal in `position`, breaks."""
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
    if move.to_square not in _attacks(diagram.board, move.from_square, piece):
        return f"a {name} cannot go from {origin} to {target}"
    if move.promote and not piece.kind.can_promote:
        return f"a {name} does not promote"
    in_zone = [
        rows_ahead(sq, piece.color) < _ZONE_ROWS for sq in (move.from_square, move.to_square)
    ]
    if move.promote and not any(in_zone):
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


def _attacks(board: tuple[Piece | None, ...] | _Board, sq: int, piece: Piece) -> set[int]:
    """Where a piece goes on a board, by walking; read off the same tables as the kernels."""
    turned = piece.color is Color.WHITE
    own_sq = NUM_SQUARES - 1 - sq if turned else sq
    piece_class = int(CLASS_OF_KIND[piece.kind])
    reached: set[int] = set()
    if piece_class not in (LANCE, BISHOP, ROOK, HORSE, DRAGON):
        reached.update(squares_of(load(STEPS[piece_class, own_sq])))
    if piece_class in (HORSE, DRAGON):
        reached.update(squares_of(load(STEPS[KING, own_sq])))
    rays = []
    if piece_class == LANCE:
        rays = [squares_of(load(LOWER[FILE_LINE, own_sq]))[::-1]]
    for line in {BISHOP: (2, 3), HORSE: (2, 3), ROOK: (0, 1), DRAGON: (0, 1)}.get(piece_class, ()):
        rays.append(squares_of(load(LOWER[line, own_sq]))[::-1])
        rays.append(squares_of(load(UPPER[line, own_sq])))
    for ray in rays:
        for target in ray:
            reached.add(target)
            if board[NUM_SQUARES - 1 - target if turned else target] is not None:
                break
    return {NUM_SQUARES - 1 - target if turned else target for target in reached}


def _in_check(board: _Board, color: Color) -> bool:
    king = Piece(color, PieceKind.KING)
    if king not in board:
        return False
    square = board.index(king)
    return any(
        piece is not None and piece.color is not color and square in _attacks(board, sq, piece)
        for sq, piece in enumerate(board)
    )


def _side(color: Color) -> str:
    return color.name.title()

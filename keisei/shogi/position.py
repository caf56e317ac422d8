"""Positions as kernels see them: a record with both players' views, playing and undoing moves.

A view is the board as one player sees it, that player moving up (to row 0): square `sq` of one view
is square ``80 - sq`` of the other. Moves are policy indices (`keisei.shogi.actions`) in the mover's
view.
"""

from typing import Any, Final, TypeAlias

import numpy as np
import numpy.typing as npt

from keisei.constants import (
    NUM_BOARD_ACTIONS,
    NUM_HAND_KINDS,
    NUM_PIECE_KINDS,
    NUM_SQUARES,
)
from keisei.shogi.bitboard import (
    Bitboard,
    bit,
    load,
    store,
)
from keisei.shogi.jit import int64, jit, jit_inner
from keisei.shogi.tables import (
    BOARD_KEYS,
    CLASS_OF_KIND,
    HAND_KEYS,
    KING,
    NO_SQUARE,
    NUM_CLASSES,
    PROMOTED_KIND,
    UNPROMOTED_KIND,
    WHITE_TO_MOVE_KEY,
)
from keisei.shogi.types import Color, Diagram, Piece, PieceKind

Record: TypeAlias = Any
"""One element of a record array (NumPy has no precise static type for it)."""

Records: TypeAlias = Any
"""A record array, ``np.recarray``: fields are attributes of the array and of each element."""

Array: TypeAlias = npt.NDArray[Any]

OWN: Final = 0
ENEMY: Final = 1
LAST_SQUARE: Final = NUM_SQUARES - 1
MOVES_PER_ORIGIN: Final = 2 * LAST_SQUARE
"""Policy indices of board moves from one square: every target, promoting or not."""

FIRST_ENEMY_CODE: Final = 1 + NUM_PIECE_KINDS
"""Piece codes in a view's board: 0 empty, 1 + kind for own pieces, 15 + kind for enemy pieces."""

POSITION: Final = np.dtype(
    [
        ("pieces", np.uint64, (2, 2, NUM_CLASSES, 2)),  # [view, side, class]: a bitboard
        ("occupied", np.uint64, (2, 2, 2)),  # [view, side]: a bitboard
        ("key", np.uint64),  # Zobrist key of board, hands and side to move
        ("board", np.uint8, (2, NUM_SQUARES)),  # [view, square]: piece code
        ("hands", np.uint8, (2, NUM_HAND_KINDS)),  # [colour, kind]: count
        ("kings", np.uint8, (2, 2)),  # [view, side]: square, NO_SQUARE without a king
        ("turn", np.uint8),  # side to move
        ("ply", np.uint16),  # plies played, counted from the start of the game (move number - 1)
        ("start_ply", np.uint16),  # `ply` of the position that the game started from
    ],
    align=True,
)


def new_positions(number: int) -> Records:
    """Allocate `number` positions, all zero and not yet set up."""
    return np.zeros(number, dtype=POSITION).view(np.recarray)


_HAND_KINDS: Final = np.uint64(NUM_HAND_KINDS)
_MOVES_PER_ORIGIN_UNSIGNED: Final = np.uint64(MOVES_PER_ORIGIN)


@jit
def decode(move: int) -> tuple[int, int, int]:
    """Split a policy index into (from, to, promote), or (81 + kind, to, 0) for a drop."""
    # Unsigned division by a constant is a multiplication; signed division has to round down.
    if move >= NUM_BOARD_ACTIONS:
        drop = np.uint64(move - NUM_BOARD_ACTIONS)
        to = int64(drop // _HAND_KINDS)
        return NUM_SQUARES + move - NUM_BOARD_ACTIONS - to * NUM_HAND_KINDS, to, 0
    origin = int64(np.uint64(move) // _MOVES_PER_ORIGIN_UNSIGNED)
    rest = move - origin * MOVES_PER_ORIGIN
    to = rest >> 1
    if to >= origin:
        to += 1
    return origin, to, rest & 1


@jit
def encode(origin: int, to: int, promote: int) -> int:
    """Return the policy index of a move, given as `decode` returns it."""
    if origin >= NUM_SQUARES:
        return NUM_BOARD_ACTIONS + to * NUM_HAND_KINDS + origin - NUM_SQUARES
    if to > origin:
        to -= 1
    return origin * MOVES_PER_ORIGIN + to * 2 + promote


@jit_inner
def _flip(position: Record, view: int, side: int, kind: int, sq: int) -> None:
    """Add a piece to the bitboards of one view, or remove it."""
    piece_class = CLASS_OF_KIND[kind]
    one = bit(sq)
    words = position.pieces[view, side, piece_class]
    store(words, load(words) ^ one)
    words = position.occupied[view, side]
    store(words, load(words) ^ one)


@jit_inner
def put_piece(position: Record, color: int, kind: int, sq: int) -> None:
    """Put a piece of `color` on the empty square `sq` of that colour's view."""
    turned = LAST_SQUARE - sq
    _flip(position, color, OWN, kind, sq)
    _flip(position, 1 - color, ENEMY, kind, turned)
    position.board[color, sq] = 1 + kind
    position.board[1 - color, turned] = FIRST_ENEMY_CODE + kind
    if kind == KING:
        position.kings[color, OWN] = sq
        position.kings[1 - color, ENEMY] = turned
    position.key ^= BOARD_KEYS[color, kind, turned if color else sq]


@jit_inner
def _take(position: Record, color: int, kind: int, sq: int) -> None:
    """Remove the piece of `color` on square `sq` of that colour's view."""
    turned = LAST_SQUARE - sq
    _flip(position, color, OWN, kind, sq)
    _flip(position, 1 - color, ENEMY, kind, turned)
    position.board[color, sq] = 0
    position.board[1 - color, turned] = 0
    position.key ^= BOARD_KEYS[color, kind, turned if color else sq]


@jit_inner
def _shift(position: Record, color: int, kind: int, origin: int, to: int) -> None:
    """Move a piece of `color`, without promotion, to an empty square of that colour's view.

    Equivalent to `_take` and `put_piece`, with half the memory traffic.
    """
    for side in range(2):
        view = color if side == OWN else 1 - color
        both = bit(origin) ^ bit(to)
        words = position.pieces[view, side, CLASS_OF_KIND[kind]]
        store(words, load(words) ^ both)
        words = position.occupied[view, side]
        store(words, load(words) ^ both)
        position.board[view, to] = position.board[view, origin]
        position.board[view, origin] = 0
        if kind == KING:
            position.kings[view, side] = to
        if view == 0:
            position.key ^= BOARD_KEYS[color, kind, origin] ^ BOARD_KEYS[color, kind, to]
        origin, to = LAST_SQUARE - origin, LAST_SQUARE - to


@jit_inner
def change_hand(position: Record, color: int, kind: int, change: int) -> None:
    """Add `change` pieces of a kind to a hand."""
    held = int64(position.hands[color, kind])
    position.hands[color, kind] = held + change
    position.key ^= HAND_KEYS[color, kind, held] ^ HAND_KEYS[color, kind, held + change]


@jit
def play(position: Record, move: int) -> int:
    """Play a legal move and return 1 + the captured kind (as it stood), or 0 without a capture."""
    mover = int64(position.turn)
    origin, to, promote = decode(move)
    captured = 0
    if origin >= NUM_SQUARES:
        kind = origin - NUM_SQUARES
        change_hand(position, mover, kind, -1)
    else:
        code = int64(position.board[mover, to])
        if code:
            captured = code - FIRST_ENEMY_CODE + 1
            _take(position, 1 - mover, captured - 1, LAST_SQUARE - to)
            change_hand(position, mover, UNPROMOTED_KIND[captured - 1], 1)
        kind = int64(position.board[mover, origin]) - 1
    if origin < NUM_SQUARES and not promote:
        _shift(position, mover, kind, origin, to)
    else:
        if promote:
            _take(position, mover, kind, origin)
            kind = PROMOTED_KIND[kind]
        put_piece(position, mover, kind, to)
    position.turn = 1 - mover
    position.ply += 1
    position.key ^= WHITE_TO_MOVE_KEY
    return captured


@jit
def undo(position: Record, move: int, captured: int) -> None:
    """Undo `move`, the last one played; `captured` is the value that `play` returned for it."""
    mover = 1 - int64(position.turn)
    origin, to, promote = decode(move)
    kind = int64(position.board[mover, to]) - 1
    if origin >= NUM_SQUARES:
        _take(position, mover, kind, to)
        change_hand(position, mover, kind, 1)
    elif promote:
        _take(position, mover, kind, to)
        put_piece(position, mover, UNPROMOTED_KIND[kind], origin)
    else:
        _shift(position, mover, kind, to, origin)
    if captured:
        change_hand(position, mover, UNPROMOTED_KIND[captured - 1], -1)
        put_piece(position, 1 - mover, captured - 1, LAST_SQUARE - to)
    position.turn = mover
    position.ply -= 1
    position.key ^= WHITE_TO_MOVE_KEY


@jit_inner
def own_pieces(position: Record, view: int, piece_class: int) -> Bitboard:
    """Bitboard of the player's own pieces of a class, in the player's view."""
    return load(position.pieces[view, OWN, piece_class])


@jit_inner
def enemy_pieces(position: Record, view: int, piece_class: int) -> Bitboard:
    """Bitboard of the enemy's pieces of a class, in the player's view."""
    return load(position.pieces[view, ENEMY, piece_class])


@jit_inner
def set_up_empty(position: Record, turn: int, ply: int) -> None:
    """Set up a zeroed record without any pieces."""
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
    set_up_empty(position, turn, ply)
    for sq in range(NUM_SQUARES):
        code = int64(board[sq])
        if code >= FIRST_ENEMY_CODE:
            put_piece(position, 1, code - FIRST_ENEMY_CODE, LAST_SQUARE - sq)
        elif code:
            put_piece(position, 0, code - 1, sq)
    for color in range(2):
        for kind in range(NUM_HAND_KINDS):
            change_hand(position, color, kind, int64(hands[color, kind]))


def to_diagram(position: Record) -> Diagram:
    """Return the diagram of a position."""
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

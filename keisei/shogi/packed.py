"""Positions packed into 112 bytes, as experience buffers, messages and checkpoints store them.

A packed position is in its mover's view and holds everything that observation planes are computed
from, so planes are written only when a network is about to read them. Of the game's history it
holds only the last two moves and the number of earlier occurrences.

The kernels copy by loops: a slice assignment compiles to the same code, but ten times slower.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from keisei.constants import (
    BOARD_SIZE,
    HAND_LIMITS,
    NUM_HAND_KINDS,
    NUM_PIECE_KINDS,
    NUM_SQUARES,
)
from keisei.errors import KeiseiError
from keisei.shogi.game import ShogiGame
from keisei.shogi.jit import int64, jit, jit_inner
from keisei.shogi.movegen import legal_moves
from keisei.shogi.position import (
    FIRST_ENEMY_CODE,
    LAST_SQUARE,
    Array,
    Record,
    Records,
    change_hand,
    decode,
    new_positions,
    put_piece,
    set_up_empty,
    to_diagram,
)
from keisei.shogi.tables import HAND_LIMIT_OF_KIND
from keisei.shogi.types import Diagram, PieceKind

NO_MOVE: Final = 255
"""In `PACKED.last_moves`: no such move, or the origin of a drop."""

PACKED: Final = np.dtype(
    {
        "names": [
            "board",  # uint8[81]: piece codes in the mover's view (0, 1 + own kind, 15 + enemy's)
            "hands",  # uint8[2, 7]: the mover's hand, the opponent's hand
            "turn",  # 0 when the mover is Black
            "in_check",  # 1 when the mover is in check
            "repetitions",  # number of earlier occurrences of the position in its game
            "last_moves",  # uint8[4]: from, to of the last move; from, to of the one before
            "ply",  # plies played
            "ply_limit",  # the ply at which the game is a draw
        ],
        "formats": [
            (np.uint8, (NUM_SQUARES,)),
            (np.uint8, (2, NUM_HAND_KINDS)),
            np.uint8,
            np.uint8,
            np.uint8,
            (np.uint8, (4,)),
            np.uint16,
            np.uint16,
        ],
        "offsets": [0, 81, 95, 96, 97, 98, 102, 104],
        "itemsize": 112,
    }
)


class DamagedPositionError(KeiseiError, ValueError):
    """Packed positions that are corrupt: no game can have produced them."""


def new_packed(number: int) -> Records:
    """Allocate `number` packed positions, all zero."""
    return np.zeros(number, dtype=PACKED).view(np.recarray)


@jit
def pack(
    position: Record,
    moves: Array,
    occurrences: int,
    in_check: bool,
    ply_limit: int,
    packed: Record,
) -> None:
    """Pack `position` into `packed`; ``moves`` (uint16) are the moves of its game so far."""
    view = int64(position.turn)
    for sq in range(NUM_SQUARES):
        packed.board[sq] = position.board[view, sq]
    for kind in range(NUM_HAND_KINDS):
        packed.hands[0, kind] = position.hands[view, kind]
        packed.hands[1, kind] = position.hands[1 - view, kind]
    packed.turn = view
    packed.in_check = in_check
    packed.repetitions = min(occurrences, 255)
    packed.ply = position.ply
    packed.ply_limit = ply_limit
    length = int64(position.ply) - int64(position.start_ply)
    for back in range(2):
        packed.last_moves[2 * back] = NO_MOVE
        packed.last_moves[2 * back + 1] = NO_MOVE
        if length > back:
            origin, to, _ = decode(int64(moves[length - 1 - back]))
            if back == 0:  # the opponent's move, in the opponent's view
                origin, to = LAST_SQUARE - origin, LAST_SQUARE - to
            if 0 <= origin < NUM_SQUARES:
                packed.last_moves[2 * back] = origin
            packed.last_moves[2 * back + 1] = to


@jit
def unpack(packed: Record, position: Record) -> None:
    """Set up a zeroed `position` from its packed form, as the start of a game without history."""
    turn = int64(packed.turn)
    set_up_empty(position, turn, int64(packed.ply))
    for sq in range(NUM_SQUARES):
        code = int64(packed.board[sq])
        if code >= FIRST_ENEMY_CODE:
            put_piece(position, 1 - turn, code - FIRST_ENEMY_CODE, LAST_SQUARE - sq)
        elif code:
            put_piece(position, turn, code - 1, sq)
    for kind in range(NUM_HAND_KINDS):
        change_hand(position, turn, kind, int64(packed.hands[0, kind]))
        change_hand(position, 1 - turn, kind, int64(packed.hands[1, kind]))


_COUNTER_BITS: Final = 8


def _counters(numbers: Sequence[int]) -> int:
    """Put a number for each kind (P L N S G B R K) into one word, eight bits each."""
    return sum(number << _COUNTER_BITS * kind for kind, number in enumerate(numbers))


_SET: Final = (*HAND_LIMITS, 2)
"""Pieces of each kind in a set."""

_COUNTER_OF_CODE: Final = np.array(
    [0]
    + [_counters(np.eye(len(_SET), dtype=int)[kind.unpromoted].tolist()) for kind in PieceKind] * 2
    + [0] * (256 - FIRST_ENEMY_CODE - NUM_PIECE_KINDS),
    dtype=np.uint64,
)
"""By piece code: one piece of its kind, in the word that counts all kinds."""

_UP_TO_OVERFLOW: Final = np.uint64(_counters([127 - number for number in _SET]))
"""What can be added to a set before the highest bit of a counter is set."""

_OVERFLOW: Final = np.uint64(_counters([128] * len(_SET)))


@jit
def find_invalid(packed: Records) -> int:
    """Return the index of the first invalid position of ``packed[B]``, or -1.

    Invalid are unknown piece codes, and more pieces of a kind than a set has. Kernels trust their
    input: they would read and write outside of their arrays.
    """
    for index in range(len(packed)):
        position = packed[index]
        worst = 0
        counters = np.uint64(0)
        for sq in range(NUM_SQUARES):
            code = int64(position.board[sq])
            worst = max(worst, code)
            counters += _COUNTER_OF_CODE[code]
        is_valid = worst < FIRST_ENEMY_CODE + NUM_PIECE_KINDS and position.turn <= 1
        for kind in range(NUM_HAND_KINDS):
            for side in range(2):
                held = int64(position.hands[side, kind])
                is_valid &= held <= HAND_LIMIT_OF_KIND[kind]
                counters += np.uint64(held) << np.uint64(_COUNTER_BITS * kind)
        # A board of 81 pieces of a kind and two full hands do not carry into the next counter.
        if not is_valid or (counters + _UP_TO_OVERFLOW) & _OVERFLOW:
            return index
    return -1


@jit
def mirror_packed(packed: Records, mirrored: Records) -> None:
    """Write the left-right mirror image of ``packed[B]`` into ``mirrored[B]`` (may be the same).

    The rules are symmetric: the legal moves of the mirror image are the mirror images of the legal
    moves (`actions.MIRRORED_ACTIONS`), and its outcome is the same.
    """
    for index in range(len(packed)):
        source, image = packed[index], mirrored[index]
        for row in range(BOARD_SIZE):
            for column in range(BOARD_SIZE // 2 + 1):
                left, right = row * BOARD_SIZE + column, row * BOARD_SIZE + BOARD_SIZE - 1 - column
                code = source.board[left]
                image.board[left] = source.board[right]
                image.board[right] = code
        for which in range(4):
            sq = int64(source.last_moves[which])
            if sq < NUM_SQUARES:
                row = sq // BOARD_SIZE
                sq = 2 * BOARD_SIZE * row + BOARD_SIZE - 1 - sq
            image.last_moves[which] = sq
        for kind in range(NUM_HAND_KINDS):
            image.hands[0, kind] = source.hands[0, kind]
            image.hands[1, kind] = source.hands[1, kind]
        image.turn = source.turn
        image.in_check = source.in_check
        image.repetitions = source.repetitions
        image.ply = source.ply
        image.ply_limit = source.ply_limit


@jit
def legal_from_packed(
    packed: Records, legal: Array, counts: Array, scratch: Records, start: int, stop: int
) -> None:
    """Write the legal actions of ``packed[B]`` into ``legal[B, 593]`` and ``counts[B]``.

    The order is that of the move generator, as when the position was played. ``scratch[2]`` are
    positions: the first is overwritten, the second is all zero.
    """
    for index in range(start, stop):
        scratch[0] = scratch[1]
        unpack(packed[index], scratch[0])
        number, _ = legal_moves(scratch[0], legal[index])
        counts[index] = number


@jit_inner
def scale_ply(packed: Record, ply_limit: int) -> None:
    """Count the plies of a position towards the ply limit of a network's training.

    The network has learned what a ply means below that limit, and that the last quarter of the way
    ends in a draw. A game with another limit enters that quarter only where its own end is as near.
    """
    left = max(int64(packed.ply_limit) - int64(packed.ply), 0)
    packed.ply = min(int64(packed.ply), ply_limit - min(ply_limit // 4, left))
    packed.ply_limit = ply_limit


@jit
def scale_plies(packed: Records, ply_limit: int) -> None:
    """Call `scale_ply` for all positions."""
    for index in range(len(packed)):
        scale_ply(packed[index], ply_limit)


def require_valid(packed: Records) -> None:
    """Raise `DamagedPositionError` for packed positions of a wrong dtype or with invalid codes."""
    if packed.dtype != PACKED:
        raise DamagedPositionError(f"packed positions have the dtype PACKED, not {packed.dtype}")
    index = int(find_invalid(packed))
    if index >= 0:
        raise DamagedPositionError(
            f"packed position {index} is damaged: invalid codes, or too many pieces"
        )


class Positions(NamedTuple):
    """``B`` positions and their legal moves: the input of a network's `predict`."""

    packed: Records
    """``[B]`` `PACKED`: the positions, each in its mover's view."""

    legal_actions: npt.NDArray[np.uint16]
    """``[B, >= M]``: in row `i` the first ``legal_counts[i]`` entries are the legal actions."""

    legal_counts: npt.NDArray[np.int32]
    """``[B]``: the number of legal actions; `M` is the largest of them."""

    def as_trained(self, ply_limit: int) -> "Positions":
        """Return the positions as a network knows them whose games had this ply limit; 0: any."""
        if not ply_limit or (self.packed.ply_limit == ply_limit).all():
            return self
        packed = self.packed.copy()
        scale_plies(packed, ply_limit)
        return self._replace(packed=packed)

    def take(self, rows: npt.NDArray[np.int64] | slice) -> "Positions":
        """Select positions by their indices."""
        return Positions(self.packed[rows], self.legal_actions[rows], self.legal_counts[rows])


def pack_game(game: ShogiGame) -> Records:
    """Pack the current position of a game, ``[1]``."""
    packed = new_packed(1)
    pack(
        game.position,
        game.actions,
        game.repetitions,
        game.in_check,
        game.ply_limit,
        packed[0],
    )
    return packed


def unpack_diagram(packed: Record) -> Diagram:
    """Return the diagram of a packed position."""
    one = new_packed(1)
    one[0] = packed
    require_valid(one)
    position = new_positions(1)[0]
    unpack(packed, position)
    return to_diagram(position)


WIDTH_STEP = 32
"""Legal lists are padded to multiples of this, so that compiled networks get few shapes."""


def padded_width(counts: npt.NDArray[np.int32], limit: int) -> int:
    """Length of the longest legal list, rounded up to `WIDTH_STEP`, at most `limit`."""
    return min(-(-int(counts.max()) // WIDTH_STEP) * WIDTH_STEP, limit)

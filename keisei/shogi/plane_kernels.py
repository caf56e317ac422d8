"""The functions that write observation planes from packed positions, ``[B]`` at a time.

Those that touch many squares are kernels; for the others NumPy is as fast.

Each writes ``planes[b, first + k, square]`` (float32, 0 to 1) of an array that is zero there.
"""

import numpy as np

from keisei.constants import HAND_LIMITS, NUM_HAND_KINDS, NUM_PIECE_KINDS, NUM_SQUARES
from keisei.shogi.jit import int64, jit, jit_inner
from keisei.shogi.position import Array, Records

_HAND_LIMITS = np.array(HAND_LIMITS, dtype=np.int64)
_OWN_HAND = 2 * NUM_PIECE_KINDS
_MOVER_IS_BLACK = _OWN_HAND + 2 * NUM_HAND_KINDS
_PLY = _MOVER_IS_BLACK + 1
_ZONE_SQUARES = 27
_SHOWN_REPETITIONS = 3


@jit
def to_uint8(planes: Array, out: Array) -> None:
    """Write ``planes`` (float32, 0 to 1) times 255 into ``out`` (uint8); both flat."""
    for index in range(len(planes)):
        out[index] = np.uint8(planes[index] * np.float32(255) + np.float32(0.5))


@jit
def to_bfloat16_bits(planes: Array, out: Array) -> None:
    """Write the bfloat16 bits of ``planes`` (float32 seen as uint32) into ``out`` (uint16)."""
    for index in range(len(planes)):
        bits = int64(planes[index])
        out[index] = bits + 0x7FFF + (bits >> 16 & 1) >> 16  # round to nearest even


@jit_inner
def _fill(planes: Array, b: int, plane: int, start: int, stop: int, value: float) -> None:
    """Set a range of squares of one plane (a loop compiles much faster than a slice)."""
    for sq in range(start, stop):
        planes[b, plane, sq] = value


@jit
def write_core46(packed: Records, planes: Array, first: int) -> None:
    """Pieces (28 planes), hands (14), mover is Black, ply / ply limit, two reserved."""
    for b in range(len(packed)):
        position = packed[b]
        for sq in range(NUM_SQUARES):
            code = int64(position.board[sq])
            if code:
                planes[b, first + code - 1, sq] = 1.0
        for side in range(2):
            for kind in range(NUM_HAND_KINDS):
                held = int64(position.hands[side, kind])
                if held:
                    plane = first + _OWN_HAND + side * NUM_HAND_KINDS + kind
                    _fill(planes, b, plane, 0, NUM_SQUARES, held / _HAND_LIMITS[kind])
        if position.turn == 0:
            _fill(planes, b, first + _MOVER_IS_BLACK, 0, NUM_SQUARES, 1.0)
        progress = min(int64(position.ply) / max(int64(position.ply_limit), 1), 1.0)
        _fill(planes, b, first + _PLY, 0, NUM_SQUARES, progress)


def write_check(packed: Records, planes: Array, first: int) -> None:
    """One plane: the mover is in check."""
    planes[:, first] = packed["in_check"][:, None] != 0


def write_repetition(packed: Records, planes: Array, first: int) -> None:
    """Three planes: this position has occurred once, twice, three times before."""
    occurrences = np.minimum(packed["repetitions"], _SHOWN_REPETITIONS)
    for number in range(1, _SHOWN_REPETITIONS + 1):
        planes[:, first + number - 1] = occurrences[:, None] == number


def write_prom_zone(packed: Records, planes: Array, first: int) -> None:
    """Two planes, always the same: where the mover and where the opponent promotes."""
    planes[:, first, :_ZONE_SQUARES] = 1.0
    planes[:, first + 1, NUM_SQUARES - _ZONE_SQUARES :] = 1.0


def write_last2ply(packed: Records, planes: Array, first: int) -> None:
    """Four planes: from and to of the last move, from and to of the one before."""
    squares = packed["last_moves"]
    rows, which = np.nonzero(squares < NUM_SQUARES)
    planes[rows, first + which, squares[rows, which]] = 1.0


@jit
def write_hand_onehot(packed: Records, planes: Array, first: int) -> None:
    """76 planes: for each hand and kind, whether at least 1, 2, 3 ... pieces are held."""
    for b in range(len(packed)):
        plane = first
        for side in range(2):
            for kind in range(NUM_HAND_KINDS):
                for _ in range(int64(packed[b].hands[side, kind])):
                    _fill(planes, b, plane, 0, NUM_SQUARES, 1.0)
                    plane += 1
                plane += _HAND_LIMITS[kind] - int64(packed[b].hands[side, kind])

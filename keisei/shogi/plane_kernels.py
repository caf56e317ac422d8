"""The kernels that write observation planes from packed positions, ``[B]`` at a time.

Each writes ``planes[b, first + k, square]`` of an array that is zero there. The array's type
decides how a value between 0 and 1 is stored (`level`).
"""

from typing import Any

import numpy as np
from numba import types
from numba.extending import overload

from keisei.constants import HAND_LIMITS, NUM_HAND_KINDS, NUM_PIECE_KINDS, NUM_SQUARES
from keisei.shogi.jit import jit
from keisei.shogi.position import Array, Records

_HAND_LIMITS = np.array(HAND_LIMITS, dtype=np.int64)
_OWN_HAND = 2 * NUM_PIECE_KINDS
_MOVER_IS_BLACK = _OWN_HAND + 2 * NUM_HAND_KINDS
_PLY = _MOVER_IS_BLACK + 1
_ZONE_SQUARES = 27
_SHOWN_REPETITIONS = 3


def level(value: float, planes: Array) -> Any:
    """`value` as an element of `planes`: itself, times 255, or the bits of its bfloat16."""
    if planes.dtype == np.uint8:
        return np.uint8(value * 255 + 0.5)
    if planes.dtype == np.uint16:
        bits = int(np.float32(value).view(np.uint32))
        return np.uint16(bits + 0x7FFF + (bits >> 16 & 1) >> 16)  # round to nearest even
    return np.float32(value)


@overload(level, strict=False)  # strict would compare annotations, which lambdas lack
def _compiled_level(value: Any, planes: Any) -> Any:
    if planes.dtype == types.uint8:
        return lambda value, planes: np.uint8(value * 255 + 0.5)
    if planes.dtype == types.uint16:

        def bfloat16_bits(value: float, planes: Array) -> Any:
            bits = np.int64(np.float32(value).view(np.uint32))
            return np.uint16(bits + 0x7FFF + (bits >> 16 & 1) >> 16)

        return bfloat16_bits
    return lambda value, planes: np.float32(value)


@jit
def _fill(planes: Array, b: int, plane: int, start: int, stop: int, value: Any) -> None:
    """Set a range of squares of one plane (a loop compiles much faster than a slice)."""
    for sq in range(start, stop):
        planes[b, plane, sq] = value


@jit
def write_core46(packed: Records, planes: Array, first: int) -> None:
    """Pieces (28 planes), hands (14), mover is Black, ply / ply limit, two reserved."""
    one = level(1.0, planes)
    for b in range(len(packed)):
        position = packed[b]
        for sq in range(NUM_SQUARES):
            code = np.int64(position.board[sq])
            if code:
                planes[b, first + code - 1, sq] = one
        for side in range(2):
            for kind in range(NUM_HAND_KINDS):
                held = np.int64(position.hands[side, kind])
                if held:
                    plane = first + _OWN_HAND + side * NUM_HAND_KINDS + kind
                    _fill(planes, b, plane, 0, NUM_SQUARES, level(held / _HAND_LIMITS[kind], planes))
        if position.turn == 0:
            _fill(planes, b, first + _MOVER_IS_BLACK, 0, NUM_SQUARES, one)
        progress = min(np.int64(position.ply) / max(np.int64(position.ply_limit), 1), 1.0)
        _fill(planes, b, first + _PLY, 0, NUM_SQUARES, level(progress, planes))


@jit
def write_check(packed: Records, planes: Array, first: int) -> None:
    """One plane: the mover is in check."""
    one = level(1.0, planes)
    for b in range(len(packed)):
        if packed[b].in_check:
            _fill(planes, b, first, 0, NUM_SQUARES, one)


@jit
def write_repetition(packed: Records, planes: Array, first: int) -> None:
    """Three planes: this position has occurred once, twice, three times before."""
    one = level(1.0, planes)
    for b in range(len(packed)):
        occurrences = min(np.int64(packed[b].repetitions), _SHOWN_REPETITIONS)
        if occurrences:
            _fill(planes, b, first + occurrences - 1, 0, NUM_SQUARES, one)


@jit
def write_prom_zone(packed: Records, planes: Array, first: int) -> None:
    """Two planes, always the same: where the mover and where the opponent promotes."""
    one = level(1.0, planes)
    for b in range(len(packed)):
        _fill(planes, b, first, 0, _ZONE_SQUARES, one)
        _fill(planes, b, first + 1, NUM_SQUARES - _ZONE_SQUARES, NUM_SQUARES, one)


@jit
def write_last2ply(packed: Records, planes: Array, first: int) -> None:
    """Four planes: from and to of the last move, from and to of the one before."""
    one = level(1.0, planes)
    for b in range(len(packed)):
        for which in range(4):
            sq = np.int64(packed[b].last_moves[which])
            if sq < NUM_SQUARES:
                planes[b, first + which, sq] = one


@jit
def write_hand_onehot(packed: Records, planes: Array, first: int) -> None:
    """76 planes: for each hand and kind, whether at least 1, 2, 3 ... pieces are held."""
    one = level(1.0, planes)
    for b in range(len(packed)):
        plane = first
        for side in range(2):
            for kind in range(NUM_HAND_KINDS):
                for _ in range(np.int64(packed[b].hands[side, kind])):
                    _fill(planes, b, plane, 0, NUM_SQUARES, one)
                    plane += 1
                plane += _HAND_LIMITS[kind] - np.int64(packed[b].hands[side, kind])

"""Planes of the feature ``attacks``: which squares each side attacks, how often and by what.

A convolution sees what a rook attacks only after as many layers as it has squares to cross; these
planes tell the first layer. They follow from the rules, in the mover's view.
"""

from typing import Final

from keisei.constants import NUM_PIECE_KINDS, NUM_SQUARES
from keisei.shogi.attack_maps import AttackMaps, write_attack_maps
from keisei.shogi.attacks import checks_and_pins
from keisei.shogi.bitboard import load, lowest, without_lowest
from keisei.shogi.jit import int64, jit
from keisei.shogi.packed import unpack
from keisei.shogi.position import LAST_SQUARE, OWN, Array, Records, new_positions
from keisei.shogi.tables import NO_SQUARE
from keisei.shogi.types import SYMBOLS

MAX_COUNTED_ATTACKS: Final = 3
"""Attacks on a square are told apart up to this number."""

_KINDS: Final = 2 * MAX_COUNTED_ATTACKS
_PINNED: Final = _KINDS + 2 * NUM_PIECE_KINDS

_SIDES: Final = ("own", "opponent")

# By kind, not by the ten ways to move: a promoted pawn attacks like a gold, but is exchanged for
# less. So the planes are in the order of the pieces in core46.
ATTACK_PLANES: Final = (
    *(
        f"attacked by {side} >= {number}"
        for side in _SIDES
        for number in range(1, MAX_COUNTED_ATTACKS + 1)
    ),
    *(f"attacked by {side} {symbol}" for side in _SIDES for symbol in SYMBOLS),
    *(f"{side} pinned" for side in _SIDES),
)
"""Names of the 36 planes."""


def write_attacks(packed: Records, planes: Array, first: int) -> None:
    """Write 36 planes: squares attacked at least 1, 2, 3 times, by each kind; pinned pieces."""
    fill_attack_planes(packed, planes, first, new_positions(2), AttackMaps.empty())


@jit
def fill_attack_planes(
    packed: Records, planes: Array, first: int, scratch: Records, maps: AttackMaps
) -> None:
    """Write the planes of ``packed[B]`` into ``planes[B, C, 81]`` (float32), from `first` on.

    ``scratch[2]`` are positions: the first is overwritten, the second is all zero. `maps` are
    overwritten.
    """
    for b in range(len(packed)):
        scratch[0] = scratch[1]
        position = scratch[0]
        unpack(packed[b], position)
        write_attack_maps(position, maps)
        for side in range(2):
            for sq in range(NUM_SQUARES):
                for number in range(min(int64(maps.counts[side, sq]), MAX_COUNTED_ATTACKS)):
                    planes[b, first + side * MAX_COUNTED_ATTACKS + number, sq] = 1.0
        for sq in range(NUM_SQUARES):
            code = int64(packed[b].board[sq])
            if code:
                attacked = load(maps.by_square[sq])
                while attacked:
                    planes[b, first + _KINDS + code - 1, lowest(attacked)] = 1.0
                    attacked = without_lowest(attacked)
        view = int64(position.turn)
        for side in range(2):
            player = view if side == OWN else 1 - view
            if position.kings[player, OWN] == NO_SQUARE:
                continue
            _, _, pinned = checks_and_pins(position, player)
            while pinned:
                sq = lowest(pinned)
                pinned = without_lowest(pinned)
                planes[b, first + _PINNED + side, sq if side == OWN else LAST_SQUARE - sq] = 1.0

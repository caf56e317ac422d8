"""Attack maps of a position: what each piece attacks, and how often each square is attacked.

All in the view of the side to move. `AttackMaps` is scratch memory that a kernel fills once for a
position and then reads for every piece and move.
"""

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from keisei.constants import NUM_SQUARES
from keisei.shogi.attacks import bishop_attacks, enemy_lance_attacks, lance_attacks, rook_attacks
from keisei.shogi.bitboard import (
    Bitboard,
    as_words,
    load,
    lowest,
    squares_of,
    store,
    without_lowest,
)
from keisei.shogi.jit import int64, jit_inner
from keisei.shogi.position import ENEMY, FIRST_ENEMY_CODE, LAST_SQUARE, OWN, Record
from keisei.shogi.tables import (
    BISHOP,
    CLASS_OF_KIND,
    DRAGON,
    HORSE,
    KING,
    LANCE,
    ROOK,
    STEPS,
)


def _steps_of_both_sides() -> npt.NDArray[np.uint64]:
    """Single steps of the mover's pieces (as `STEPS`) and of the enemy's, which move down."""
    down: list[int] = []
    for piece_class in range(KING + 1):
        for sq in range(NUM_SQUARES):
            steps = squares_of(load(STEPS[piece_class, LAST_SQUARE - sq]))
            down.append(sum(1 << (LAST_SQUARE - step) for step in steps))
        down.append(0)  # NO_SQUARE
    return np.stack([STEPS, as_words(down).reshape(STEPS.shape)])


SIDE_STEPS: Final = _steps_of_both_sides()
"""``[side, class, square]``: single steps of own and enemy pieces, in the mover's view."""


class AttackMaps(NamedTuple):
    """Attacks of all pieces of one position, in the mover's view."""

    by_square: npt.NDArray[np.uint64]
    """``[81]`` bitboards: squares that the piece on a square attacks; not set where none stands."""

    counts: npt.NDArray[np.uint8]
    """``[side, 81]``: number of pieces of a side that attack a square."""

    kinds: npt.NDArray[np.uint16]
    """``[side, 81]``: kinds of these pieces, as bits."""

    @classmethod
    def empty(cls) -> "AttackMaps":
        """Allocate maps for one position."""
        return cls(
            np.zeros((NUM_SQUARES, 2), dtype=np.uint64),
            np.zeros((2, NUM_SQUARES), dtype=np.uint8),
            np.zeros((2, NUM_SQUARES), dtype=np.uint16),
        )


@jit_inner
def attacks_from(piece_class: int, side: int, sq: int, occupied: Bitboard) -> Bitboard:
    """Squares that a piece of the mover (side 0) or of the enemy (side 1) attacks from `sq`."""
    if piece_class == LANCE:
        up = side == OWN
        attacked = lance_attacks(sq, occupied) if up else enemy_lance_attacks(sq, occupied)
    elif piece_class == BISHOP:
        attacked = bishop_attacks(sq, occupied)
    elif piece_class == ROOK:
        attacked = rook_attacks(sq, occupied)
    elif piece_class == HORSE:
        attacked = bishop_attacks(sq, occupied) | load(SIDE_STEPS[OWN, KING, sq])
    elif piece_class == DRAGON:
        attacked = rook_attacks(sq, occupied) | load(SIDE_STEPS[OWN, KING, sq])
    else:
        attacked = load(SIDE_STEPS[side, piece_class, sq])
    return attacked


@jit_inner
def write_attack_maps(position: Record, maps: AttackMaps) -> None:
    """Write the attack maps of `position`."""
    view = int64(position.turn)
    own = load(position.occupied[view, OWN])
    enemy = load(position.occupied[view, ENEMY])
    occupied = own | enemy
    for sq in range(NUM_SQUARES):
        maps.counts[OWN, sq] = 0
        maps.counts[ENEMY, sq] = 0
        maps.kinds[OWN, sq] = 0
        maps.kinds[ENEMY, sq] = 0
    for side in range(2):
        pieces = own if side == OWN else enemy
        first_code = 1 if side == OWN else FIRST_ENEMY_CODE
        while pieces:
            sq = lowest(pieces)
            pieces = without_lowest(pieces)
            kind = int64(position.board[view, sq]) - first_code
            attacked = attacks_from(CLASS_OF_KIND[kind], side, sq, occupied)
            store(maps.by_square[sq], attacked)
            kind_bit = 1 << kind
            while attacked:
                target = lowest(attacked)
                attacked = without_lowest(attacked)
                maps.counts[side, target] += 1
                maps.kinds[side, target] |= kind_bit

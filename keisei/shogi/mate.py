"""Mate in one: find the mating move of a position, if there is one.

Only moves that can give check are tried: those to a square from which the piece attacks the enemy's
king, and those off the line between an own slider and that king (discovered checks).
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from keisei.constants import MOVE_BUFFER, NUM_SQUARES
from keisei.shogi.attacks import bishop_attacks, lance_attacks, rook_attacks
from keisei.shogi.bitboard import (
    Bitboard,
    bit,
    highest,
    load,
    store,
)
from keisei.shogi.jit import int64, jit, jit_inner
from keisei.shogi.movegen import legal_moves
from keisei.shogi.position import (
    ENEMY,
    LAST_SQUARE,
    OWN,
    Array,
    Record,
    Records,
    decode,
    enemy_pieces,
    play,
    undo,
)
from keisei.shogi.tables import (
    BISHOP,
    CLASS_OF_KIND,
    DRAGON,
    FILE_LINE,
    HORSE,
    KING,
    LANCE,
    LOWER,
    NO_SQUARE,
    NUM_CLASSES,
    PROMOTED_KIND,
    ROOK,
    STEPS,
    UPPER,
)

NO_MATE = -1


class MateScratch(NamedTuple):
    """Scratch arrays of the search for mates, one row for each position."""

    replies: npt.NDArray[np.uint16]  # [B, 1024]
    checking: npt.NDArray[np.uint64]  # [B, classes, 2]

    @classmethod
    def of(cls, number: int) -> "MateScratch":
        """Allocate scratch arrays for `number` positions."""
        return cls(
            np.zeros((number, MOVE_BUFFER), dtype=np.uint16),
            np.zeros((number, NUM_CLASSES, 2), dtype=np.uint64),
        )


@jit
def find_mates(
    positions: Records,
    legal_actions: Array,
    legal_counts: Array,
    scratch: MateScratch,
    legal_indices: Array,
    start: int,
    stop: int,
) -> None:
    """Write the legal index of a mate in one, or -1, of each position into ``legal_indices[B]``.

    Searches positions `start` to `stop` of ``positions[B]``, ``legal_actions[B, M]`` and
    ``legal_counts[B]``, and leaves them unchanged.
    """
    for index in range(start, stop):
        legal_indices[index] = find_mate(
            positions[index],
            legal_actions[index],
            legal_counts[index],
            scratch.replies[index],
            scratch.checking[index],
        )


@jit_inner
def find_mate(position: Record, moves: Array, number: int, replies: Array, checking: Array) -> int:
    """Return the index in ``moves[:number]``, all legal, of the first move that mates, or -1.

    ``replies[1024]`` and ``checking[classes, 2]`` are overwritten.
    """
    mover = int64(position.turn)
    other = 1 - mover
    king = int64(position.kings[other, OWN])
    if king == NO_SQUARE:
        return NO_MATE
    write_checking_squares(position, other, checking)
    discovering = discovering_pieces(position, other)
    for index in range(number):
        move = int64(moves[index])
        is_direct, discovers = may_give_check(position, move, checking, discovering)
        if is_direct or discovers:
            captured = play(position, move)
            answers, _ = legal_moves(position, replies)
            undo(position, move, captured)
            if answers == 0:
                return index
    return NO_MATE


@jit_inner
def may_give_check(
    position: Record, move: int, checking: Array, discovering: Bitboard
) -> tuple[bool, bool]:
    """Return whether a move gives check itself, and whether it may discover one.

    It does not discover a check if it stays on the line between slider and king.

    Args:
        position: the position before the move.
        move: a legal move.
        checking: as `write_checking_squares` writes it for the opponent's king.
        discovering: `discovering_pieces` of the opponent's king.
    """
    origin, to, promote = decode(move)
    if origin >= NUM_SQUARES:
        kind = origin - NUM_SQUARES
        discovers = False
    else:
        kind = int64(position.board[int64(position.turn), origin]) - 1
        if promote:
            kind = PROMOTED_KIND[kind]
        discovers = bool(discovering & bit(LAST_SQUARE - origin))
    return bool(load(checking[CLASS_OF_KIND[kind]]) & bit(LAST_SQUARE - to)), discovers


@jit_inner
def write_checking_squares(position: Record, view: int, checking: Array) -> None:
    """Write, for each class, the squares from which an enemy piece attacks the player's king."""
    king = int64(position.kings[view, OWN])
    occupied = load(position.occupied[view, OWN]) | load(position.occupied[view, ENEMY])
    for piece_class in range(KING):  # attacks are mutual: from where an own piece would go
        store(checking[piece_class], load(STEPS[piece_class, king]))
    around = load(STEPS[KING, king])
    diagonal, straight = bishop_attacks(king, occupied), rook_attacks(king, occupied)
    store(checking[LANCE], lance_attacks(king, occupied))
    store(checking[BISHOP], diagonal)
    store(checking[ROOK], straight)
    store(checking[HORSE], diagonal | around)
    store(checking[DRAGON], straight | around)


@jit_inner
def discovering_pieces(position: Record, view: int) -> Bitboard:
    """Enemy pieces that stand alone between an enemy slider and the player's king."""
    king = int64(position.kings[view, OWN])
    enemy = load(position.occupied[view, ENEMY])
    occupied = load(position.occupied[view, OWN]) | enemy
    diagonal = enemy_pieces(position, view, BISHOP) | enemy_pieces(position, view, HORSE)
    straight = enemy_pieces(position, view, ROOK) | enemy_pieces(position, view, DRAGON)
    discovering = enemy & ~enemy
    for line in range(4):
        sliders = straight if line < 2 else diagonal
        on_ray = load(UPPER[line, king]) & occupied
        nearest = on_ray & -on_ray
        behind = on_ray ^ nearest
        if nearest & enemy and (behind & -behind) & sliders:
            discovering |= nearest
        if line == FILE_LINE:  # the enemy's lances attack from above only
            sliders |= enemy_pieces(position, view, LANCE)
        on_ray = load(LOWER[line, king]) & occupied
        if on_ray & sliders and on_ray & enemy:
            nearest = bit(highest(on_ray))
            behind = on_ray ^ nearest
            if nearest & enemy and behind and bit(highest(behind)) & sliders:
                discovering |= nearest
    return discovering

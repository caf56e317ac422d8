"""Legal move generation, without playing moves to test them.

Moves are policy indices (`actions`) in the mover's view. Every legal move is generated, including
the non-promoting ones that engines leave out.
"""

from keisei.constants import (
    NUM_BOARD_ACTIONS,
    NUM_HAND_KINDS,
    NUM_SQUARES,
    PROMOTION_ZONE_SQUARES,
)
from keisei.shogi.attacks import (
    bishop_attacks,
    checks_and_pins,
    enemy_attack_map,
    enemy_attackers,
    lance_attacks,
    line_through,
    rook_attacks,
)
from keisei.shogi.bitboard import (
    Bitboard,
    bit,
    load,
    lowest,
    without_lowest,
)
from keisei.shogi.jit import int64, jit, jit_inner
from keisei.shogi.position import (
    ENEMY,
    LAST_SQUARE,
    MOVES_PER_ORIGIN,
    OWN,
    Array,
    Record,
    own_pieces,
)
from keisei.shogi.tables import (
    ALL,
    BISHOP,
    DRAGON,
    GOLD,
    HORSE,
    KING,
    KNIGHT,
    LANCE,
    MASKS,
    NO_SQUARE,
    NOT_ROW_0,
    NOT_ROWS_0_1,
    PAWN,
    ROOK,
    STEPS,
    ZONE,
)


@jit
def legal_moves(position: Record, moves: Array) -> tuple[int, bool]:
    """Write all legal moves into ``moves`` (uint16); return (number of moves, mover is in check).

    ``moves`` has room for 593 moves, or for 1024 if a king may be missing.
    """
    view = int64(position.turn)
    king = int64(position.kings[view, OWN])
    own = load(position.occupied[view, OWN])
    occupied = own | load(position.occupied[view, ENEMY])
    checkers, between, pinned = checks_and_pins(position, view)
    number = 0
    if king != NO_SQUARE:
        unsafe = enemy_attack_map(position, view, occupied & ~bit(king))
        number = _add(moves, number, king, load(STEPS[KING, king]) & ~own & ~unsafe, 0)
    if without_lowest(checkers):  # double check: only the king can move
        return number, True
    in_check = bool(checkers)
    targets = checkers | between if in_check else load(MASKS[ALL])
    number = _board_moves(position, view, moves, number, occupied, targets & ~own, pinned)
    number = _drops(position, view, moves, number, occupied, targets & ~occupied)
    return number, in_check


@jit_inner
def _add(moves: Array, number: int, origin: int, targets: Bitboard, promote: int) -> int:
    """Append the moves from `origin` to each target."""
    first = origin * MOVES_PER_ORIGIN + promote
    while targets:
        to = lowest(targets)
        targets = without_lowest(targets)
        moves[number] = first + 2 * (to - (1 if to > origin else 0))
        number += 1
    return number


@jit_inner
def _add_promoting(
    moves: Array, number: int, origin: int, targets: Bitboard, may_stay: Bitboard
) -> int:
    """Append the moves of a piece that can promote; without promotion only to `may_stay`."""
    number = _add(moves, number, origin, targets & may_stay, 0)
    if origin >= PROMOTION_ZONE_SQUARES:
        targets &= load(MASKS[ZONE])
    return _add(moves, number, origin, targets, 1)


@jit_inner
def _board_moves(
    position: Record,
    view: int,
    moves: Array,
    number: int,
    occupied: Bitboard,
    targets: Bitboard,
    pinned: Bitboard,
) -> int:
    """Append the moves of all pieces except the king."""
    king = int64(position.kings[view, OWN])
    number = _pawn_moves(position, view, moves, number, targets, pinned)
    everywhere = load(MASKS[ALL])
    for piece_class in range(LANCE, DRAGON + 1):
        if piece_class == KING:
            continue
        pieces = own_pieces(position, view, piece_class)
        while pieces:
            origin = lowest(pieces)
            pieces = without_lowest(pieces)
            if piece_class == LANCE:
                reach = lance_attacks(origin, occupied)
            elif piece_class == BISHOP or piece_class == HORSE:
                reach = bishop_attacks(origin, occupied)
            elif piece_class == ROOK or piece_class == DRAGON:
                reach = rook_attacks(origin, occupied)
            else:
                reach = load(STEPS[piece_class, origin])
            if piece_class >= HORSE:
                reach |= load(STEPS[KING, origin])
            reach &= targets
            if bit(origin) & pinned:
                reach &= line_through(king, origin)
            if piece_class == GOLD or piece_class >= HORSE:
                number = _add(moves, number, origin, reach, 0)
            else:
                may_stay = everywhere
                if piece_class == LANCE:
                    may_stay = load(MASKS[NOT_ROW_0])
                elif piece_class == KNIGHT:
                    may_stay = load(MASKS[NOT_ROWS_0_1])
                number = _add_promoting(moves, number, origin, reach, may_stay)
    return number


@jit_inner
def _pawn_moves(
    position: Record, view: int, moves: Array, number: int, targets: Bitboard, pinned: Bitboard
) -> int:
    """Append the moves of all pawns at once: every target has its origin one row below."""
    king = int64(position.kings[view, OWN])
    pawns = own_pieces(position, view, PAWN)
    stuck = pawns & pinned
    while stuck:
        origin = lowest(stuck)
        stuck = without_lowest(stuck)
        if not (line_through(king, origin) & bit(origin - 9)):
            pawns ^= bit(origin)
    reach = pawns >> 9 & targets
    promotions = reach & load(MASKS[ZONE])
    reach &= load(MASKS[NOT_ROW_0])
    while reach:
        to = lowest(reach)
        reach = without_lowest(reach)
        moves[number] = (to + 9) * MOVES_PER_ORIGIN + 2 * to
        number += 1
    while promotions:
        to = lowest(promotions)
        promotions = without_lowest(promotions)
        moves[number] = (to + 9) * MOVES_PER_ORIGIN + 2 * to + 1
        number += 1
    return number


@jit_inner
def _drops(
    position: Record, view: int, moves: Array, number: int, occupied: Bitboard, empty: Bitboard
) -> int:
    """Append all drops onto the squares of `empty`."""
    for kind in range(NUM_HAND_KINDS):
        if position.hands[view, kind] == 0:
            continue
        targets = empty
        if kind == PAWN:
            targets = _pawn_drop_targets(position, view, occupied, empty)
        elif kind == LANCE:
            targets &= load(MASKS[NOT_ROW_0])
        elif kind == KNIGHT:
            targets &= load(MASKS[NOT_ROWS_0_1])
        while targets:
            to = lowest(targets)
            targets = without_lowest(targets)
            moves[number] = NUM_BOARD_ACTIONS + to * NUM_HAND_KINDS + kind
            number += 1
    return number


@jit_inner
def _pawn_drop_targets(
    position: Record, view: int, occupied: Bitboard, empty: Bitboard
) -> Bitboard:
    """Squares for a pawn drop: not on a file with a pawn (nifu), on row 0, or giving mate."""
    files = own_pieces(position, view, PAWN)
    files |= files >> 9 | files << 9
    files |= files >> 18 | files << 18
    files |= files >> 36 | files << 36
    files |= files >> 72 | files << 72
    targets = empty & ~files & load(MASKS[NOT_ROW_0])
    enemy_king = int64(position.kings[view, ENEMY])
    head = enemy_king + 9
    if head < NUM_SQUARES and targets & bit(head) and pawn_drop_mates(position, view, occupied):
        targets &= ~bit(head)
    return targets


@jit_inner
def pawn_drop_mates(position: Record, view: int, occupied: Bitboard) -> bool:
    """Whether a pawn dropped at the head of the enemy's king, an empty square, gives mate.

    Computed in the enemy's view: it is mate if the king cannot move and no piece can take the
    pawn.
    """
    other = 1 - view
    king = int64(position.kings[other, OWN])
    head = king - 9
    own = load(position.occupied[other, OWN])
    all_pieces = own | load(position.occupied[other, ENEMY]) | bit(head)
    unsafe = enemy_attack_map(position, other, all_pieces & ~bit(king))
    if load(STEPS[KING, king]) & ~own & ~unsafe:
        return False
    takers = enemy_attackers(position, view, LAST_SQUARE - head, occupied)
    if not takers:
        return True
    _, _, pinned = checks_and_pins(position, other)
    while takers:
        origin = LAST_SQUARE - lowest(takers)
        takers = without_lowest(takers)
        if not (bit(origin) & pinned) or line_through(king, origin) & bit(head):
            return False
    return True

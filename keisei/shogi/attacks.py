"""Attacks: sliding moves, the enemy's attack map, checks and pins, all in a player's view.

`attacked_squares` at the end is plain Python, for notations and error messages.
"""

from collections.abc import Sequence
from functools import cache

from keisei.shogi.bitboard import (
    Bitboard,
    bit,
    highest,
    load,
    lowest,
    squares_of,
    without_lowest,
)
from keisei.shogi.jit import int64, jit, jit_inner
from keisei.shogi.position import (
    ENEMY,
    OWN,
    Record,
    enemy_pieces,
)
from keisei.shogi.tables import (
    ALL,
    BISHOP,
    BISHOP_LINES,
    CLASS_OF_KIND,
    DRAGON,
    FILE_LINE,
    GOLD,
    HORSE,
    KING,
    KNIGHT,
    LANCE,
    LOWER,
    MASKS,
    NO_SQUARE,
    NOT_COLUMN_0,
    NOT_COLUMN_8,
    PAWN,
    ROOK,
    ROOK_LINES,
    SILVER,
    STEPS,
    UPPER,
)
from keisei.shogi.types import Piece, in_view_of


@jit_inner
def slide(line: int, sq: int, occupied: Bitboard) -> Bitboard:
    """Squares a slider reaches along one line, both ways, up to and including the first piece.

    Obstruction difference: twice the first obstacle above minus the last one below sets exactly
    the bits from the latter to the former.
    """
    lower, upper = load(LOWER[line, sq]), load(UPPER[line, sq])
    above = upper & occupied
    below = lower & occupied | bit(0)
    return (lower | upper) & (((above & -above) << 1) - bit(highest(below)))


@jit_inner
def bishop_attacks(sq: int, occupied: Bitboard) -> Bitboard:
    """Squares a bishop on `sq` attacks, up to and including the first piece on each diagonal."""
    return slide(2, sq, occupied) | slide(3, sq, occupied)


@jit_inner
def rook_attacks(sq: int, occupied: Bitboard) -> Bitboard:
    """Squares a rook on `sq` attacks, up to and including the first piece on each line."""
    return slide(0, sq, occupied) | slide(1, sq, occupied)


@jit_inner
def lance_attacks(sq: int, occupied: Bitboard) -> Bitboard:
    """Squares that the player's own lance on `sq` attacks (up the board)."""
    ray = load(LOWER[FILE_LINE, sq])
    return ray & -bit(highest(ray & occupied | bit(0)))


@jit_inner
def enemy_lance_attacks(sq: int, occupied: Bitboard) -> Bitboard:
    """Squares that the enemy's lance on `sq` attacks (down the board)."""
    ray = load(UPPER[FILE_LINE, sq])
    above = ray & occupied
    return ray & (above ^ (above - bit(0)))


@jit_inner
def enemy_attack_map(position: Record, view: int, occupied: Bitboard) -> Bitboard:
    """All squares that the enemy attacks if the squares of `occupied` hold pieces."""
    pawns = enemy_pieces(position, view, PAWN)
    silvers = enemy_pieces(position, view, SILVER)
    golds = enemy_pieces(position, view, GOLD)
    horses = enemy_pieces(position, view, HORSE)
    dragons = enemy_pieces(position, view, DRAGON)

    # All steps at once: first the straight ones, then those that end one file to either side.
    forward = (golds | silvers) << 9
    straight = pawns << 9 | forward | golds >> 9 | horses << 9 | horses >> 9
    sideways = (
        forward
        | enemy_pieces(position, view, KNIGHT) << 18
        | silvers >> 9
        | golds
        | horses
        | dragons << 9
        | dragons >> 9
    )
    attacked = (
        straight
        | (sideways & load(MASKS[NOT_COLUMN_0])) >> 1
        | (sideways & load(MASKS[NOT_COLUMN_8])) << 1
        | load(STEPS[KING, int64(position.kings[view, ENEMY])])
    )

    sliders = enemy_pieces(position, view, LANCE)
    while sliders:
        attacked |= enemy_lance_attacks(lowest(sliders), occupied)
        sliders = without_lowest(sliders)
    sliders = enemy_pieces(position, view, BISHOP) | horses
    while sliders:
        attacked |= bishop_attacks(lowest(sliders), occupied)
        sliders = without_lowest(sliders)
    sliders = enemy_pieces(position, view, ROOK) | dragons
    while sliders:
        attacked |= rook_attacks(lowest(sliders), occupied)
        sliders = without_lowest(sliders)
    return attacked & load(MASKS[ALL])


@jit_inner
def enemy_step_attackers(position: Record, view: int, sq: int) -> Bitboard:
    """The enemy's pieces, king apart, that attack `sq` by a single step or jump."""
    return (
        enemy_pieces(position, view, PAWN) & load(STEPS[PAWN, sq])
        | enemy_pieces(position, view, KNIGHT) & load(STEPS[KNIGHT, sq])
        | enemy_pieces(position, view, SILVER) & load(STEPS[SILVER, sq])
        | enemy_pieces(position, view, GOLD) & load(STEPS[GOLD, sq])
        | (enemy_pieces(position, view, HORSE) | enemy_pieces(position, view, DRAGON))
        & load(STEPS[KING, sq])
    )


@jit_inner
def enemy_attackers(position: Record, view: int, sq: int, occupied: Bitboard) -> Bitboard:
    """The enemy's pieces, king apart, that attack `sq`."""
    diagonal = enemy_pieces(position, view, BISHOP) | enemy_pieces(position, view, HORSE)
    straight = enemy_pieces(position, view, ROOK) | enemy_pieces(position, view, DRAGON)
    return (
        enemy_step_attackers(position, view, sq)
        | enemy_pieces(position, view, LANCE) & lance_attacks(sq, occupied)
        | diagonal & bishop_attacks(sq, occupied)
        | straight & rook_attacks(sq, occupied)
    )


@jit_inner
def checks_and_pins(position: Record, view: int) -> tuple[Bitboard, Bitboard, Bitboard]:
    """Threats to the player's king: (checking pieces, squares between, own pinned pieces)."""
    king = int64(position.kings[view, OWN])
    own = load(position.occupied[view, OWN])
    enemy = load(position.occupied[view, ENEMY])
    checkers = enemy_step_attackers(position, view, king)
    between = checkers & ~checkers
    pinned = between
    diagonal = enemy_pieces(position, view, BISHOP) | enemy_pieces(position, view, HORSE)
    straight = enemy_pieces(position, view, ROOK) | enemy_pieces(position, view, DRAGON)
    for line in range(4):
        sliders = straight if line < 2 else diagonal
        ray = load(UPPER[line, king])
        if ray & sliders:
            nearest = ray & enemy
            nearest = nearest & -nearest
            if nearest & sliders:
                gap = ray & (nearest - bit(0))
                blockers = gap & own
                if not blockers:
                    checkers |= nearest
                    between |= gap
                elif not without_lowest(blockers):
                    pinned |= blockers
        if line == FILE_LINE:  # the enemy's lances attack from above only
            sliders |= enemy_pieces(position, view, LANCE)
        ray = load(LOWER[line, king])
        if ray & sliders:
            nearest = bit(highest(ray & enemy))
            if nearest & sliders:
                gap = ray & -(nearest << 1)
                blockers = gap & own
                if not blockers:
                    checkers |= nearest
                    between |= gap
                elif not without_lowest(blockers):
                    pinned |= blockers
    return checkers, between, pinned


@jit_inner
def line_through(king: int, sq: int) -> Bitboard:
    """The whole line through a king and the piece on `sq` that is pinned to it."""
    piece = bit(sq)
    line = 0
    while line < 3 and not ((load(LOWER[line, king]) | load(UPPER[line, king])) & piece):
        line += 1
    return load(LOWER[line, king]) | load(UPPER[line, king])


@jit
def king_is_attacked(position: Record, view: int) -> bool:
    """Whether the player's king is attacked, regardless of the side to move."""
    king = int64(position.kings[view, OWN])
    if king == NO_SQUARE:
        return False
    occupied = load(position.occupied[view, OWN]) | load(position.occupied[view, ENEMY])
    attackers = enemy_attackers(position, view, king, occupied) | enemy_pieces(
        position, view, KING
    ) & load(STEPS[KING, king])
    return bool(attackers)


Board = Sequence[Piece | None]
"""81 entries by square (9a first, 1i last), as in `Diagram.board`."""


def attacked_squares(board: Board, sq: int, piece: Piece) -> set[int]:
    """Squares that a piece on `sq` attacks, up to and including the first piece on each line."""
    color = piece.color
    reached: set[int] = set()
    for ray in _rays(int(CLASS_OF_KIND[piece.kind]), in_view_of(color, sq)):
        for target_in_view in ray:
            target = in_view_of(color, target_in_view)
            reached.add(target)
            if board[target] is not None:
                break
    return reached


@cache
def _rays(piece_class: int, sq: int) -> tuple[tuple[int, ...], ...]:
    """Squares a piece passes in each direction on an empty board; a step is a ray of one square."""
    rays: list[list[int]] = []
    if piece_class in (HORSE, DRAGON):
        rays += [[step] for step in squares_of(load(STEPS[KING, sq]))]
    elif piece_class not in (LANCE, BISHOP, ROOK):
        rays += [[step] for step in squares_of(load(STEPS[piece_class, sq]))]
    if piece_class == LANCE:
        rays.append(squares_of(load(LOWER[FILE_LINE, sq]))[::-1])
    sliding = {BISHOP: BISHOP_LINES, HORSE: BISHOP_LINES, ROOK: ROOK_LINES, DRAGON: ROOK_LINES}
    for line in sliding.get(piece_class, ()):
        rays += [squares_of(load(LOWER[line, sq]))[::-1], squares_of(load(UPPER[line, sq]))]
    return tuple(tuple(ray) for ray in rays)

"""Ends of games: mate, repetition, perpetual check, declaration, ply limit.

The kernels take a position together with the history of its game: ``keys[length]`` and
``checks[length]`` are the Zobrist key and the check flag of the position after `length` plies.
"""

from enum import IntEnum
from typing import Final, NamedTuple

from keisei.constants import REPETITIONS_TO_END
from keisei.shogi.bitboard import count, load
from keisei.shogi.jit import int64, jit, jit_inner
from keisei.shogi.position import (
    OWN,
    Array,
    Record,
    own_pieces,
)
from keisei.shogi.tables import (
    BISHOP,
    DRAGON,
    HORSE,
    MASKS,
    ROOK,
    ZONE,
)
from keisei.shogi.types import Color


class Termination(IntEnum):
    """The reason why a game ended."""

    CHECKMATE = 1
    """The side to move is in check and has no legal move: it loses."""

    NO_LEGAL_MOVE = 2
    """The side to move is not in check and has no legal move: it loses as well."""

    REPETITION = 3
    """The same position for the fourth time: a draw."""

    PERPETUAL_CHECK = 4
    """Fourfold repetition in which one side gave check with every move: that side loses."""

    DECLARATION = 5
    """The side to move declared a win by entering king."""

    PLY_LIMIT = 6
    """The game reached the maximum number of plies: a draw."""

    ILLEGAL_MOVE = 7
    """A player tried an illegal move and lost, if the environment is set up that way."""

    @property
    def words(self) -> str:
        """The name for display: ``no legal move``, ``perpetual check`` ..."""
        return self.name.lower().replace("_", " ")


class Outcome(NamedTuple):
    """The result of a game that has ended."""

    termination: Termination
    """The reason why it ended."""

    winner: Color | None
    """The side that won; None for a draw."""


class DeclarationRule(IntEnum):
    """Rule by which a side may declare a win once its king has entered the enemy's camp."""

    OFF = 0
    """No declarations."""

    POINTS_24 = 24
    """31 points win (24 to 30 would be a draw, which no side has to declare)."""

    POINTS_27 = 27
    """28 points win for Black, 27 for White."""

    @classmethod
    def named(cls, name: str) -> "DeclarationRule":
        """Return the rule that settings call ``27``, ``24`` or ``off``."""
        return {"27": cls.POINTS_27, "24": cls.POINTS_24, "off": cls.OFF}[name]


NO_TERMINATION = 0
NO_WINNER = -1

# The members as plain integers, as kernels use them.
_CHECKMATE: Final = int(Termination.CHECKMATE)
_NO_LEGAL_MOVE: Final = int(Termination.NO_LEGAL_MOVE)
_REPETITION: Final = int(Termination.REPETITION)
_PERPETUAL_CHECK: Final = int(Termination.PERPETUAL_CHECK)
_DECLARATION: Final = int(Termination.DECLARATION)
_PLY_LIMIT: Final = int(Termination.PLY_LIMIT)
_OFF: Final = int(DeclarationRule.OFF)
_POINTS_24: Final = int(DeclarationRule.POINTS_24)

_POINTS_24_TO_WIN = 31
_POINTS_27_TO_WIN = 28
"""Points that Black needs; White, who moves second, needs one less."""

_PIECES_IN_ZONE = 10
_BIG_PIECE_EXTRA = 4
"""Bishops and rooks count 5 points: one as a piece, and four more."""


@jit
def declaration_points(position: Record) -> tuple[int, int]:
    """Return (points, pieces in the zone) of the side to move, without its king."""
    view = int64(position.turn)
    zone = load(MASKS[ZONE])
    in_zone = count(load(position.occupied[view, OWN]) & zone)
    if int64(position.kings[view, OWN]) < count(zone):
        in_zone -= 1
    big = (
        own_pieces(position, view, BISHOP)
        | own_pieces(position, view, ROOK)
        | own_pieces(position, view, HORSE)
        | own_pieces(position, view, DRAGON)
    )
    points = in_zone + _BIG_PIECE_EXTRA * count(big & zone)
    for kind in range(BISHOP):
        points += int64(position.hands[view, kind])
    for kind in range(BISHOP, ROOK + 1):
        points += (1 + _BIG_PIECE_EXTRA) * int64(position.hands[view, kind])
    return points, in_zone


@jit
def may_declare(position: Record, in_check: bool, rule: int) -> bool:
    """Whether the side to move may declare a win by `rule` (a `DeclarationRule`)."""
    view = int64(position.turn)
    # The king's square decides almost always: it is rarely in the zone.
    king_in_zone = int64(position.kings[view, OWN]) < count(load(MASKS[ZONE]))
    if rule == _OFF or in_check or not king_in_zone:
        return False
    points, in_zone = declaration_points(position)
    needed = _POINTS_24_TO_WIN if rule == _POINTS_24 else _POINTS_27_TO_WIN - view
    return in_zone >= _PIECES_IN_ZONE and points >= needed


@jit
def earlier_occurrences(keys: Array, length: int) -> int:
    """Number of times that the position after `length` plies occurred before in the game."""
    key = keys[length]
    occurrences = 0
    for index in range(length):  # no early exit: this way the loop is vectorised
        if keys[index] == key:
            occurrences += 1
    return occurrences


@jit_inner
def perpetual_checker(keys: Array, checks: Array, length: int, turn: int) -> int:
    """The side that gave check with every move since the position's first occurrence, or -1.

    If both sides did so, the result is -1 as well.
    """
    key = keys[length]
    first = 0
    while keys[first] != key:
        first += 1
    # checks[i]: the mover of ply i was in check, so the move before it gave check.
    by_opponent, by_mover = True, True
    for index in range(first + 1, length + 1):
        if not checks[index]:
            if (length - index) % 2 == 0:
                by_opponent = False
            else:
                by_mover = False
    if by_opponent == by_mover:
        return NO_WINNER
    return turn if by_mover else 1 - turn


@jit
def outcome_of(
    position: Record,
    keys: Array,
    checks: Array,
    number_of_moves: int,
    occurrences: int,
    ply_limit: int,
    declaration: int,
) -> tuple[int, int]:
    """Return (termination, winner) of a position; (0, -1) while the game is not over.

    `number_of_moves` is the number of legal moves, `occurrences` the result of
    `earlier_occurrences`. Mate comes first, so that a mate on the last allowed ply is a mate; a
    declaration would be one more ply, so the limit comes before it.
    """
    turn = int64(position.turn)
    length = int64(position.ply) - int64(position.start_ply)
    in_check = bool(checks[length])
    if number_of_moves == 0:
        return (_CHECKMATE if in_check else _NO_LEGAL_MOVE), 1 - turn
    if occurrences >= REPETITIONS_TO_END - 1:
        checker = perpetual_checker(keys, checks, length, turn)
        if checker == NO_WINNER:
            return _REPETITION, NO_WINNER
        return _PERPETUAL_CHECK, 1 - checker
    if int64(position.ply) >= ply_limit:
        return _PLY_LIMIT, NO_WINNER
    if may_declare(position, in_check, declaration):
        return _DECLARATION, turn
    return NO_TERMINATION, NO_WINNER


def as_outcome(termination: int, winner: int) -> Outcome | None:
    """Convert the integers of `outcome_of` to an `Outcome`; None if the game is not over."""
    if termination == NO_TERMINATION:
        return None
    return Outcome(Termination(termination), None if winner == NO_WINNER else Color(winner))

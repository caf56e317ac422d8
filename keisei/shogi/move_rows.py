"""Kernels that write the rows of each legal move. `row_groups` says what each group means."""

from typing import Final

from keisei.constants import BOARD_SIZE, NUM_PIECE_KINDS, NUM_SQUARES
from keisei.shogi.attack_maps import AttackMaps, attacks_from
from keisei.shogi.attacks import line_through
from keisei.shogi.bitboard import Bitboard, bit, load, lowest, without_lowest
from keisei.shogi.jit import int64, jit_inner
from keisei.shogi.mate import discovering_pieces, write_checking_squares
from keisei.shogi.position import (
    ENEMY,
    FIRST_ENEMY_CODE,
    LAST_SQUARE,
    OWN,
    Array,
    Record,
    decode,
)
from keisei.shogi.position_rows import (
    FIRST_DROP_CODE,
    NO_THREAT,
    PROMOTION_CODES,
    MateThreat,
)
from keisei.shogi.row_groups import FAR_SIZE, MAX_COUNTED
from keisei.shogi.tables import CLASS_OF_KIND, KING, NO_SQUARE, PROMOTED_KIND

# Groups in the order of the registry.
(
    TARGET,
    ORIGIN,
    CAPTURE,
    LEAVING,
    TO_ENEMY_KING,
    TO_OWN_KING,
    GIVES_CHECK,
    RECAPTURE,
    NEW_THREAT,
    DEFENDS,
    ABANDONS,
    EVASION,
    EXCHANGE,
    ESCAPE,
    MATE_DEFENCE,
) = range(15)

MAX_ROWS_PER_MOVE: Final = 64
"""More rows than a move can have, those of plug-ins apart.

At most twelve groups have one row; 14 kinds can attack the target, and 14 the origin; a piece
attacks at most eight others from either square.
"""

KING_MOVES, CAPTURES, OCCUPIES, GUARDS, CHECKS, NOTHING = range(6)


@jit_inner
def write_move_rows(
    position: Record,
    packed: Record,
    legal: Array,
    count: int,
    first: Array,
    maps: AttackMaps,
    threat: MateThreat,
    plugins: Array,
    rows: Array,
    ends: Array,
) -> None:
    """Write the rows of ``legal[:count]`` into ``rows``, one move after the other.

    Args:
        position: the position.
        packed: its packed form.
        legal: its legal moves.
        count: their number.
        first: ``[groups]``, the first row of each group, -1 if it is left out.
        maps: the attack maps of the position.
        threat: the opponent's threat of mate in one; its scratch is overwritten.
        plugins: ``[>= count, K]``, rows of plug-ins that each move has as well, -1 for none.
        rows: gets the rows; has room for `MAX_ROWS_PER_MOVE` and ``K`` more for each move.
        ends: ``[count]``, gets the place behind the last row of each move.
    """
    view = int64(position.turn)
    board = position.board[view]
    own, enemy = load(position.occupied[view, OWN]), load(position.occupied[view, ENEMY])
    occupied = own | enemy
    own_king, enemy_king = int64(position.kings[view, OWN]), int64(position.kings[view, ENEMY])
    last_target = int64(packed.last_moves[1])
    write_checking_squares(position, 1 - view, threat.checking)
    discovering = discovering_pieces(position, 1 - view)
    hanging, lonely = _loose_pieces(own, maps)
    at = 0
    for index in range(count):
        origin, to, promote = decode(int64(legal[index]))
        captured = 0
        attackers = min(int64(maps.counts[ENEMY, to]), MAX_COUNTED)
        attacked = 1 if attackers else 0
        is_drop = origin >= NUM_SQUARES
        if is_drop:
            kind = origin - NUM_SQUARES
            kind_after = kind
            code = FIRST_DROP_CODE + kind
            protected = 1 if maps.counts[OWN, to] else 0
            discovers = False
            attacks = attacks_from(CLASS_OF_KIND[kind], OWN, to, occupied)
            attacks_before = own & ~own
        else:
            kind = int64(board[origin]) - 1
            kind_after, code = kind, kind
            if promote:
                kind_after = PROMOTED_KIND[kind]
                code = PROMOTION_CODES[kind]
            # The moving piece is among those that attack the target; x-rays are not counted. (A
            # pawn attacks the square that it moves to, like every piece of Shogi.)
            protected = 1 if maps.counts[OWN, to] > 1 else 0
            if board[to]:
                captured = int64(board[to]) - FIRST_ENEMY_CODE + 1
            discovers = bool(discovering & bit(LAST_SQUARE - origin))
            if discovers:  # unless it stays on the line, as a pawn before a lance does
                discovers = bool(bit(to) & ~line_through(enemy_king, origin))
            occupied_after = (occupied & ~bit(origin)) | bit(to)
            attacks = attacks_from(CLASS_OF_KIND[kind_after], OWN, to, occupied_after)
            attacks_before = load(maps.by_square[origin])
        if first[TARGET] >= 0:
            rows[at] = first[TARGET] + code * NUM_SQUARES + to
            at += 1
        if first[CAPTURE] >= 0:
            capture = code * (NUM_PIECE_KINDS + 1) + captured
            rows[at] = first[CAPTURE] + (capture * 3 + attackers) * 2 + protected
            at += 1
        if first[TO_ENEMY_KING] >= 0 and enemy_king != NO_SQUARE:
            rows[at] = first[TO_ENEMY_KING] + _relative(code, to, enemy_king)
            at += 1
        if first[TO_OWN_KING] >= 0 and own_king != NO_SQUARE:
            rows[at] = first[TO_OWN_KING] + _relative(code, to, own_king)
            at += 1
        if not is_drop:
            at = _origin_rows(first, maps, kind, origin, attacked, rows, at)
        if first[EXCHANGE] >= 0 and attacked:
            kinds = int64(maps.kinds[ENEMY, to])
            for attacker in range(NUM_PIECE_KINDS):
                if kinds >> attacker & 1:
                    exchange = code * NUM_PIECE_KINDS + attacker
                    rows[at] = first[EXCHANGE] + exchange * 2 + protected
                    at += 1
        is_direct = bool(load(threat.checking[CLASS_OF_KIND[kind_after]]) & bit(LAST_SQUARE - to))
        gives_check = is_direct or discovers
        if first[GIVES_CHECK] >= 0 and gives_check:
            safety = (code * 2 + attacked) * 2 + protected
            rows[at] = first[GIVES_CHECK] + safety * 2 + (1 if is_direct else 0)
            at += 1
        if first[RECAPTURE] >= 0 and to == last_target:
            rows[at] = first[RECAPTURE] + code
            at += 1
        if first[EVASION] >= 0 and packed.in_check:
            how = 0 if kind == KING else (1 if captured else (3 if is_drop else 2))
            rows[at] = first[EVASION] + how * 2 + attacked
            at += 1
        if first[MATE_DEFENCE] >= 0 and threat.found[0] != NO_THREAT:
            how = _defence(threat, kind, origin, to, gives_check, attacks)
            rows[at] = first[MATE_DEFENCE] + how * 2 + attacked
            at += 1
        safe = 1 if not attacked or protected else 0
        if first[NEW_THREAT] >= 0:
            victims = attacks & enemy & ~attacks_before
            while victims:
                victim = lowest(victims)
                victims = without_lowest(victims)
                pair = kind_after * NUM_PIECE_KINDS + int64(board[victim]) - FIRST_ENEMY_CODE
                is_protected = 1 if maps.counts[ENEMY, victim] else 0
                rows[at] = first[NEW_THREAT] + (pair * 2 + is_protected) * 2 + safe
                at += 1
        if first[DEFENDS] >= 0:
            friends = attacks & hanging
            if not is_drop:
                friends &= ~bit(origin)
            while friends:
                friend = lowest(friends)
                friends = without_lowest(friends)
                rows[at] = first[DEFENDS] + (int64(board[friend]) - 1) * 2 + safe
                at += 1
        if first[ABANDONS] >= 0:
            friends = attacks_before & lonely & ~attacks
            while friends:
                friend = lowest(friends)
                friends = without_lowest(friends)
                rows[at] = first[ABANDONS] + int64(board[friend]) - 1
                at += 1
        for plugin in range(plugins.shape[1]):
            if plugins[index, plugin] >= 0:
                rows[at] = plugins[index, plugin]
                at += 1
        ends[index] = at


@jit_inner
def _loose_pieces(own: Bitboard, maps: AttackMaps) -> tuple[Bitboard, Bitboard]:
    """Attacked own pieces: those without protection, and those that a single piece protects."""
    hanging = own & ~own
    lonely = hanging
    while own:
        sq = lowest(own)
        own = without_lowest(own)
        if maps.counts[ENEMY, sq]:
            protectors = int64(maps.counts[OWN, sq])
            if protectors == 0:
                hanging |= bit(sq)
            elif protectors == 1:
                lonely |= bit(sq)
    return hanging, lonely


@jit_inner
def _relative(code: int, to: int, king: int) -> int:
    """Row of a move's target relative to a king, within its group."""
    row = to // BOARD_SIZE - king // BOARD_SIZE + BOARD_SIZE - 1
    column = to % BOARD_SIZE - king % BOARD_SIZE + BOARD_SIZE - 1
    return (code * FAR_SIZE + row) * FAR_SIZE + column


@jit_inner
def _origin_rows(
    first: Array, maps: AttackMaps, kind: int, origin: int, attacked: int, rows: Array, at: int
) -> int:
    """Write the groups about the square that a piece leaves."""
    if first[ORIGIN] >= 0:
        rows[at] = first[ORIGIN] + kind * NUM_SQUARES + origin
        at += 1
    attackers = min(int64(maps.counts[ENEMY, origin]), MAX_COUNTED)
    protected = 1 if maps.counts[OWN, origin] else 0
    if first[LEAVING] >= 0:
        leaving = (kind * 3 + attackers) * 2 + protected
        rows[at] = first[LEAVING] + leaving * 2 + attacked
        at += 1
    if first[ESCAPE] >= 0 and attackers:
        kinds = int64(maps.kinds[ENEMY, origin])
        for attacker in range(NUM_PIECE_KINDS):
            if kinds >> attacker & 1:
                pair = kind * NUM_PIECE_KINDS + attacker
                rows[at] = first[ESCAPE] + pair * 2 + protected
                at += 1
    return at


@jit_inner
def _defence(
    threat: MateThreat, kind: int, origin: int, to: int, gives_check: bool, attacks: Bitboard
) -> int:
    """How a move answers the threat of mate in one."""
    if kind == KING and origin < NUM_SQUARES:
        return KING_MOVES
    if to == threat.found[1]:
        return CAPTURES
    if to == threat.found[2]:
        return OCCUPIES
    if attacks & bit(threat.found[2]):
        return GUARDS
    return CHECKS if gives_check else NOTHING

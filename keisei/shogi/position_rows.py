"""Kernels that write the rows of a position. `row_groups` says what each group means."""

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from keisei.constants import (
    BOARD_SIZE,
    MOVE_BUFFER,
    NUM_HAND_KINDS,
    NUM_PIECE_KINDS,
    NUM_SQUARES,
)
from keisei.shogi.attack_maps import AttackMaps, write_attack_maps
from keisei.shogi.attacks import checks_and_pins
from keisei.shogi.bitboard import load, lowest, without_lowest
from keisei.shogi.jit import int64, jit_inner
from keisei.shogi.mate import find_mate
from keisei.shogi.movegen import legal_moves
from keisei.shogi.position import (
    ENEMY,
    FIRST_ENEMY_CODE,
    LAST_SQUARE,
    OWN,
    Array,
    Record,
    decode,
)
from keisei.shogi.row_groups import (
    HAND_STEPS,
    MAX_COUNTED,
    NEAR,
    NEAR_SIZE,
    NEIGHBOURS,
    PLY_STEPS,
)
from keisei.shogi.tables import NO_SQUARE, NUM_CLASSES

# Groups in the order of the registry.
(
    PIECES,
    THREATS,
    OWN_KING,
    ENEMY_KING,
    KING_ZONE,
    KING_ESCAPES,
    HANDS,
    PINS,
    MATE_THREAT,
    CHECK,
    TURN,
    REPETITION,
    PLY,
) = range(13)

MAX_POSITION_ROWS: Final = 512
"""More rows than a position can have.

Each of 40 pieces has a status, at most eight victims and two places near kings, which makes 440;
there are 16 squares beside kings, at most 16 pins, and 7 other rows. A piece in hand has one row.
"""

PROMOTION_CODES: Final = np.array([14, 15, 16, 17, -1, 18, 19], dtype=np.int64)
"""Move code of a promotion, by the kind that promotes."""

FIRST_DROP_CODE: Final = 20
NO_THREAT: Final = -1


def _neighbour_squares() -> npt.NDArray[np.int64]:
    squares = np.full((NUM_SQUARES + 1, len(NEIGHBOURS)), NO_SQUARE, dtype=np.int64)
    for sq in range(NUM_SQUARES):
        for number, (rows, columns) in enumerate(NEIGHBOURS):
            row, column = sq // BOARD_SIZE + rows, sq % BOARD_SIZE + columns
            if 0 <= row < BOARD_SIZE and 0 <= column < BOARD_SIZE:
                squares[sq, number] = row * BOARD_SIZE + column
    return squares


NEIGHBOUR_SQUARES: Final = _neighbour_squares()
"""``[square, neighbour]``: the eight squares around a square, `NO_SQUARE` beyond the edge."""


class MateThreat(NamedTuple):
    """Scratch arrays of the search for a threat of mate in one, and its result."""

    moves: npt.NDArray[np.uint16]  # [1024]
    replies: npt.NDArray[np.uint16]  # [1024]
    checking: npt.NDArray[np.uint64]  # [classes] bitboards
    found: npt.NDArray[np.int64]  # code, origin (NO_SQUARE: a drop), target; in the mover's view

    @classmethod
    def empty(cls) -> "MateThreat":
        """Allocate the arrays."""
        return cls(
            np.zeros(MOVE_BUFFER, dtype=np.uint16),
            np.zeros(MOVE_BUFFER, dtype=np.uint16),
            np.zeros((NUM_CLASSES, 2), dtype=np.uint64),
            np.zeros(3, dtype=np.int64),
        )


@jit_inner
def find_mate_threat(position: Record, in_check: bool, threat: MateThreat) -> None:
    """Find the move by which the opponent would mate if the mover passed; a check is no threat."""
    threat.found[0] = NO_THREAT
    if in_check:
        return
    mover = int64(position.turn)
    position.turn = 1 - mover
    number, _ = legal_moves(position, threat.moves)
    index = find_mate(position, threat.moves, number, threat.replies, threat.checking)
    if index >= 0:
        origin, to, promote = decode(int64(threat.moves[index]))
        if origin >= NUM_SQUARES:
            threat.found[0] = FIRST_DROP_CODE + origin - NUM_SQUARES
            threat.found[1] = NO_SQUARE
        else:
            kind = int64(position.board[1 - mover, origin]) - 1
            threat.found[0] = PROMOTION_CODES[kind] if promote else kind
            threat.found[1] = LAST_SQUARE - origin
        threat.found[2] = LAST_SQUARE - to
    position.turn = mover


@jit_inner
def write_position_rows(
    position: Record,
    packed: Record,
    first: Array,
    maps: AttackMaps,
    threat: MateThreat,
    rows: Array,
) -> int:
    """Write the rows of a position into ``rows`` (uint16) and return their number.

    Args:
        position: the position; the same as `packed`.
        packed: its packed form, with what is known of its game.
        first: ``[groups]``, the first row of each group, -1 if it is left out.
        maps: overwritten by the attack maps of the position, which the rows of moves need too.
        threat: overwritten by the opponent's threat of mate, if rows need it.
        rows: has room for `MAX_POSITION_ROWS`.
    """
    write_attack_maps(position, maps)
    number = _piece_rows(position, first, maps, rows)
    if first[KING_ZONE] >= 0:
        number = _king_zone_rows(position, first[KING_ZONE], maps, rows, number)
    if first[KING_ESCAPES] >= 0:
        number = _king_escape_rows(position, first[KING_ESCAPES], maps, rows, number)
    if first[HANDS] >= 0:
        for side in range(2):
            for kind in range(NUM_HAND_KINDS):
                start = first[HANDS] + (side * NUM_HAND_KINDS + kind) * HAND_STEPS
                for held in range(int64(packed.hands[side, kind])):
                    rows[number] = start + held
                    number += 1
    if first[PINS] >= 0:
        number = _pin_rows(position, first[PINS], rows, number)
    if first[MATE_THREAT] >= 0 and threat.found[0] != NO_THREAT:
        rows[number] = first[MATE_THREAT] + threat.found[0]
        number += 1
    if first[CHECK] >= 0 and packed.in_check:
        rows[number] = first[CHECK]
        number += 1
    if first[TURN] >= 0:
        rows[number] = first[TURN] + int64(packed.turn)
        number += 1
    if first[REPETITION] >= 0 and packed.repetitions > 0:
        rows[number] = first[REPETITION] + min(int64(packed.repetitions), 3) - 1
        number += 1
    if first[PLY] >= 0:
        part = int64(packed.ply) * PLY_STEPS // max(int64(packed.ply_limit), 1)
        rows[number] = first[PLY] + min(part, PLY_STEPS - 1)
        number += 1
    return number


@jit_inner
def _piece_rows(position: Record, first: Array, maps: AttackMaps, rows: Array) -> int:
    """Write the groups that have rows for each piece on the board."""
    view = int64(position.turn)
    own_king, enemy_king = int64(position.kings[view, OWN]), int64(position.kings[view, ENEMY])
    number = 0
    for side in range(2):
        first_code = 1 if side == OWN else FIRST_ENEMY_CODE
        enemy_code = FIRST_ENEMY_CODE if side == OWN else 1
        enemies = load(position.occupied[view, 1 - side])
        pieces = load(position.occupied[view, side])
        while pieces:
            sq = lowest(pieces)
            pieces = without_lowest(pieces)
            kind = int64(position.board[view, sq]) - first_code
            piece = side * NUM_PIECE_KINDS + kind
            if first[PIECES] >= 0:
                attacked = 1 if maps.counts[1 - side, sq] else 0
                protected = 1 if maps.counts[side, sq] else 0
                rows[number] = (
                    first[PIECES] + (piece * NUM_SQUARES + sq) * 4 + attacked * 2 + protected
                )
                number += 1
            if first[THREATS] >= 0:
                victims = load(maps.by_square[sq]) & enemies
                while victims:
                    victim = lowest(victims)
                    victims = without_lowest(victims)
                    victim_kind = int64(position.board[view, victim]) - enemy_code
                    protected = 1 if maps.counts[1 - side, victim] else 0
                    rows[number] = (
                        first[THREATS] + (piece * NUM_PIECE_KINDS + victim_kind) * 2 + protected
                    )
                    number += 1
            if first[OWN_KING] >= 0:
                number = _near_king_row(first[OWN_KING], piece, sq, own_king, rows, number)
            if first[ENEMY_KING] >= 0:
                number = _near_king_row(first[ENEMY_KING], piece, sq, enemy_king, rows, number)
    return number


@jit_inner
def _near_king_row(first: int, piece: int, sq: int, king: int, rows: Array, number: int) -> int:
    row = sq // BOARD_SIZE - king // BOARD_SIZE + NEAR
    column = sq % BOARD_SIZE - king % BOARD_SIZE + NEAR
    if 0 <= row < NEAR_SIZE and 0 <= column < NEAR_SIZE and king != NO_SQUARE:
        rows[number] = first + (piece * NEAR_SIZE + row) * NEAR_SIZE + column
        number += 1
    return number


@jit_inner
def _king_zone_rows(
    position: Record, first: int, maps: AttackMaps, rows: Array, number: int
) -> int:
    view = int64(position.turn)
    for side in range(2):
        king = int64(position.kings[view, side])
        for direction in range(8):
            sq = NEIGHBOUR_SQUARES[king, direction]
            if sq == NO_SQUARE:
                continue
            code = int64(position.board[view, sq])
            occupant = 0
            if code:
                occupant = 1 if (code < FIRST_ENEMY_CODE) == (side == OWN) else 2
            attackers = min(int64(maps.counts[1 - side, sq]), MAX_COUNTED)
            defenders = min(int64(maps.counts[side, sq]) - 1, MAX_COUNTED)  # without the king
            zone = ((side * 8 + direction) * 3 + attackers) * 3 + defenders
            rows[number] = first + zone * 3 + occupant
            number += 1
    return number


@jit_inner
def _king_escape_rows(
    position: Record, first: int, maps: AttackMaps, rows: Array, number: int
) -> int:
    view = int64(position.turn)
    for side in range(2):
        king = int64(position.kings[view, side])
        if king == NO_SQUARE:
            continue
        squares = 0
        for direction in range(8):
            sq = NEIGHBOUR_SQUARES[king, direction]
            if sq != NO_SQUARE and maps.counts[1 - side, sq] == 0:
                code = int64(position.board[view, sq])
                is_own = code != 0 and (code < FIRST_ENEMY_CODE) == (side == OWN)
                squares += 0 if is_own else 1
        attacker = 1 - view if side == OWN else view
        held = 0
        for kind in range(NUM_HAND_KINDS):
            held += int64(position.hands[attacker, kind])
        rows[number] = first + (side * 9 + squares) * 4 + min(held, 3)
        number += 1
    return number


@jit_inner
def _pin_rows(position: Record, first: int, rows: Array, number: int) -> int:
    view = int64(position.turn)
    for side in range(2):
        player = view if side == OWN else 1 - view
        if position.kings[player, OWN] == NO_SQUARE:
            continue
        _, _, pinned = checks_and_pins(position, player)
        while pinned:
            sq = lowest(pinned)
            pinned = without_lowest(pinned)
            kind = int64(position.board[player, sq]) - 1
            rows[number] = first + side * NUM_PIECE_KINDS + kind
            number += 1
    return number

"""Alpha-beta search over material, of a batch of positions: what the ``alphabeta`` bot plays by.

Negamax with a transposition table, killer moves and a quiescence search of captures.
"""

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from keisei.constants import MOVE_BUFFER, NUM_ACTIONS, NUM_SQUARES
from keisei.errors import KeiseiError
from keisei.shogi.attacks import king_is_attacked
from keisei.shogi.jit import int64, jit, jit_inner
from keisei.shogi.mate import find_mate
from keisei.shogi.material import evaluate, move_gain
from keisei.shogi.movegen import legal_moves
from keisei.shogi.position import (
    FIRST_ENEMY_CODE,
    Array,
    Record,
    Records,
    decode,
    play,
    undo,
)
from keisei.shogi.rng import random_below
from keisei.shogi.tables import NUM_CLASSES

MATE: Final = 1_000_000
"""The value of a mate on the board, for its winner."""

MATE_LINE: Final = MATE - 1_000
"""Values above this, and below its negative, are mates."""

INFINITE: Final = 2 * MATE
MAX_DEPTH: Final = 16
MAX_QUIET_PLIES: Final = 16
"""Plies of the quiescence search, at most."""

MAX_MARGIN: Final = 1_000_000
"""Far above any value of material: all moves count as equal."""

LEVELS: Final = MAX_DEPTH + MAX_QUIET_PLIES + 2
TABLE_BITS: Final = 16
NO_ENTRY, EXACT, LOWER_BOUND, UPPER_BOUND = range(4)
"""Kind of the value of a transposition table entry."""

_KILLER_BONUS: Final = 50
_BEST_FIRST: Final = 10_000_000


class SearchMemory(NamedTuple):
    """Scratch memory and transposition table of one thread; kept from move to move to save time."""

    moves: npt.NDArray[np.uint16]
    """``[levels, 1024]``: the moves of each level."""

    gains: npt.NDArray[np.int64]
    """``[levels, 1024]``: material that each of them gains."""

    ranks: npt.NDArray[np.int64]
    """``[levels, 1024]``: their order; the highest is tried first."""

    killers: npt.NDArray[np.int64]
    """``[levels]``: the quiet move that last refuted another line."""

    keys: npt.NDArray[np.uint64]
    """``[table]``: Zobrist keys of the transposition table, whose other columns follow."""

    values: npt.NDArray[np.int64]
    bounds: npt.NDArray[np.int8]
    depths: npt.NDArray[np.int8]
    best: npt.NDArray[np.uint16]

    scores: npt.NDArray[np.int64]
    """``[1024]``: value of each root move."""

    replies: npt.NDArray[np.uint16]
    checking: npt.NDArray[np.uint64]
    """Scratch of the search for a mate in one, as is `replies`."""

    nodes: npt.NDArray[np.int64]
    """``[1]``: positions searched or evaluated."""

    @classmethod
    def new(cls) -> "SearchMemory":
        """Make an empty memory."""
        size = 1 << TABLE_BITS
        return cls(
            moves=np.zeros((LEVELS, MOVE_BUFFER), dtype=np.uint16),
            gains=np.zeros((LEVELS, MOVE_BUFFER), dtype=np.int64),
            ranks=np.zeros((LEVELS, MOVE_BUFFER), dtype=np.int64),
            killers=np.full(LEVELS, NUM_ACTIONS, dtype=np.int64),
            keys=np.zeros(size, dtype=np.uint64),
            values=np.zeros(size, dtype=np.int64),
            bounds=np.zeros(size, dtype=np.int8),
            depths=np.zeros(size, dtype=np.int8),
            best=np.zeros(size, dtype=np.uint16),
            scores=np.zeros(MOVE_BUFFER, dtype=np.int64),
            replies=np.zeros(MOVE_BUFFER, dtype=np.uint16),
            checking=np.zeros((NUM_CLASSES, 2), dtype=np.uint64),
            nodes=np.zeros(1, dtype=np.int64),
        )


@jit
def search_legal_indices(
    positions: Records,
    legal_actions: Array,
    legal_counts: Array,
    depth: int,
    quiet_plies: int,
    margin: int,
    rng_states: Array,
    memory: SearchMemory,
    legal_indices: Array,
    values: Array,
) -> None:
    """Search ``positions[B]`` and write the legal index of the best move of each.

    Args:
        positions: unchanged when it returns.
        legal_actions: ``[B, M]``; the first ``legal_counts[B]`` of a row are its legal moves.
        legal_counts: ``[B]``.
        depth: plies to search, at least 1.
        quiet_plies: plies of the quiescence search of captures; 0: none.
        margin: moves within this of the best value count as equal.
        rng_states: ``[B]`` uint64, random and not 0: the draw among equal moves.
        memory: is overwritten.
        legal_indices: ``[B]`` int64, written.
        values: ``[B]`` int64, written: value of the best move for the mover.
    """
    for index in range(len(positions)):
        position = positions[index]
        moves, count = legal_actions[index], int64(legal_counts[index])
        value = evaluate(position)
        gains = memory.gains[0]
        ranks = memory.ranks[0]
        for k in range(count):
            gains[k] = move_gain(position, int64(moves[k]))
            ranks[k] = gains[k]
        best, equals = -INFINITE, 0
        for _ in range(count):
            k = _next_best(ranks, count)
            ranks[k] = -INFINITE
            move = int64(moves[k])
            captured = play(position, move)
            alpha = best - margin - 1
            score = -_negamax(
                position,
                memory,
                1,
                depth - 1,
                quiet_plies,
                -INFINITE,
                -alpha,
                -value - gains[k],
            )
            undo(position, move, captured)
            memory.scores[k] = score
            best = max(best, score)
        for k in range(count):
            if memory.scores[k] >= best - margin:
                equals += 1
                # The n-th equal move replaces the one before with probability 1 / n.
                if random_below(rng_states, index, equals) == 0:
                    legal_indices[index] = k
        values[index] = best


@jit_inner
def _negamax(
    position: Record,
    memory: SearchMemory,
    level: int,
    depth: int,
    quiet_plies: int,
    alpha: int,
    beta: int,
    value: int,
) -> int:
    """Return the mover's value of `position`, `level` plies from the root, searched to `depth`.

    It is exact between `alpha` and `beta`, and a bound outside of them. `value` is the static value
    of the position.
    """
    memory.nodes[0] += 1
    mover = int64(position.turn)
    if depth == 0:
        if king_is_attacked(position, mover):
            count, _ = legal_moves(position, memory.moves[level])
            if count == 0:
                return level - MATE
        return _quiet_value(position, memory, level, quiet_plies, alpha, beta, value)
    if depth == 1 and quiet_plies == 0:
        return _frontier_value(position, memory, level, beta, value)

    slot = int64(position.key & np.uint64((1 << TABLE_BITS) - 1))
    table_move = NUM_ACTIONS
    if memory.keys[slot] == position.key and memory.bounds[slot] != NO_ENTRY:
        table_move = int64(memory.best[slot])
        if memory.depths[slot] == depth:  # not deeper: the result is that of plain minimax
            found = _from_table(memory.values[slot], level)
            bound = memory.bounds[slot]
            if (
                bound == EXACT
                or (bound == LOWER_BOUND and found >= beta)
                or (bound == UPPER_BOUND and found <= alpha)
            ):
                return found

    count, _ = legal_moves(position, memory.moves[level])
    if count == 0:
        return level - MATE
    _rank_moves(position, memory, level, count, table_move)
    best, best_move = -INFINITE, 0
    lower = alpha
    for _ in range(count):
        k = _next_best(memory.ranks[level], count)
        memory.ranks[level, k] = -INFINITE
        move = int64(memory.moves[level, k])
        gain = memory.gains[level, k]
        captured = play(position, move)
        score = -_negamax(
            position, memory, level + 1, depth - 1, quiet_plies, -beta, -lower, -value - gain
        )
        undo(position, move, captured)
        if score > best:
            best, best_move = score, move
            lower = max(lower, score)
            if best >= beta:
                if not captured:
                    memory.killers[level] = move
                break
    memory.keys[slot] = position.key
    memory.depths[slot] = depth
    memory.best[slot] = best_move
    memory.values[slot] = _to_table(best, level)
    memory.bounds[slot] = LOWER_BOUND if best >= beta else EXACT if best > alpha else UPPER_BOUND
    return best


@jit_inner
def _frontier_value(
    position: Record, memory: SearchMemory, level: int, beta: int, value: int
) -> int:
    """Return the value one ply before the horizon, where most of the time would be spent.

    The value after a move is known without playing it, except for mates; and those are searched for
    only if no other move reaches `beta`.
    """
    moves = memory.moves[level]
    count, _ = legal_moves(position, moves)
    if count == 0:
        return level - MATE
    memory.nodes[0] += count
    best = -INFINITE
    for k in range(count):
        best = max(best, value + move_gain(position, int64(moves[k])))
    if best >= beta:
        return best
    if find_mate(position, moves, count, memory.replies, memory.checking) >= 0:
        return MATE - level - 1
    return best


@jit_inner
def _quiet_value(
    position: Record,
    memory: SearchMemory,
    level: int,
    plies: int,
    alpha: int,
    beta: int,
    value: int,
) -> int:
    """Return the value by a quiescence search: the mover may stand pat, or capture something.

    After `plies` captures in a row the static value counts.
    """
    if value >= beta or plies == 0:
        return value
    best = value
    lower = max(alpha, value)
    mover = int64(position.turn)
    count, _ = legal_moves(position, memory.moves[level])
    captures = 0
    for k in range(count):
        move = memory.moves[level, k]
        origin, to, _ = decode(int64(move))
        if origin < NUM_SQUARES and position.board[mover, to] >= FIRST_ENEMY_CODE:
            memory.moves[level, captures] = move
            memory.gains[level, captures] = move_gain(position, int64(move))
            memory.ranks[level, captures] = memory.gains[level, captures]
            captures += 1
    for _ in range(captures):
        k = _next_best(memory.ranks[level], captures)
        memory.ranks[level, k] = -INFINITE
        move = int64(memory.moves[level, k])
        gain = memory.gains[level, k]
        captured = play(position, move)
        memory.nodes[0] += 1
        score = -_quiet_value(position, memory, level + 1, plies - 1, -beta, -lower, -value - gain)
        undo(position, move, captured)
        if score > best:
            best = score
            lower = max(lower, score)
            if best >= beta:
                break
    return best


@jit_inner
def _rank_moves(
    position: Record, memory: SearchMemory, level: int, count: int, table_move: int
) -> None:
    """Write gain and order of the moves: the table's move first, the killer before quiet moves."""
    killer = memory.killers[level]
    for k in range(count):
        move = int64(memory.moves[level, k])
        gain = move_gain(position, move)
        memory.gains[level, k] = gain
        rank = gain
        if move == table_move:
            rank += _BEST_FIRST
        elif move == killer:
            rank += _KILLER_BONUS
        memory.ranks[level, k] = rank


@jit_inner
def _next_best(ranks: Array, count: int) -> int:
    """Return the index of the highest rank; sorting all would take longer, as few are tried."""
    best = 0
    for k in range(1, count):
        if ranks[k] > ranks[best]:
            best = k
    return best


@jit_inner
def _to_table(value: int, level: int) -> int:
    """Count mates from the position instead of the root, as it is reached at several levels."""
    if value > MATE_LINE:
        return value + level
    if value < -MATE_LINE:
        return value - level
    return value


@jit_inner
def _from_table(value: int, level: int) -> int:
    """Count mates from the root again."""
    if value > MATE_LINE:
        return value - level
    if value < -MATE_LINE:
        return value + level
    return value


class AlphaBeta:
    """Alpha-beta search of a fixed depth. The same generator states give the same moves."""

    def __init__(self, depth: int, *, quiet_plies: int = 0, margin: int = 0) -> None:
        """Make a search.

        Args:
            depth: plies to search.
            quiet_plies: plies of the quiescence search of captures; 0: none.
            margin: moves within this of the best value, in hundredths of a pawn, count as equal,
                and one of them is drawn.
        """
        if not 1 <= depth <= MAX_DEPTH:
            raise KeiseiError(f"alpha-beta searches 1 to {MAX_DEPTH} plies ahead, not {depth}")
        if not 0 <= quiet_plies <= MAX_QUIET_PLIES:
            raise KeiseiError(
                f"captures can be searched for 0 to {MAX_QUIET_PLIES} plies, not {quiet_plies}"
            )
        if not 0 <= margin <= MAX_MARGIN:
            raise KeiseiError(f"the margin is 0 to {MAX_MARGIN:,}, not {margin}")
        self.depth = depth
        self.quiet_plies = quiet_plies
        self.margin = margin
        self._memory = SearchMemory.new()

    @property
    def nodes(self) -> int:
        """Positions visited so far."""
        return int(self._memory.nodes[0])

    def search(
        self,
        positions: Records,
        legal_actions: npt.NDArray[np.uint16],
        legal_counts: npt.NDArray[np.int32],
        rng_states: npt.NDArray[np.uint64],
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Return the best moves, as indices of the legal lists, and their values, ``[B]`` each.

        ``rng_states[B]``, from `keisei.shogi.rng.seed_rng_states`, draw among equal moves.
        """
        count = len(positions)
        legal_indices = np.zeros(count, dtype=np.int64)
        values = np.zeros(count, dtype=np.int64)
        search_legal_indices(
            positions,
            legal_actions,
            legal_counts,
            self.depth,
            self.quiet_plies,
            self.margin,
            rng_states,
            self._memory,
            legal_indices,
            values,
        )
        return legal_indices, values

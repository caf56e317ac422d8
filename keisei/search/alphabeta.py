"""The alpha-beta bot: searches many positions, each for itself."""

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
"""Values beyond this are mates."""

INFINITE: Final = 2 * MATE
MAX_DEPTH: Final = 16
MAX_QUIET_PLIES: Final = 16
"""How far captures can be followed beyond the horizon."""

LEVELS: Final = MAX_DEPTH + MAX_QUIET_PLIES + 2
TABLE_BITS: Final = 16
NOTHING, EXACT, AT_LEAST, AT_MOST = range(4)
"""What an entry of the table says of its position's value."""

_KILLER_BONUS: Final = 50
_BEST_FIRST: Final = 10_000_000


class SearchMemory(NamedTuple):
    """What a search overwrites. One for each thread; to keep it from move to move saves time."""

    moves: npt.NDArray[np.uint16]
    """``[levels, 1024]``: the moves of each level."""

    gains: npt.NDArray[np.int64]
    """``[levels, 1024]``: what each of them adds to the mover's value."""

    ranks: npt.NDArray[np.int64]
    """``[levels, 1024]``: which of them to try first."""

    killers: npt.NDArray[np.int64]
    """``[levels]``: the quiet move that last refuted another line."""

    keys: npt.NDArray[np.uint64]
    """``[table]``: of the positions that were looked into."""

    values: npt.NDArray[np.int64]
    bounds: npt.NDArray[np.int8]
    depths: npt.NDArray[np.int8]
    best: npt.NDArray[np.uint16]

    scores: npt.NDArray[np.int64]
    """``[1024]``: what each move of the root leads to."""

    replies: npt.NDArray[np.uint16]
    checking: npt.NDArray[np.uint64]
    """What the search for a mate in one overwrites."""

    nodes: npt.NDArray[np.int64]
    """``[1]``: positions valued or looked into."""

    @classmethod
    def new(cls) -> "SearchMemory":
        """Memory that nothing has been written to."""
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
    luck: Array,
    memory: SearchMemory,
    legal_indices: Array,
    values: Array,
) -> None:
    """Write the best move of each of ``positions[B]`` as an index into its legal list.

    Args:
        positions: left as they were.
        legal_actions: ``[B, M]``; the first ``legal_counts[B]`` of a row are its legal moves.
        legal_counts: how many there are.
        depth: plies to look ahead, at least 1.
        quiet_plies: how far captures are followed beyond the horizon; 0: not at all.
        margin: moves that are worse than the best by no more than this are as good.
        luck: ``[B]`` uint64, random and not 0: decides among moves that are as good.
        memory: is overwritten.
        legal_indices: ``[B]`` int64, written.
        values: ``[B]`` int64, written: what the best move is worth to the mover.
    """
    for index in range(len(positions)):
        position = positions[index]
        moves, number = legal_actions[index], int64(legal_counts[index])
        value = evaluate(position)
        gains = memory.gains[0]
        ranks = memory.ranks[0]
        for place in range(number):
            gains[place] = move_gain(position, int64(moves[place]))
            ranks[place] = gains[place]
        best, equals = -INFINITE, 0
        for _ in range(number):
            place = _next_best(ranks, number)
            ranks[place] = -INFINITE
            move = int64(moves[place])
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
                -value - gains[place],
            )
            undo(position, move, captured)
            memory.scores[place] = score
            best = max(best, score)
        for place in range(number):
            if memory.scores[place] >= best - margin:
                equals += 1
                # The n-th equal move replaces the one before with probability 1 / n.
                if random_below(luck, index, equals) == 0:
                    legal_indices[index] = place
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
    """The mover's value of `position`, `level` plies from the root, looking `depth` plies ahead.

    It is exact between `alpha` and `beta`, a bound on its side of them otherwise. `value` is that
    of the position as it stands.
    """
    memory.nodes[0] += 1
    mover = int64(position.turn)
    if depth == 0:
        if king_is_attacked(position, mover):
            number, _ = legal_moves(position, memory.moves[level])
            if number == 0:
                return level - MATE
        return _quiet_value(position, memory, level, quiet_plies, alpha, beta, value)
    if depth == 1 and quiet_plies == 0:
        return _frontier_value(position, memory, level, beta, value)

    slot = int64(position.key & np.uint64((1 << TABLE_BITS) - 1))
    table_move = NUM_ACTIONS
    if memory.keys[slot] == position.key and memory.bounds[slot] != NOTHING:
        table_move = int64(memory.best[slot])
        if memory.depths[slot] == depth:  # not deeper: the answer is that of plain minimax
            found = _from_table(memory.values[slot], level)
            bound = memory.bounds[slot]
            if (
                bound == EXACT
                or (bound == AT_LEAST and found >= beta)
                or (bound == AT_MOST and found <= alpha)
            ):
                return found

    number, _ = legal_moves(position, memory.moves[level])
    if number == 0:
        return level - MATE
    _rank_moves(position, memory, level, number, table_move)
    best, best_move = -INFINITE, 0
    lower = alpha
    for _ in range(number):
        place = _next_best(memory.ranks[level], number)
        memory.ranks[level, place] = -INFINITE
        move = int64(memory.moves[level, place])
        gain = memory.gains[level, place]
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
    memory.bounds[slot] = AT_LEAST if best >= beta else EXACT if best > alpha else AT_MOST
    return best


@jit_inner
def _frontier_value(
    position: Record, memory: SearchMemory, level: int, beta: int, value: int
) -> int:
    """The value one ply before the horizon, where most of the time would go.

    What a move leads to is known without playing it, mates excepted; and those are looked for only
    if no move is good enough without.
    """
    moves = memory.moves[level]
    number, _ = legal_moves(position, moves)
    if number == 0:
        return level - MATE
    memory.nodes[0] += number
    best = -INFINITE
    for place in range(number):
        best = max(best, value + move_gain(position, int64(moves[place])))
    if best >= beta:
        return best
    if find_mate(position, moves, number, memory.replies, memory.checking) >= 0:
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
    """The value once no capture is worth playing: the mover may stop, or take something.

    After `plies` captures in a row it is taken as it stands.
    """
    if value >= beta or plies == 0:
        return value
    best = value
    lower = max(alpha, value)
    mover = int64(position.turn)
    number, _ = legal_moves(position, memory.moves[level])
    captures = 0
    for place in range(number):
        move = memory.moves[level, place]
        origin, to, _ = decode(int64(move))
        if origin < NUM_SQUARES and position.board[mover, to] >= FIRST_ENEMY_CODE:
            memory.moves[level, captures] = move
            memory.gains[level, captures] = move_gain(position, int64(move))
            memory.ranks[level, captures] = memory.gains[level, captures]
            captures += 1
    for _ in range(captures):
        place = _next_best(memory.ranks[level], captures)
        memory.ranks[level, place] = -INFINITE
        move = int64(memory.moves[level, place])
        gain = memory.gains[level, place]
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
    position: Record, memory: SearchMemory, level: int, number: int, table_move: int
) -> None:
    """What each move gains at once; the table's move first of all, a killer before quiet ones."""
    killer = memory.killers[level]
    for place in range(number):
        move = int64(memory.moves[level, place])
        gain = move_gain(position, move)
        memory.gains[level, place] = gain
        rank = gain
        if move == table_move:
            rank += _BEST_FIRST
        elif move == killer:
            rank += _KILLER_BONUS
        memory.ranks[level, place] = rank


@jit_inner
def _next_best(ranks: Array, number: int) -> int:
    """The place of the highest rank: most often a few moves decide, sorting all would be waste."""
    best = 0
    for place in range(1, number):
        if ranks[place] > ranks[best]:
            best = place
    return best


@jit_inner
def _to_table(value: int, level: int) -> int:
    """Mates are counted from the position, not from the root: it is met at several levels."""
    if value > MATE_LINE:
        return value + level
    if value < -MATE_LINE:
        return value - level
    return value


@jit_inner
def _from_table(value: int, level: int) -> int:
    if value > MATE_LINE:
        return value - level
    if value < -MATE_LINE:
        return value + level
    return value


class AlphaBeta:
    """Looks `depth` plies ahead. The same seed gives the same moves."""

    def __init__(self, depth: int, *, quiet_plies: int = 0, margin: int = 0) -> None:
        """Make a bot.

        Args:
            depth: plies to look ahead.
            quiet_plies: how far captures are followed beyond the horizon; 0: not at all.
            margin: moves that are worse than the best by no more than so many hundredths of a
                pawn are as good, and one of them is drawn.
        """
        if not 1 <= depth <= MAX_DEPTH:
            raise KeiseiError(f"alpha-beta looks 1 to {MAX_DEPTH} plies ahead, not {depth}")
        if not 0 <= quiet_plies <= MAX_QUIET_PLIES:
            raise KeiseiError(
                f"captures can be followed 0 to {MAX_QUIET_PLIES} plies, not {quiet_plies}"
            )
        if margin < 0:
            raise KeiseiError(f"the margin is {margin}, it must not be negative")
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
        luck: npt.NDArray[np.uint64],
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Columns of the legal lists, and what they are worth, ``[B]`` each.

        ``luck[B]`` decides among equal moves: `keisei.shogi.rng.seed_rng_states`.
        """
        number = len(positions)
        legal_indices = np.zeros(number, dtype=np.int64)
        values = np.zeros(number, dtype=np.int64)
        search_legal_indices(
            positions,
            legal_actions,
            legal_counts,
            self.depth,
            self.quiet_plies,
            self.margin,
            luck,
            self._memory,
            legal_indices,
            values,
        )
        return legal_indices, values

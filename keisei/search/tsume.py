"""Mates of any length, by depth-first proof-number search (df-pn) that can be stopped and resumed.

Each position has two numbers: `phi`, the leaves that are still to be proven for the side to move to
reach its aim, and `delta`, those for the other side; the attacker aims at mate, the defender at any
escape. The search goes where fewest are missing (Nagai, 2002, whose thesis is on tsume shogi).

A new position after a check starts with the number of its defences as what the attacker has to
prove, as in df-pn+. On positions with mates of 3 to 13 plies this takes a third of the nodes and
half of the time.

Where positions lead back to earlier ones, the numbers may grow without end and without a new
position. After a search that found none, thresholds are raised below positions that lead to
shallower ones, until a new one is reached (Kishimoto, 2010: threshold controlling algorithm).

A repetition counts as an escape. That a position is no mate *because* of a repetition holds only on
the path that led there; such results are marked, and not reported as final.
"""

from enum import Enum
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from keisei.constants import MOVE_BUFFER
from keisei.shogi.actions import PolicyOutputMapper
from keisei.shogi.attacks import king_is_attacked
from keisei.shogi.game import ShogiGame
from keisei.shogi.jit import int64, jit, jit_inner
from keisei.shogi.movegen import legal_moves
from keisei.shogi.position import (
    Record,
    new_positions,
    play,
    undo,
)
from keisei.shogi.types import Color, Move

INFINITE: Final = 1 << 30
"""A proof number: impossible."""

MAX_PLIES: Final = 255
"""Longest mate that is found."""

_NODES_LEFT, _ENTRIES_USED, _IS_STUCK, _IS_RAISING = 0, 1, 2, 3
"""Indices of the counters."""

_ACTIONS: Final = PolicyOutputMapper()


class MateStatus(Enum):
    """Result of a mate search."""

    MATE = "mate"
    NO_MATE = "no mate"
    REPETITION = "repetition"
    """No mate was found, but the only escapes are repetitions: more nodes would not change it."""

    UNKNOWN = "unknown"


class _Memory(NamedTuple):
    """Hash table of ``N`` positions, and the path to the current one."""

    keys: npt.NDArray[np.uint64]  # [N]: 0: free
    phis: npt.NDArray[np.int32]  # [N]
    deltas: npt.NDArray[np.int32]  # [N]
    lengths: npt.NDArray[np.int16]  # [N]: plies to mate, if it is one
    depths: npt.NDArray[np.int16]  # [N]: fewest plies from the root
    repeats: npt.NDArray[np.bool_]  # [N]: the escape is a repetition
    moves: npt.NDArray[np.uint16]  # [plies, 1024]
    child_keys: npt.NDArray[np.uint64]  # [plies, 1024]
    defences: npt.NDArray[np.int16]  # [plies, 1024]: of a new position; 1 after a defence
    defence_buffer: npt.NDArray[np.uint16]  # [1024]: moves that are only counted
    path: npt.NDArray[np.uint64]  # [plies]
    counters: npt.NDArray[np.int64]  # [4]: nodes left, entries used, and two flags

    @classmethod
    def new(cls, entries: int) -> "_Memory":
        return cls(
            keys=np.zeros(entries, dtype=np.uint64),
            phis=np.zeros(entries, dtype=np.int32),
            deltas=np.zeros(entries, dtype=np.int32),
            lengths=np.zeros(entries, dtype=np.int16),
            depths=np.zeros(entries, dtype=np.int16),
            repeats=np.zeros(entries, dtype=np.bool_),
            moves=np.zeros((MAX_PLIES + 1, MOVE_BUFFER), dtype=np.uint16),
            child_keys=np.zeros((MAX_PLIES + 1, MOVE_BUFFER), dtype=np.uint64),
            defences=np.zeros((MAX_PLIES + 1, MOVE_BUFFER), dtype=np.int16),
            defence_buffer=np.zeros(MOVE_BUFFER, dtype=np.uint16),
            path=np.zeros(MAX_PLIES + 2, dtype=np.uint64),
            counters=np.zeros(4, dtype=np.int64),
        )


class MateSolver:
    """Finds out whether a position is a forced mate by continuous checks, and its moves."""

    def __init__(self, entries: int = 1 << 21) -> None:
        """Store up to `entries` positions, a power of two."""
        self._entries = entries
        self._attacker: Color | None = None
        self.clear()

    def clear(self) -> None:
        """Drop all positions and free the memory."""
        self._memory = _Memory.new(2)
        self._attacker = None

    @property
    def is_full(self) -> bool:
        """Whether the table is full: what is unknown now stays unknown."""
        return bool(_is_full(self._memory)) and self._attacker is not None

    def solve(self, game: ShogiGame, nodes: int) -> tuple[MateStatus, list[Move]]:
        """Search up to `nodes` more positions, resuming from earlier calls.

        Returns the status and, if it is a mate, its moves: not always the shortest mate.
        """
        if self._attacker is not game.turn:  # proof numbers are for one attacker
            self._memory = _Memory.new(self._entries)
            self._attacker = game.turn
        positions = new_positions(1)
        positions[0] = game.position
        _solve(positions[0], self._memory, nodes)
        phi, delta, _, repeats = self._known(game)
        if delta == INFINITE and phi == 0:
            return MateStatus.MATE, self._line(game)
        if phi == INFINITE and delta == 0:
            return (MateStatus.REPETITION if repeats else MateStatus.NO_MATE), []
        return MateStatus.UNKNOWN, []

    def _known(self, game: ShogiGame) -> tuple[int, int, int, bool]:
        """Return (phi, delta, length, repeats) of a position; of a new one if it is not stored."""
        entry = int(_entry_of(self._memory, np.uint64(game.key)))
        memory = self._memory
        if memory.keys[entry] == 0:
            return 1, 1, 0, False
        return (
            int(memory.phis[entry]),
            int(memory.deltas[entry]),
            int(memory.lengths[entry]),
            bool(memory.repeats[entry]),
        )

    def _line(self, game: ShogiGame) -> list[Move]:
        """Return the mate: the attacker takes the shortest known way, the defender the longest."""
        positions = new_positions(1)
        positions[0] = game.position
        actions = np.zeros(MAX_PLIES, dtype=np.uint16)
        count = _write_line(positions[0], self._memory, actions)
        turn, line = game.turn, []
        for action in actions[:count].tolist():
            line.append(_ACTIONS.move(action, turn))
            turn = turn.opponent
        return line


@jit
def _solve(position: Record, memory: _Memory, nodes: int) -> None:
    memory.counters[_NODES_LEFT] = nodes
    memory.counters[_IS_RAISING] = 0
    memory.path[0] = position.key
    entry = _entry_of(memory, position.key)
    if memory.keys[entry] != 0 and (memory.phis[entry] == 0 or memory.deltas[entry] == 0):
        return
    used = memory.counters[_ENTRIES_USED]
    _search(position, 0, True, INFINITE, INFINITE, memory)
    memory.counters[_IS_STUCK] = memory.counters[_ENTRIES_USED] == used


@jit
def _write_line(position: Record, memory: _Memory, line: npt.NDArray[np.uint16]) -> int:
    """Play the stored mate and write its moves into ``line[plies]``; return their number."""
    count = 0
    while count < len(line):
        is_attack = count % 2 == 0
        best, best_length = -1, 0
        for k in range(_write_moves(position, 0, is_attack, memory)):
            _, delta, length, _ = _proof_numbers(memory, 0, k, is_attack)
            if delta != (0 if is_attack else INFINITE):
                continue
            if best < 0 or (length < best_length if is_attack else length > best_length):
                best, best_length = k, length
        if best < 0:
            break
        line[count] = memory.moves[0, best]
        play(position, int64(line[count]))
        count += 1
    return count


@jit
def _is_full(memory: _Memory) -> bool:
    return bool(4 * memory.counters[_ENTRIES_USED] > 3 * len(memory.keys))


@jit
def _entry_of(memory: _Memory, key: np.uint64) -> int:
    """Return the entry of a position: where it is stored, or where it would be."""
    mask = len(memory.keys) - 1
    entry = int64(key & np.uint64(mask))
    while memory.keys[entry] != 0 and memory.keys[entry] != key:
        entry = (entry + 1) & mask
    return entry


@jit_inner
def _search(
    position: Record, level: int, is_attack: bool, max_phi: int, max_delta: int, memory: _Memory
) -> None:
    """Search a position until one of its numbers reaches its threshold, and store them."""
    memory.counters[_NODES_LEFT] -= 1
    count = _write_moves(position, level, is_attack, memory)
    key = position.key
    if memory.keys[_entry_of(memory, key)] == 0:
        memory.counters[_IS_RAISING] = 0
    is_first = True
    while True:
        # The mover reaches its aim if the other side fails after one of the moves; to stop it, the
        # other side must succeed after all of them.
        phi, delta = INFINITE, 0
        best, second, best_phi = -1, INFINITE, 0
        length = 0
        repeats = not is_attack  # defender: if all its escapes are repetitions; attacker: if any is
        for k in range(count):
            child_phi, child_delta, child_length, child_repeats = _proof_numbers(
                memory, level, k, is_attack
            )
            if child_delta < phi:
                second = phi
                phi = child_delta
                best, best_phi = k, child_phi
            elif child_delta < second:
                second = child_delta
            delta = min(delta + child_phi, INFINITE)
            if is_first and memory.counters[_IS_STUCK] and _is_shallower(memory, level, k):
                memory.counters[_IS_RAISING] = 1
            if is_attack:
                repeats = repeats or child_repeats
                if child_delta == 0 and (length == 0 or child_length + 1 < length):
                    length = child_length + 1
            else:
                if child_delta == 0:
                    repeats = repeats and child_repeats
                length = max(length, child_length + 1)
        is_mate = (is_attack and phi == 0) or (not is_attack and delta == 0)
        is_escape = (is_attack and delta == 0) or (not is_attack and phi == 0)
        if phi == 0:
            delta = INFINITE
        _store(memory, key, level, phi, delta, length if is_mate else 0, is_escape and repeats)
        if is_first and memory.counters[_IS_RAISING]:
            max_phi, max_delta = max(max_phi, phi + 1), max(max_delta, delta + 1)
        is_first = False
        is_done = phi >= max_phi or delta >= max_delta or best < 0
        if is_done or memory.counters[_NODES_LEFT] <= 0 or _is_full(memory):
            return
        move = int64(memory.moves[level, best])
        captured = play(position, move)
        memory.path[level + 1] = position.key
        _search(
            position,
            level + 1,
            not is_attack,
            min(max_delta - delta + best_phi, INFINITE),
            min(max_phi, second + 1),
            memory,
        )
        undo(position, move, captured)


@jit_inner
def _write_moves(position: Record, level: int, is_attack: bool, memory: _Memory) -> int:
    """Write the checks, or all defences, and the keys after them; return their number.

    Also writes how many defences there are after each check that leads to a new position.
    """
    moves = memory.moves[level]
    generated, _ = legal_moves(position, moves)
    count = 0
    for k in range(generated):
        move = int64(moves[k])
        captured = play(position, move)
        if not is_attack or king_is_attacked(position, int64(position.turn)):
            moves[count] = move
            memory.child_keys[level, count] = position.key
            memory.defences[level, count] = 1
            if is_attack and memory.keys[_entry_of(memory, position.key)] == 0:
                defences, _ = legal_moves(position, memory.defence_buffer)
                memory.defences[level, count] = defences
            count += 1
        undo(position, move, captured)
    return count


@jit_inner
def _proof_numbers(
    memory: _Memory, level: int, k: int, is_attack: bool
) -> tuple[int, int, int, bool]:
    """Return (phi, delta, length, repeats) after move `k`, for the side to move then."""
    key = memory.child_keys[level, k]
    is_repetition = level + 1 >= MAX_PLIES
    for earlier in range(level + 1):
        is_repetition |= memory.path[earlier] == key
    if is_repetition:
        return (0, INFINITE, 0, True) if is_attack else (INFINITE, 0, 0, True)
    entry = _entry_of(memory, key)
    if memory.keys[entry] == 0:
        defences = int64(memory.defences[level, k])
        return (INFINITE if defences == 0 else 1), defences, 0, False
    return (
        int64(memory.phis[entry]),
        int64(memory.deltas[entry]),
        int64(memory.lengths[entry]),
        bool(memory.repeats[entry]),
    )


@jit_inner
def _is_shallower(memory: _Memory, level: int, k: int) -> bool:
    """Whether the position after move `k` is known, undecided, and was reached by fewer plies."""
    entry = _entry_of(memory, memory.child_keys[level, k])
    is_undecided = memory.phis[entry] > 0 and memory.deltas[entry] > 0
    return bool(memory.keys[entry] != 0 and is_undecided and memory.depths[entry] <= level)


@jit_inner
def _store(
    memory: _Memory, key: np.uint64, level: int, phi: int, delta: int, length: int, repeats: bool
) -> None:
    entry = _entry_of(memory, key)
    if memory.keys[entry] == 0:
        memory.counters[_ENTRIES_USED] += 1
        memory.keys[entry] = key
        memory.depths[entry] = level
    memory.depths[entry] = min(memory.depths[entry], level)
    memory.phis[entry] = phi
    memory.deltas[entry] = delta
    memory.lengths[entry] = length
    memory.repeats[entry] = repeats

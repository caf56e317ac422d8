"""Mates of any length: depth-first proof-number search, which can be stopped and taken up again.

Each position has two numbers: how much is missing until the side to move has its way (`phi`), and
until the other side has (`delta`); the attacker's way is mate, the defender's any escape. The
search always goes where least is missing (Nagai, 2002, whose thesis is on just this game).

Whoever repeats a position gives no mate. That a position is no mate *because* of a repetition holds
only on the way that led there; such answers are marked, and not given as final ones.
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

FOR_EVER: Final = 1 << 30
"""A proof number: it can't be done."""

MOST_PLIES: Final = 255
"""Mates beyond this length are not found."""

_LEFT, _USED = 0, 1
_ACTIONS: Final = PolicyOutputMapper()


class Verdict(Enum):
    """What is known."""

    MATE = "mate"
    NO_MATE = "no mate"
    REPETITION = "repetition"
    """No mate was found, but the only escapes are repetitions: looking on would find no more."""

    UNKNOWN = "unknown"


class _Memory(NamedTuple):
    """``N`` positions, found by their key, and the way to the present one."""

    keys: npt.NDArray[np.uint64]  # [N]: 0 where nothing is stored
    phis: npt.NDArray[np.int32]  # [N]
    deltas: npt.NDArray[np.int32]  # [N]
    lengths: npt.NDArray[np.int16]  # [N]: plies to mate, where it is one
    repeats: npt.NDArray[np.bool_]  # [N]: the escape is a repetition
    moves: npt.NDArray[np.uint16]  # [plies, 1024]
    child_keys: npt.NDArray[np.uint64]  # [plies, 1024]
    path: npt.NDArray[np.uint64]  # [plies]
    counters: npt.NDArray[np.int64]  # [2]: nodes left, entries used

    @classmethod
    def new(cls, entries: int) -> "_Memory":
        return cls(
            keys=np.zeros(entries, dtype=np.uint64),
            phis=np.zeros(entries, dtype=np.int32),
            deltas=np.zeros(entries, dtype=np.int32),
            lengths=np.zeros(entries, dtype=np.int16),
            repeats=np.zeros(entries, dtype=np.bool_),
            moves=np.zeros((MOST_PLIES + 1, MOVE_BUFFER), dtype=np.uint16),
            child_keys=np.zeros((MOST_PLIES + 1, MOVE_BUFFER), dtype=np.uint64),
            path=np.zeros(MOST_PLIES + 2, dtype=np.uint64),
            counters=np.zeros(2, dtype=np.int64),
        )


class MateSolver:
    """Says whether a position is a forced mate, with checks all the way, and how it goes."""

    def __init__(self, entries: int = 1 << 21) -> None:
        """Remember up to `entries` positions, a power of two."""
        self._entries = entries
        self._attacker: Color | None = None
        self.forget()

    def forget(self) -> None:
        """Give the memory back."""
        self._memory = _Memory.new(2)
        self._attacker = None

    @property
    def is_full(self) -> bool:
        """Whether it can't remember more: what is not known now will not be."""
        return bool(_is_full(self._memory)) and self._attacker is not None

    def solve(self, game: ShogiGame, nodes: int) -> tuple[Verdict, list[Move]]:
        """Look at up to `nodes` positions more; what was found out in earlier calls is used.

        Returns the verdict and, with a mate, its moves: not always the shortest.
        """
        if self._attacker is not game.turn:  # numbers are for one attacker
            self._memory = _Memory.new(self._entries)
            self._attacker = game.turn
        positions = new_positions(1)
        positions[0] = game.position
        _solve(positions[0], self._memory, nodes)
        phi, delta, _, repeats = self._known(game)
        if delta == FOR_EVER and phi == 0:
            return Verdict.MATE, self._line(game)
        if phi == FOR_EVER and delta == 0:
            return (Verdict.REPETITION if repeats else Verdict.NO_MATE), []
        return Verdict.UNKNOWN, []

    def _known(self, game: ShogiGame) -> tuple[int, int, int, bool]:
        """(phi, delta, length, repeats) of a position; that of a new one if it is unknown."""
        place = int(_place_of(self._memory, np.uint64(game.key)))
        memory = self._memory
        if memory.keys[place] == 0:
            return 1, 1, 0, False
        return (
            int(memory.phis[place]),
            int(memory.deltas[place]),
            int(memory.lengths[place]),
            bool(memory.repeats[place]),
        )

    def _line(self, game: ShogiGame) -> list[Move]:
        """The attacker takes the shortest way that is known, the defender the longest."""
        positions = new_positions(1)
        positions[0] = game.position
        actions = np.zeros(MOST_PLIES, dtype=np.uint16)
        number = _write_line(positions[0], self._memory, actions)
        turn, line = game.turn, []
        for action in actions[:number].tolist():
            line.append(_ACTIONS.move(action, turn))
            turn = turn.opponent
        return line


@jit
def _solve(position: Record, memory: _Memory, nodes: int) -> None:
    memory.counters[_LEFT] = nodes
    memory.path[0] = position.key
    place = _place_of(memory, position.key)
    if memory.keys[place] != 0 and (memory.phis[place] == 0 or memory.deltas[place] == 0):
        return
    _look(position, 0, True, FOR_EVER, FOR_EVER, memory)


@jit
def _write_line(position: Record, memory: _Memory, line: npt.NDArray[np.uint16]) -> int:
    """Play the mate that is known and write its moves into `line`; returns how many there are."""
    number = 0
    while number < len(line):
        is_attack = number % 2 == 0
        best, best_length = -1, 0
        for k in range(_write_moves(position, 0, is_attack, memory)):
            place = _place_of(memory, memory.child_keys[0, k])
            if memory.keys[place] == 0 or memory.deltas[place] != (0 if is_attack else FOR_EVER):
                continue
            length = int64(memory.lengths[place])
            if best < 0 or (length < best_length if is_attack else length > best_length):
                best, best_length = k, length
        if best < 0:
            break
        line[number] = memory.moves[0, best]
        play(position, int64(line[number]))
        number += 1
    return number


@jit
def _is_full(memory: _Memory) -> bool:
    return bool(4 * memory.counters[_USED] > 3 * len(memory.keys))


@jit
def _place_of(memory: _Memory, key: np.uint64) -> int:
    """Where a position is stored, or would be."""
    mask = len(memory.keys) - 1
    place = int64(key & np.uint64(mask))
    while memory.keys[place] != 0 and memory.keys[place] != key:
        place = (place + 1) & mask
    return place


@jit_inner
def _look(
    position: Record, level: int, is_attack: bool, most_phi: int, most_delta: int, memory: _Memory
) -> None:
    """Work on a position until one of its numbers reaches its limit, and store them."""
    memory.counters[_LEFT] -= 1
    number = _write_moves(position, level, is_attack, memory)
    key = position.key
    while True:
        # The mover has its way if the other side fails after one move; the sum of what the other
        # side needs to be stopped after all of them is what it takes to stop the mover.
        phi, delta = FOR_EVER, 0
        best, second, best_phi = -1, FOR_EVER, 0
        length = 0
        repeats = not is_attack  # the defender: unless one escape is none; the attacker: if one is
        for k in range(number):
            child_phi, child_delta, child_length, child_repeats = _numbers(
                memory, level, k, is_attack
            )
            if child_delta < phi:
                second = phi
                phi = child_delta
                best, best_phi = k, child_phi
            elif child_delta < second:
                second = child_delta
            delta = min(delta + child_phi, FOR_EVER)
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
            delta = FOR_EVER
        _store(memory, key, phi, delta, length if is_mate else 0, is_escape and repeats)
        is_done = phi >= most_phi or delta >= most_delta or best < 0
        if is_done or memory.counters[_LEFT] <= 0 or _is_full(memory):
            return
        move = int64(memory.moves[level, best])
        captured = play(position, move)
        memory.path[level + 1] = position.key
        _look(
            position,
            level + 1,
            not is_attack,
            min(most_delta - delta + best_phi, FOR_EVER),
            min(most_phi, second + 1),
            memory,
        )
        undo(position, move, captured)


@jit_inner
def _write_moves(position: Record, level: int, is_attack: bool, memory: _Memory) -> int:
    """Write checks, or all defences, and the keys that they lead to; returns how many."""
    moves = memory.moves[level]
    generated, _ = legal_moves(position, moves)
    number = 0
    for k in range(generated):
        move = int64(moves[k])
        captured = play(position, move)
        if not is_attack or king_is_attacked(position, int64(position.turn)):
            moves[number] = move
            memory.child_keys[level, number] = position.key
            number += 1
        undo(position, move, captured)
    return number


@jit_inner
def _numbers(memory: _Memory, level: int, k: int, is_attack: bool) -> tuple[int, int, int, bool]:
    """(phi, delta, length, repeats) after move `k`, for the side that is to move then."""
    key = memory.child_keys[level, k]
    is_repetition = level + 1 >= MOST_PLIES
    for earlier in range(level + 1):
        is_repetition |= memory.path[earlier] == key
    if is_repetition:
        return (0, FOR_EVER, 0, True) if is_attack else (FOR_EVER, 0, 0, True)
    place = _place_of(memory, key)
    if memory.keys[place] == 0:
        return 1, 1, 0, False
    return (
        int64(memory.phis[place]),
        int64(memory.deltas[place]),
        int64(memory.lengths[place]),
        bool(memory.repeats[place]),
    )


@jit_inner
def _store(
    memory: _Memory, key: np.uint64, phi: int, delta: int, length: int, repeats: bool
) -> None:
    place = _place_of(memory, key)
    if memory.keys[place] == 0:
        memory.counters[_USED] += 1
        memory.keys[place] = key
    memory.phis[place] = phi
    memory.deltas[place] = delta
    memory.lengths[place] = length
    memory.repeats[place] = repeats

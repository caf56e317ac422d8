"""Short forced mates, of a batch of positions: each move of the attacker gives check.

Mates of any length are found by `keisei.search.tsume`.
"""

from typing import Final

import numpy as np
import numpy.typing as npt

from keisei.constants import MOVE_BUFFER
from keisei.errors import KeiseiError
from keisei.shogi.attacks import king_is_attacked
from keisei.shogi.game import ShogiGame
from keisei.shogi.jit import int64, jit, jit_inner
from keisei.shogi.mate import (
    discovering_pieces,
    find_mate,
    may_give_check,
    write_checking_squares,
)
from keisei.shogi.movegen import legal_moves
from keisei.shogi.position import (
    OWN,
    Array,
    Record,
    Records,
    new_positions,
    play,
    undo,
)
from keisei.shogi.tables import NO_SQUARE, NUM_CLASSES
from keisei.shogi.threads import RangePool
from keisei.shogi.types import Move
from keisei.shogi.vector import VectorShogi

MAX_MATE_PLIES: Final = 9
"""Longest mate that can be searched for."""

RULE_NODES: Final = 500
"""Checks that the mate rule, which runs at every ply, examines in each position."""


class MateSearch:
    """Finds mates in up to `plies` plies (1, 3, 5 ...) by visiting at most `nodes` positions."""

    def __init__(self, plies: int, nodes: int = 20_000) -> None:
        if not 1 <= plies <= MAX_MATE_PLIES or plies % 2 == 0:
            raise KeiseiError(f"mates take 1, 3 ... {MAX_MATE_PLIES} plies, not {plies}")
        self.plies = plies
        self.nodes = nodes

    def find(
        self,
        positions: Records,
        legal_actions: npt.NDArray[np.uint16],
        legal_counts: npt.NDArray[np.int32],
        pool: RangePool | None = None,
    ) -> npt.NDArray[np.int64]:
        """Return the legal index ``[B]`` of the first move of the shortest mate; -1: no mate.

        Positions are changed and restored meanwhile; `pool` divides them among its threads.
        """
        legal_indices = np.full(len(positions), -1, dtype=np.int64)
        arguments = (
            positions,
            legal_actions,
            legal_counts,
            self.plies,
            self.nodes,
            legal_indices,
        )
        if pool is None:
            find_forced_mates(*arguments, 0, len(positions))
        else:
            pool.run(find_forced_mates, len(positions), *arguments)
        return legal_indices

    def line(self, game: ShogiGame) -> list[Move]:
        """Return the moves of the shortest mate against the longest defence; empty without a mate.

        Moves are pushed to `game` and popped again.
        """
        plies, move = self._shortest(game, self.plies)
        if move is None:
            return []
        game.push(move)
        line, replies = [move], []
        for reply in game.legal_moves:
            game.push(reply)
            replies.append((self._shortest(game, plies - 2)[0], reply))
            game.pop()
        if replies:
            _, reply = max(replies, key=lambda found: found[0])
            game.push(reply)
            line += [reply, *self.line(game)]
            game.pop()
        game.pop()
        return line

    def _shortest(self, game: ShogiGame, most: int) -> tuple[int, Move | None]:
        """Return length and first move of the shortest mate in up to `most` plies, or (0, None)."""
        positions = new_positions(1)
        positions[0] = game.position
        legal = game.legal_actions
        counts = np.array([len(legal)], dtype=np.int32)
        for plies in range(1, most + 1, 2):
            legal_index = MateSearch(plies, self.nodes).find(positions, legal[None], counts)[0]
            if legal_index >= 0:
                return plies, game.legal_moves[int(legal_index)]
        return 0, None


class MateRule:
    """The mate rule: a short forced mate is played, whatever the policy prefers."""

    def __init__(self, plies: int) -> None:
        """Make a rule for mates of up to `plies` plies: 1, 3 ...; 0 switches it off."""
        self.plies = plies
        self._search = MateSearch(plies, RULE_NODES) if plies > 1 else None

    def legal_indices(
        self, env: VectorShogi, games: npt.NDArray[np.int64]
    ) -> npt.NDArray[np.int64]:
        """Return the legal index ``[G]`` of the mating move in each of the `games`, or -1."""
        if self.plies == 0:
            return np.full(len(games), -1, dtype=np.int64)
        if self._search is None:
            return env.mates_in_one()[games]
        if len(games) == env.num_games:  # without copying the positions of all games
            return self._search.find(env.positions, env.legal_actions, env.legal_counts, env.pool)[
                games
            ]
        return self._search.find(
            env.positions[games], env.legal_actions[games], env.legal_counts[games], env.pool
        )


@jit
def find_forced_mates(
    positions: Records,
    legal_actions: Array,
    legal_counts: Array,
    plies: int,
    nodes: int,
    legal_indices: Array,
    start: int,
    stop: int,
) -> None:
    """Write the legal index of the shortest mate's first move of positions `start` to `stop`."""
    moves = np.empty((plies + 1, MOVE_BUFFER), dtype=np.uint16)
    replies = np.empty(MOVE_BUFFER, dtype=np.uint16)
    checking = np.zeros((plies + 1, NUM_CLASSES, 2), dtype=np.uint64)
    nodes_left = np.zeros(1, dtype=np.int64)
    for index in range(start, stop):
        count = int64(legal_counts[index])
        for k in range(count):
            moves[0, k] = legal_actions[index, k]
        for length in range(1, plies + 1, 2):  # short mates first
            nodes_left[0] = nodes
            found = _attack(
                positions[index], 0, count, length, moves, replies, checking, nodes_left
            )
            if found >= 0:
                legal_indices[index] = found
                break


@jit_inner
def _attack(
    position: Record,
    level: int,
    count: int,
    plies: int,
    moves: Array,
    replies: Array,
    checking: Array,
    nodes_left: Array,
) -> int:
    """Return the index in ``moves[level, :count]`` of a move that mates within `plies`, or -1."""
    if plies == 1:
        nodes_left[0] -= 1
        return find_mate(position, moves[level], count, replies, checking[level])
    mover = int64(position.turn)
    if position.kings[1 - mover, OWN] == NO_SQUARE:
        return -1
    write_checking_squares(position, 1 - mover, checking[level])
    discovering = discovering_pieces(position, 1 - mover)
    for k in range(count):
        if nodes_left[0] <= 0:
            return -1
        move = int64(moves[level, k])
        is_direct, discovers = may_give_check(position, move, checking[level], discovering)
        if not (is_direct or discovers):
            continue
        captured = play(position, move)
        # A piece that moves along the line to the king discovers nothing.
        is_mate = is_direct or king_is_attacked(position, int64(position.turn))
        if is_mate:
            nodes_left[0] -= 1
            defences, _ = legal_moves(position, moves[level + 1])
            for reply in range(defences):  # each of them must be mated
                defence = int64(moves[level + 1, reply])
                recaptured = play(position, defence)
                attacks, _ = legal_moves(position, moves[level + 2])
                found = _attack(
                    position, level + 2, attacks, plies - 2, moves, replies, checking, nodes_left
                )
                undo(position, defence, recaptured)
                if found < 0:
                    is_mate = False
                    break
        undo(position, move, captured)
        if is_mate:
            return k
    return -1

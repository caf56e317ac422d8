"""The kernels of `vector.VectorShogi`. They trust their input; the class validates it.

Every game has its own generator state, so results do not depend on the number of threads.
"""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from keisei.constants import NUM_ACTIONS
from keisei.shogi.chance import random_below
from keisei.shogi.jit import int64, jit, jit_inline
from keisei.shogi.movegen import legal_moves
from keisei.shogi.packed import pack
from keisei.shogi.position import Array, Records, play
from keisei.shogi.rules import earlier_occurrences, judge

_OPENING_TRIES = 64
"""Random openings that may end the game by themselves before the game starts without one."""


BEGIN = -1
"""In place of an action: begin the game anew."""

FORFEIT = -2
"""In place of an action: the mover tried something illegal and loses."""

_ILLEGAL_MOVE = 7
"""`rules.Termination.ILLEGAL_MOVE`"""


class Games(NamedTuple):
    """The state of N games, one array a subject."""

    positions: Records  # [N] POSITION
    starts: Records  # [S] POSITION: where games begin
    start_indices: npt.NDArray[np.int32]  # [N, 2]: start of the game in each buffer of `moves`
    keys: npt.NDArray[np.uint64]  # [N, L]: Zobrist keys since the start of the game
    checks: npt.NDArray[np.bool_]  # [N, L]: whether the mover was in check
    moves: npt.NDArray[np.uint16]  # [N, 2, L]: of this game and of the one that ended last
    buffers: npt.NDArray[np.uint8]  # [N]: which half of `moves` is this game's
    final_lengths: npt.NDArray[np.int32]  # [N]: plies of the game that ended last, -1: none yet
    packed: Records  # [N] PACKED
    final_packed: Records  # [N] PACKED
    legal_actions: npt.NDArray[np.uint16]  # [N, 593]
    legal_counts: npt.NDArray[np.int32]  # [N]
    rewards: npt.NDArray[np.float32]  # [N]
    terminations: npt.NDArray[np.uint8]  # [N]
    winners: npt.NDArray[np.int8]  # [N]
    random_states: npt.NDArray[np.uint64]  # [N]
    settings: npt.NDArray[np.int64]  # ply limit, declaration rule, opening plies


@jit
def step_games(games: Games, actions: Array, start: int, stop: int) -> None:
    """Play ``actions[N]`` in games `start` to `stop`, judge, begin anew those that ended.

    `BEGIN` and `FORFEIT` may stand in place of an action. Beginnings, opening plies and the
    players' moves all go through one call of `advance`: each call is a copy of the generator that
    has to be compiled.
    """
    opening_plies = games.settings[2]
    for i in range(start, stop):
        move = actions[i]
        is_players_move = move != BEGIN
        opening_left = opening_plies
        tries = 0
        while True:
            mover = int64(games.positions[i].turn)
            if move == FORFEIT:
                termination, winner = _ILLEGAL_MOVE, 1 - mover
            else:
                termination, winner = advance(games, i, move)
            if is_players_move:
                _report(games, i, mover, termination, winner)
                if not termination:
                    break
                is_players_move = False
                move = BEGIN
            elif termination:  # the opening ended the game by itself: another one, at last none
                tries += 1
                opening_left = opening_plies if tries < _OPENING_TRIES else 0
                move = BEGIN
            elif opening_left == 0:
                break
            else:
                opening_left -= 1
                choice = random_below(games.random_states, i, games.legal_counts[i])
                move = int64(games.legal_actions[i, choice])


@jit_inline
def _report(games: Games, i: int, mover: int, termination: int, winner: int) -> None:
    """Say how the move that `mover` just played in game `i` ended."""
    games.terminations[i] = termination
    games.winners[i] = winner
    games.rewards[i] = 0.0 if winner < 0 else (1.0 if winner == mover else -1.0)
    if termination:
        position = games.positions[i]
        games.final_packed[i] = games.packed[i]
        games.final_lengths[i] = int64(position.ply) - int64(position.start_ply)
        games.buffers[i] = 1 - games.buffers[i]


@jit_inline
def advance(games: Games, i: int, move: int) -> tuple[int, int]:
    """Play a move in game `i`, or begin it: (termination, winner) of the new position."""
    position = games.positions[i]
    buffer = int64(games.buffers[i])
    if move == BEGIN:
        which = 0
        if len(games.starts) > 1:
            which = random_below(games.random_states, i, len(games.starts))
        games.start_indices[i, buffer] = which
        games.positions[i] = games.starts[which]
        length = 0
    else:
        length = int64(position.ply) - int64(position.start_ply) + 1
        games.moves[i, buffer, length - 1] = move
        play(position, move)
    number, in_check = legal_moves(position, games.legal_actions[i])
    games.legal_counts[i] = number
    games.keys[i, length] = position.key
    games.checks[i, length] = in_check
    occurrences = earlier_occurrences(games.keys[i], length)
    ply_limit, declaration = games.settings[0], games.settings[1]
    pack(position, games.moves[i, buffer], occurrences, in_check, ply_limit, games.packed[i])
    return judge(
        position, games.keys[i], games.checks[i], number, occurrences, ply_limit, declaration
    )


@jit
def find_illegal(legal_actions: Array, legal_counts: Array, actions: Array, start: int) -> int:
    """The first game from `start` on whose action is not among its legal ones, or -1."""
    for i in range(start, len(actions)):
        if actions[i] < 0 or actions[i] >= NUM_ACTIONS:
            return i
        action = np.uint16(actions[i])
        found = False
        for k in range(legal_counts[i]):  # no early exit, 16 bits: this way it is vectorised
            found |= legal_actions[i, k] == action
        if not found:
            return i
    return -1


@jit
def sample_actions(
    legal_actions: Array, legal_counts: Array, random_states: Array, actions: Array
) -> None:
    """Write a uniformly random legal action of each game into ``actions[N]``."""
    for i in range(len(actions)):
        actions[i] = legal_actions[i, random_below(random_states, i, legal_counts[i])]


@jit
def write_mask(
    legal_actions: Array, legal_counts: Array, mask: Array, start: int, stop: int
) -> None:
    """Write the dense legal mask, ``bool[N, 13527]``, of games `start` to `stop`."""
    for i in range(start, stop):
        for action in range(mask.shape[1]):
            mask[i, action] = False
        for k in range(legal_counts[i]):
            mask[i, legal_actions[i, k]] = True

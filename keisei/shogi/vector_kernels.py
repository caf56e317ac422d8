"""The state of many games as arrays, the kernels that step it, and its set-up and validation."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from keisei.constants import MAX_LEGAL_MOVES, NUM_ACTIONS
from keisei.errors import IllegalPositionError, KeiseiError
from keisei.shogi.game import ShogiGame
from keisei.shogi.jit import int64, jit, jit_inline
from keisei.shogi.legality import from_diagram
from keisei.shogi.movegen import legal_moves
from keisei.shogi.notation.sfen import parse_sfen
from keisei.shogi.packed import Positions, new_packed, pack, require_valid, unpack_diagram
from keisei.shogi.position import (
    POSITION,
    Array,
    Records,
    new_positions,
    play,
)
from keisei.shogi.rng import random_below
from keisei.shogi.rules import DeclarationRule, Termination, earlier_occurrences, outcome_of
from keisei.shogi.types import Diagram, PieceKind

MAX_OPENING_TRIES = 64
"""Random openings that are tried before a game starts without one: an opening can end the game."""

BEGIN = -1
"""In place of an action: start a new game."""

FORFEIT = -2
"""In place of an action: the mover tried an illegal action and loses."""

_ILLEGAL_MOVE = int(Termination.ILLEGAL_MOVE)


class Games(NamedTuple):
    """The state of N games, one array for each quantity."""

    positions: Records  # [N] POSITION
    starts: Records  # [S] POSITION: start positions
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
    rng_states: npt.NDArray[np.uint64]  # [N]: see `rng.random_below`
    settings: npt.NDArray[np.int64]  # ply limit, declaration rule, opening plies

    def observe(self, rows: npt.NDArray[np.int64] | slice | None = None) -> Positions:
        """Return the current positions of some games, or of all."""
        positions = Positions(self.packed, self.legal_actions, self.legal_counts)
        return positions if rows is None else positions.take(rows)


@jit
def step_games(games: Games, actions: Array, start: int, stop: int) -> None:
    """Play ``actions[N]`` in games `start` to `stop`, and reset the games that ended.

    An action can also be `BEGIN` or `FORFEIT`. Starts, opening plies and the players' moves all go
    through one call of `advance`, because each call is compiled as a copy of the move generator.
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
            elif termination:  # the opening ended the game: try another one, in the end none
                tries += 1
                opening_left = opening_plies if tries < MAX_OPENING_TRIES else 0
                move = BEGIN
            elif opening_left == 0:
                break
            else:
                opening_left -= 1
                choice = random_below(games.rng_states, i, games.legal_counts[i])
                move = int64(games.legal_actions[i, choice])


@jit_inline
def _report(games: Games, i: int, mover: int, termination: int, winner: int) -> None:
    """Write the outcome of the move that `mover` just played in game `i`."""
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
    """Play a move in game `i`, or start it; return (termination, winner) of the new position."""
    position = games.positions[i]
    buffer = int64(games.buffers[i])
    if move == BEGIN:
        which = 0
        if len(games.starts) > 1:
            which = random_below(games.rng_states, i, len(games.starts))
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
    return outcome_of(
        position, games.keys[i], games.checks[i], number, occurrences, ply_limit, declaration
    )


@jit
def find_illegal(legal_actions: Array, legal_counts: Array, actions: Array, start: int) -> int:
    """Return the first game, from `start`, whose action is illegal, or -1."""
    for i in range(start, len(actions)):
        if actions[i] < 0 or actions[i] >= NUM_ACTIONS:
            return i
        action = np.uint16(actions[i])
        found = False
        for k in range(legal_counts[i]):  # without early exit and in 16 bits the loop is vectorised
            found |= legal_actions[i, k] == action
        if not found:
            return i
    return -1


@jit
def sample_actions(
    legal_actions: Array, legal_counts: Array, rng_states: Array, actions: Array
) -> None:
    """Sample a uniformly random legal action of each game into ``actions[N]``."""
    for i in range(len(actions)):
        actions[i] = legal_actions[i, random_below(rng_states, i, legal_counts[i])]


@jit
def write_mask(
    legal_actions: Array, legal_counts: Array, mask: Array, start: int, stop: int
) -> None:
    """Write the legal mask, ``bool[N, 13527]``, of games `start` to `stop`."""
    for i in range(start, stop):
        for action in range(mask.shape[1]):
            mask[i, action] = False
        for k in range(legal_counts[i]):
            mask[i, legal_actions[i, k]] = True


def new_games(number: int, starts: Records, ply_limit: int) -> Games:
    """Allocate the state of `number` games that have not started yet."""
    length = ply_limit + 1
    return Games(
        positions=new_positions(number),
        starts=starts,
        start_indices=np.zeros((number, 2), dtype=np.int32),
        keys=np.zeros((number, length), dtype=np.uint64),
        checks=np.zeros((number, length), dtype=np.bool_),
        moves=np.zeros((number, 2, length), dtype=np.uint16),
        buffers=np.zeros(number, dtype=np.uint8),
        final_lengths=np.full(number, -1, dtype=np.int32),
        packed=new_packed(number),
        final_packed=new_packed(number),
        legal_actions=np.zeros((number, MAX_LEGAL_MOVES), dtype=np.uint16),
        legal_counts=np.zeros(number, dtype=np.int32),
        rewards=np.zeros(number, dtype=np.float32),
        terminations=np.zeros(number, dtype=np.uint8),
        winners=np.full(number, -1, dtype=np.int8),
        rng_states=np.zeros(number, dtype=np.uint64),
        settings=np.zeros(3, dtype=np.int64),
    )


def start_records(
    starts: Sequence[str | Diagram],
    ply_limit: int,
    opening_plies: int,
    declaration: DeclarationRule,
) -> Records:
    """Set up start positions; `IllegalPositionError` if no game can be played from one."""
    if isinstance(starts, str) or not starts:
        raise ValueError("starts must be a list of at least one SFEN or diagram")
    records = new_positions(len(starts))
    for index, start in enumerate(starts):
        diagram = parse_sfen(start) if isinstance(start, str) else start
        if diagram.move_number - 1 + opening_plies >= ply_limit:
            raise IllegalPositionError(
                f"start {index} is at ply {diagram.move_number - 1}: adding {opening_plies} "
                f"opening plies leaves nothing below the ply limit of {ply_limit}"
            )
        if sum(piece is not None and piece.kind is PieceKind.KING for piece in diagram.board) != 2:
            raise IllegalPositionError(f"start {index} lacks a king")
        outcome = ShogiGame(diagram, declaration=declaration).outcome(claim_declaration=True)
        if outcome is not None:
            raise IllegalPositionError(
                f"start {index}: the game is already over: {outcome.termination.words}"
            )
        records[index] = from_diagram(diagram)
    return records


def branches_of(
    game: ShogiGame, number: int, *, ply_limit: int, declaration: DeclarationRule
) -> Games:
    """Make `number` copies of a game, including its history, so that a search can try moves.

    The packed positions and legal moves of the copies are left empty: a search does not need them.
    """
    start = new_positions(1)
    start[0] = from_diagram(game.start)
    games = new_games(number, start, ply_limit)
    keys, checks = game.history
    games.positions[:] = game.position
    games.keys[:, : len(keys)] = keys
    games.checks[:, : len(checks)] = checks
    games.moves[:, 0, : len(game.actions)] = game.actions
    games.settings[:2] = (ply_limit, int(declaration))
    return games


def require_valid_state(state: Mapping[str, npt.NDArray[Any]], ply_limit: int) -> None:
    """Raise `KeiseiError` for a damaged state: kernels would write outside of their arrays."""
    positions = state["positions"]
    lengths = positions["ply"].astype(np.int64) - positions["start_ply"]
    max_length = np.maximum(lengths, state["final_lengths"]).max()
    is_valid = (
        (lengths >= 0).all()
        and max_length <= ply_limit
        and (positions["turn"] <= 1).all()
        and (state["buffers"] <= 1).all()
        and (state["start_indices"] >= 0).all()
        and (state["start_indices"] < len(state["starts"])).all()
        and (state["rng_states"] != 0).all()
    )
    if not is_valid:
        raise KeiseiError("the saved state is damaged: a counter is out of range")
    for name in ("packed", "final_packed"):
        require_valid(state[name])
    moves = np.zeros(MAX_LEGAL_MOVES, dtype=np.uint16)
    for index, packed in enumerate(state["packed"]):
        fresh = from_diagram(unpack_diagram(packed))
        number, _ = legal_moves(fresh, moves)
        are_equal = [
            np.array_equal(fresh[name], positions[index][name])
            for name in POSITION.names or ()
            if name != "start_ply"
        ]
        listed = state["legal_actions"][index, :number]
        if not (
            all(are_equal)
            and state["legal_counts"][index] == number
            and np.array_equal(listed, moves[:number])
        ):
            raise KeiseiError(
                f"the saved state is damaged: the arrays of game {index} contradict each other"
            )

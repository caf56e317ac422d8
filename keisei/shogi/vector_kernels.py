"""The state of many games: how it is made, and what a saved one must satisfy to be trusted."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from keisei.constants import MAX_LEGAL_MOVES, NUM_ACTIONS
from keisei.errors import IllegalPositionError, KeiseiError
from keisei.shogi.game import ShogiGame
from keisei.shogi.jit import int64, jit, jit_inline
from keisei.shogi.movegen import legal_moves
from keisei.shogi.notation.sfen import parse_sfen
from keisei.shogi.packed import Positions, new_packed, pack, require_sound, unpack_diagram
from keisei.shogi.position import (
    POSITION,
    Array,
    Records,
    new_positions,
    play,
)
from keisei.shogi.rng import random_below
from keisei.shogi.rules import DeclarationRule, earlier_occurrences, outcome_of
from keisei.shogi.setup import from_diagram
from keisei.shogi.types import Diagram, PieceKind

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

    def observe(self, rows: npt.NDArray[np.int64] | slice | None = None) -> Positions:
        """The positions to move in now, of some games or of all."""
        positions = Positions(self.packed, self.legal_actions, self.legal_counts)
        return positions if rows is None else positions.take(rows)


@jit
def step_games(games: Games, actions: Array, start: int, stop: int) -> None:
    """Play ``actions[N]`` in games `start` to `stop`; begin those that ended again.

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
    return outcome_of(
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


def new_games(number: int, starts: Records, ply_limit: int) -> Games:
    """Arrays for `number` games that have not begun yet."""
    longest = ply_limit + 1
    return Games(
        positions=new_positions(number),
        starts=starts,
        start_indices=np.zeros((number, 2), dtype=np.int32),
        keys=np.zeros((number, longest), dtype=np.uint64),
        checks=np.zeros((number, longest), dtype=np.bool_),
        moves=np.zeros((number, 2, longest), dtype=np.uint16),
        buffers=np.zeros(number, dtype=np.uint8),
        final_lengths=np.full(number, -1, dtype=np.int32),
        packed=new_packed(number),
        final_packed=new_packed(number),
        legal_actions=np.zeros((number, MAX_LEGAL_MOVES), dtype=np.uint16),
        legal_counts=np.zeros(number, dtype=np.int32),
        rewards=np.zeros(number, dtype=np.float32),
        terminations=np.zeros(number, dtype=np.uint8),
        winners=np.full(number, -1, dtype=np.int8),
        random_states=np.zeros(number, dtype=np.uint64),
        settings=np.zeros(3, dtype=np.int64),
    )


def start_records(
    starts: Sequence[str | Diagram],
    ply_limit: int,
    opening_plies: int,
    declaration: DeclarationRule,
) -> Records:
    """The positions that games begin at; refused where no game could go on from one."""
    if isinstance(starts, str) or not starts:
        raise ValueError("starts must be a list of at least one SFEN or diagram")
    records = new_positions(len(starts))
    for index, start in enumerate(starts):
        diagram = parse_sfen(start) if isinstance(start, str) else start
        if diagram.move_number - 1 + opening_plies >= ply_limit:
            raise IllegalPositionError(
                f"start {index} begins at ply {diagram.move_number - 1}, with {opening_plies} "
                f"opening plies that leaves nothing below the ply limit of {ply_limit}"
            )
        if sum(piece is not None and piece.kind is PieceKind.KING for piece in diagram.board) != 2:
            raise IllegalPositionError(f"start {index} lacks a king")
        outcome = ShogiGame(diagram, declaration=declaration).outcome(claim_declaration=True)
        if outcome is not None:
            raise IllegalPositionError(
                f"in start {index} the game is over already: {outcome.termination.words}"
            )
        records[index] = from_diagram(diagram)
    return records


def branches_of(
    game: ShogiGame, number: int, *, ply_limit: int, declaration: DeclarationRule
) -> Games:
    """So many copies of one game, its history included, in which a search can try moves.

    Only what a search needs is there: the packed position and the legal moves are not.
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


def require_sound_state(state: Mapping[str, npt.NDArray[Any]], ply_limit: int) -> None:
    """Refuse a damaged state: kernels would follow it out of their arrays."""
    positions = state["positions"]
    lengths = positions["ply"].astype(np.int64) - positions["start_ply"]
    longest = np.maximum(lengths, state["final_lengths"]).max()
    is_sound = (
        (lengths >= 0).all()
        and longest <= ply_limit
        and (positions["turn"] <= 1).all()
        and (state["buffers"] <= 1).all()
        and (state["start_indices"] >= 0).all()
        and (state["start_indices"] < len(state["starts"])).all()
        and (state["random_states"] != 0).all()
    )
    if not is_sound:
        raise KeiseiError("the saved state is damaged: a counter is out of range")
    for name in ("packed", "final_packed"):
        require_sound(state[name])
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
            raise KeiseiError(f"the saved state is damaged: game {index} contradicts itself")


def random_states(seed: int, number: int, first: int = 0) -> npt.NDArray[np.uint64]:
    """One non-zero generator state for each of games `first`, `first` + 1 ..., all unlike."""
    sequence = np.random.SeedSequence(seed)
    states = sequence.generate_state(first + number, dtype=np.uint64)[first:]
    return np.maximum(states, np.uint64(1))

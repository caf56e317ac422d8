"""The state of many games: how it is made, and what a saved one must satisfy to be trusted."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from keisei.constants import MAX_LEGAL_MOVES
from keisei.errors import IllegalPositionError, KeiseiError
from keisei.shogi.diagram import Diagram
from keisei.shogi.game import ShogiGame
from keisei.shogi.movegen import legal_moves
from keisei.shogi.notation.sfen import parse_sfen
from keisei.shogi.packed import new_packed, require_sound, unpack_diagram
from keisei.shogi.pieces import PieceKind
from keisei.shogi.position import POSITION, Records, new_positions
from keisei.shogi.rules import DeclarationRule
from keisei.shogi.setup import from_diagram
from keisei.shogi.vector_kernels import Games


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

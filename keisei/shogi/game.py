"""`ShogiGame`: one game with its moves, for people, notations and tests.

>>> game = ShogiGame()
>>> game.push("7g7f")
>>> len(game.legal_moves)
30
>>> game.sfen()
'lnsgkgsnl/1r5b1/ppppppppp/9/9/2P6/PP1PPPPPP/1B5R1/LNSGKGSNL w - 2'
"""

from copy import copy
from typing import Self

import numpy as np
import numpy.typing as npt

from keisei.constants import MAX_PLY, MOVE_BUFFER
from keisei.errors import IllegalMoveError
from keisei.shogi.actions import PolicyOutputMapper
from keisei.shogi.legality import from_diagram, why_action_is_illegal, why_illegal
from keisei.shogi.mate import NO_MATE, MateScratch, find_mates
from keisei.shogi.movegen import legal_moves
from keisei.shogi.notation.sfen import (
    STARTPOS_SFEN,
    format_position,
    format_sfen,
    parse_position,
)
from keisei.shogi.position import Record, new_positions, play, to_diagram, undo
from keisei.shogi.render.svg import board_svg
from keisei.shogi.render.text import board_text
from keisei.shogi.rules import (
    DeclarationRule,
    Outcome,
    as_outcome,
    earlier_occurrences,
    may_declare,
    outcome_of,
)
from keisei.shogi.types import Color, Diagram, Move, Piece, PieceKind

_INITIAL_HISTORY = 256
_mapper = PolicyOutputMapper()


class ShogiGame:
    """A game: its start, its moves and its current position.

    `start` is an SFEN, a USI ``position`` command (moves included), or a `Diagram`.
    """

    ply_limit: int
    """The ply at which the game is a draw."""

    declaration: DeclarationRule
    """The rule by which a win may be declared."""

    def __init__(
        self,
        start: str | Diagram = STARTPOS_SFEN,
        *,
        ply_limit: int = MAX_PLY,
        declaration: DeclarationRule = DeclarationRule.POINTS_27,
    ) -> None:
        diagram, moves = parse_position(start) if isinstance(start, str) else (start, [])
        if not 1 <= ply_limit <= MAX_PLY:
            raise ValueError(f"ply_limit is {ply_limit}, it must be from 1 to {MAX_PLY}")
        self.ply_limit = ply_limit
        self.declaration = DeclarationRule(declaration)
        self.start = diagram
        self._position = from_diagram(diagram)
        self._actions: list[int] = []
        self._captured: list[int] = []
        self._keys = np.zeros(_INITIAL_HISTORY, dtype=np.uint64)
        self._checks = np.zeros(_INITIAL_HISTORY, dtype=np.bool_)
        self._legal = np.zeros(MOVE_BUFFER, dtype=np.uint16)
        self._update()
        for number, move in enumerate(moves, 1):
            try:
                self.push(move)
            except IllegalMoveError as error:
                raise IllegalMoveError(f"move {number} of the list: {error}") from None

    # ---- The position ----

    @property
    def turn(self) -> Color:
        """The side to move."""
        return Color(int(self._position.turn))

    @property
    def ply(self) -> int:
        """Plies played, including those before `start`."""
        return int(self._position.ply)

    @property
    def diagram(self) -> Diagram:
        """The current position as a diagram."""
        return to_diagram(self._position)

    @property
    def position(self) -> Record:
        """The record that kernels work on; do not modify it."""
        return self._position

    @property
    def key(self) -> int:
        """The Zobrist key of board, hands and side to move."""
        return int(self._position.key)

    def piece_at(self, square: int) -> Piece | None:
        """Return the piece on a square; None if it is empty."""
        return self.diagram.board[square]

    def hand(self, color: Color) -> tuple[int, ...]:
        """Return the counts of P L N S G B R in the hand of a side."""
        return tuple(self._position.hands[color].tolist())

    def sfen(self) -> str:
        """Return the SFEN of the position."""
        return format_sfen(self.diagram)

    def usi_position(self) -> str:
        """Return the USI ``position`` command of the whole game so far."""
        return format_position(self.start, self.moves)

    # ---- Moves ----

    @property
    def legal_moves(self) -> list[Move]:
        """All legal moves."""
        turn = self.turn
        return [_mapper.move(action, turn) for action in self.legal_actions.tolist()]

    @property
    def legal_actions(self) -> npt.NDArray[np.uint16]:
        """The policy indices of all legal moves, in the order of `legal_moves`."""
        return self._legal[: self._number_of_moves].copy()

    def is_legal(self, move: Move | str) -> bool:
        """Return whether a move is legal in the current position."""
        return _mapper.index(_as_move(move), self.turn) in self._legal[: self._number_of_moves]

    def push(self, move: Move | str) -> None:
        """Play a move; raise `IllegalMoveError`, with the reason, if it is not legal."""
        move = _as_move(move)
        if not self.is_legal(move):
            raise IllegalMoveError(f"{move}: {why_illegal(self._position, move)}")
        self.push_action(_mapper.index(move, self.turn))

    def push_action(self, action: int) -> None:
        """Play a move given by its policy index."""
        if action not in self._legal[: self._number_of_moves]:
            raise IllegalMoveError(why_action_is_illegal(self._position, action))
        if self.ply == MAX_PLY:
            raise IllegalMoveError(f"the game has reached ply {MAX_PLY}, the maximum")
        self._captured.append(int(play(self._position, int(action))))
        self._actions.append(int(action))
        self._update()

    def pop(self) -> Move:
        """Undo the last move and return it."""
        if not self._actions:
            raise IndexError("there is no move to undo")
        action = self._actions.pop()
        undo(self._position, action, self._captured.pop())
        self._update()
        return _mapper.move(action, self.turn)

    @property
    def moves(self) -> list[Move]:
        """The moves played from `start`."""
        first = self.start.turn
        return [
            _mapper.move(action, Color(first ^ index & 1))
            for index, action in enumerate(self._actions)
        ]

    @property
    def actions(self) -> npt.NDArray[np.uint16]:
        """The policy indices of the moves played from `start`."""
        return np.array(self._actions, dtype=np.uint16)

    @property
    def history(self) -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.bool_]]:
        """Zobrist keys and check flags of all positions from `start` to this one."""
        length = len(self._actions) + 1
        return self._keys[:length].copy(), self._checks[:length].copy()

    @property
    def last_move(self) -> Move | None:
        """The move played last; None at `start`."""
        return _mapper.move(self._actions[-1], self.turn.opponent) if self._actions else None

    def mate_in_one(self) -> Move | None:
        """Return a move that mates at once; None if there is none."""
        positions = new_positions(1)
        positions[0] = self._position
        legal_index = np.empty(1, dtype=np.int64)
        legal, number = self._legal[None], np.array([self._number_of_moves], dtype=np.int32)
        find_mates(positions, legal, number, MateScratch.of(1), legal_index, 0, 1)
        if legal_index[0] == NO_MATE:
            return None
        return _mapper.move(int(legal[0, legal_index[0]]), self.turn)

    # ---- Check, repetition, outcome ----

    @property
    def in_check(self) -> bool:
        """Whether the side to move is in check."""
        return bool(self._checks[len(self._actions)])

    @property
    def checked_king(self) -> int | None:
        """The square of the king that is in check; None if neither is."""
        if not self.in_check:
            return None
        return self.diagram.board.index(Piece(self.turn, PieceKind.KING))

    @property
    def repetitions(self) -> int:
        """Number of earlier occurrences of this position in the game."""
        return int(earlier_occurrences(self._keys, len(self._actions)))

    @property
    def can_declare(self) -> bool:
        """Whether the side to move may declare a win by entering king."""
        return bool(may_declare(self._position, self.in_check, int(self.declaration)))

    def outcome(self, *, claim_declaration: bool = False) -> Outcome | None:
        """Return the outcome of the game; None if it is not over.

        Declaring a win is optional: it counts only with `claim_declaration`.
        """
        return as_outcome(
            *outcome_of(
                self._position,
                self._keys,
                self._checks,
                self._number_of_moves,
                self.repetitions,
                self.ply_limit,
                int(self.declaration) if claim_declaration else 0,
            )
        )

    def copy(self) -> Self:
        """Return an independent copy of the game, without replaying its moves."""
        game = copy(self)
        positions = new_positions(1)
        positions[0] = self._position
        game._position = positions[0]
        game._actions = self._actions.copy()
        game._captured = self._captured.copy()
        game._keys, game._checks = self._keys.copy(), self._checks.copy()
        game._legal = self._legal.copy()
        return game

    # ---- Display ----

    def __repr__(self) -> str:
        settings = "" if self.ply_limit == MAX_PLY else f", ply_limit={self.ply_limit}"
        if self.declaration is not DeclarationRule.POINTS_27:
            settings += f", declaration=DeclarationRule.{self.declaration.name}"
        return f"{type(self).__name__}({self.usi_position()!r}{settings})"

    def __str__(self) -> str:
        return board_text(self.diagram, last_move=self.last_move)

    def _repr_svg_(self) -> str:
        """Draw the board, for notebooks."""
        return board_svg(self.diagram, last_move=self.last_move, check_square=self.checked_king)

    def _update(self) -> None:
        """Generate the legal moves of the position and add it to the history."""
        length = len(self._actions)
        if length == len(self._keys):
            self._keys = np.concatenate([self._keys, np.zeros_like(self._keys)])
            self._checks = np.concatenate([self._checks, np.zeros_like(self._checks)])
        number, in_check = legal_moves(self._position, self._legal)
        self._number_of_moves = int(number)
        self._keys[length] = self._position.key
        self._checks[length] = in_check


def _as_move(move: Move | str) -> Move:
    return Move.from_usi(move) if isinstance(move, str) else move

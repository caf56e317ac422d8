"""Game records, independent of the file format: start, moves, times, comments, headers, result.

>>> record = GameRecord.from_moves(["7g7f", "3c3d"], headers={"black": "Akane", "white": "Botan"})
>>> record.black, len(record.moves), record.result
('Akane', 2, None)
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date
from enum import Enum
from typing import Final

from keisei.errors import IllegalMoveError
from keisei.shogi.game import ShogiGame
from keisei.shogi.notation import headers as header
from keisei.shogi.notation.sfen import STARTPOS_SFEN, parse_sfen
from keisei.shogi.rules import Outcome, Termination
from keisei.shogi.types import HAND_KINDS, Color, Diagram, Move, Piece, PieceKind

STARTPOS: Final = parse_sfen(STARTPOS_SFEN)
"""The usual start position."""

MAX_SECONDS: Final = 5_999_999
"""Maximum time of a move, more than two months: KIF gives the minutes five digits."""

NEWLINE: Final = re.compile(r"\r\n|\n|\r")
"""A line break of any system."""


def text_lines(text: str) -> list[str]:
    """Split a comment into lines; an empty comment has none."""
    return NEWLINE.split(text) if text else []


class Ending(Enum):
    """The way a game, or its record, ended. "The mover" is the side whose turn it was."""

    RESIGNATION = "resignation"
    """The mover resigned (CSA %TORYO, KIF 投了)."""

    INTERRUPTED = "interrupted"
    """Broken off (%CHUDAN, 中断)."""

    REPETITION = "repetition"
    """Drawn by repetition (%SENNICHITE, 千日手)."""

    TIME_UP = "time up"
    """The mover ran out of time (%TIME_UP, 切れ負け)."""

    ILLEGAL_MOVE = "illegal move"
    """The mover broke a rule and lost (%ILLEGAL_MOVE, 反則負け)."""

    BLACK_FOUL = "foul by Black"
    """Black broke a rule and lost (%+ILLEGAL_ACTION; 反則勝ち when White was to move)."""

    WHITE_FOUL = "foul by White"
    """White broke a rule and lost (%-ILLEGAL_ACTION; 反則勝ち when Black was to move)."""

    IMPASSE = "impasse"
    """Drawn, both kings entered (%JISHOGI, 持将棋)."""

    DECLARATION = "declaration"
    """The mover declared a win by entering king (%KACHI, 入玉勝ち)."""

    DECLARED_DRAW = "declared draw"
    """The mover declared a draw by entering king (%HIKIWAKE, 引き分け)."""

    MAX_MOVES = "move limit"
    """Drawn at the move limit (%MAX_MOVES, 最大手数)."""

    TAKEN_BACK = "taken back"
    """The mover took a move back (%MATTA, 待った); the record stops there."""

    MATE = "mate"
    """The mover is mated (%TSUMI, 詰み)."""

    NO_MATE = "no mate"
    """A mating problem without a solution (%FUZUMI, 不詰)."""

    ERROR = "error"
    """An error of a program (%ERROR, エラー)."""

    DEFAULT_WIN = "win by default"
    """The mover's opponent did not play (KIF 不戦勝; no CSA code)."""

    DEFAULT_LOSS = "loss by default"
    """The mover did not play (KIF 不戦敗; no CSA code)."""

    def winner(self, mover: Color) -> Color | None:
        """The winner if the game ended so with `mover` to move; None for draws and open games."""
        if self in _MOVER_LOSES:
            return mover.opponent
        if self in (Ending.DECLARATION, Ending.DEFAULT_WIN):
            return mover
        return {Ending.BLACK_FOUL: Color.WHITE, Ending.WHITE_FOUL: Color.BLACK}.get(self)


_MOVER_LOSES: Final = frozenset(
    {
        Ending.RESIGNATION,
        Ending.TIME_UP,
        Ending.ILLEGAL_MOVE,
        Ending.MATE,
        Ending.DEFAULT_LOSS,
    }
)


@dataclass(frozen=True, slots=True)
class RecordedMove:
    """A move with its time, comment and bookmark."""

    move: Move

    seconds: float | None = None
    """Time the player used, up to `MAX_SECONDS`; None if it was not recorded."""

    comment: str = ""
    """Any number of lines, without the comment marks of the file formats."""

    bookmark: str = ""
    """A name for the position after the move (KIF and KI2 only)."""

    def __post_init__(self) -> None:
        _check_seconds(self.seconds)
        if len(text_lines(self.bookmark)) > 1:
            raise ValueError(f"bookmark {self.bookmark!r}; a bookmark must be a single line")


@dataclass(frozen=True, slots=True)
class Result:
    """The end of a record; `GameRecord.winner` is the side that won by it."""

    ending: Ending

    seconds: float | None = None
    """Time used before ending the game, up to `MAX_SECONDS`; None if it was not recorded."""

    comment: str = ""
    """Comment after the end."""

    def __post_init__(self) -> None:
        _check_seconds(self.seconds)


@dataclass(frozen=True, slots=True)
class Variation:
    """An alternative continuation: it replaces the line before it from move `ply` on."""

    ply: int
    """Number of the first move it replaces, counted from 1."""

    moves: list[RecordedMove]

    result: Result | None = None

    comment: str = ""
    """Comment before its first move."""


class Replay:
    """Plays through a game with the board as a plain Python list.

    Notations look up the piece on a square at every move; `ShogiGame.diagram` would convert the
    whole board each time.
    """

    def __init__(self, start: Diagram, moves: Iterable[Move] = ()) -> None:
        self.game = ShogiGame(start)
        self.board: list[Piece | None] = list(start.board)
        self.turn: Color = start.turn
        self.last_target: int | None = None
        """Target of the last move; None at the start."""

        self.length = 0
        """Number of moves played."""

        for move in moves:
            self.play(move)

    def rewind(self, length: int) -> None:
        """Take back moves until `length` are left, in a time proportional to their number."""
        if length >= self.length:
            return  # the board, which takes longest to read, is as it should be
        while self.length > length:
            self.game.pop()
            self.length -= 1
        diagram = self.game.diagram
        self.board, self.turn = list(diagram.board), diagram.turn
        last = self.game.last_move
        self.last_target = None if last is None else last.to_square

    def moving_piece(self, move: Move) -> Piece:
        """Return the piece that a move is about to move or drop."""
        if move.drop is not None:
            return Piece(self.turn, move.drop)
        piece = None if move.from_square is None else self.board[move.from_square]
        if piece is None:
            raise IllegalMoveError(f"{move}: there is no piece to move")
        return piece

    def holds(self, kind: PieceKind) -> bool:
        """Return whether the side to move has a piece of this kind in hand."""
        return kind in HAND_KINDS and self.game.hand(self.turn)[kind] > 0

    def play(self, move: Move) -> None:
        """Play a move; `IllegalMoveError`, without any change, if it is illegal."""
        self.game.push(move)
        piece = self.moving_piece(move)
        if move.from_square is not None:
            self.board[move.from_square] = None
        self.board[move.to_square] = (
            Piece(piece.color, piece.kind.promoted) if move.promote else piece
        )
        self.last_target = move.to_square
        self.turn = self.turn.opponent
        self.length += 1


@dataclass(slots=True)
class GameRecord:
    """A game from its start to its end. Every move is legal: the constructor plays them all.

    Raises `IllegalMoveError`, which names the move and the rule, or `IllegalPositionError`.
    """

    start: Diagram = STARTPOS

    moves: list[RecordedMove] = field(default_factory=list)

    headers: dict[str, str] = field(default_factory=dict)
    """Names, times and other headers as text, by the keys of `keisei.shogi.notation.headers`
    ("black", "event", ...); other keys are kept as the file spells them."""

    comment: str = ""
    """Comment before the first move."""

    result: Result | None = None
    """The end of the game; None if the record just stops."""

    variations: list[Variation] = field(default_factory=list)
    """In the order of a KIF file: each branches off the line before it (see `Variation.ply`)."""

    def __post_init__(self) -> None:
        replay = Replay(self.start)
        _play_all(replay, self.main_line)
        for variation in self.variations:
            if not 1 <= variation.ply <= replay.length + 1:
                raise IllegalMoveError(
                    f"a variation at move {variation.ply} of a line of {replay.length} moves"
                )
            replay.rewind(variation.ply - 1)
            _play_all(replay, [recorded.move for recorded in variation.moves])

    @classmethod
    def from_moves(
        cls,
        moves: Iterable[Move | str],
        *,
        start: Diagram = STARTPOS,
        headers: Mapping[str, str] | None = None,
        result: Result | None = None,
    ) -> "GameRecord":
        """Make a record of moves without times and comments, given as `Move` or USI text."""
        recorded = [
            RecordedMove(Move.from_usi(move) if isinstance(move, str) else move) for move in moves
        ]
        return cls(start, recorded, dict(headers or {}), result=result)

    @classmethod
    def from_game(
        cls,
        game: ShogiGame,
        outcome: Outcome | None = None,
        *,
        headers: Mapping[str, str] | None = None,
    ) -> "GameRecord":
        """Make the record of a `ShogiGame`, with its outcome if it is over.

        `outcome` is needed if the moves don't imply it: a declared win, an attempt at an illegal
        move, a ply limit that the game does not know. `ValueError` if it cannot be right.
        """
        outcome = game.outcome() if outcome is None else outcome
        result = None if outcome is None else Result(ending_of(outcome))
        record = cls.from_moves(game.moves, start=game.start, headers=headers, result=result)
        if outcome is not None and record.winner is not outcome.winner:
            raise ValueError(f"{outcome} is impossible with {game.turn.name.title()} to move")
        return record

    @property
    def main_line(self) -> list[Move]:
        """The moves of the game without times, comments and variations."""
        return [recorded.move for recorded in self.moves]

    @property
    def turn(self) -> Color:
        """The side to move after the last move."""
        return self.start.turn if len(self.moves) % 2 == 0 else self.start.turn.opponent

    @property
    def winner(self) -> Color | None:
        """The side that won; None for draws and without a result."""
        return None if self.result is None else self.result.ending.winner(self.turn)

    @property
    def black(self) -> str:
        """Name of the player with the Black pieces (sente, shitate), or ``""``."""
        return self.headers.get(header.BLACK, "")

    @property
    def white(self) -> str:
        """Name of the player with the White pieces (gote, uwate), or ``""``."""
        return self.headers.get(header.WHITE, "")

    @property
    def event(self) -> str:
        """Tournament or match, or ``""``."""
        return self.headers.get(header.EVENT, "")

    @property
    def site(self) -> str:
        """Place where it was played, or ``""``."""
        return self.headers.get(header.SITE, "")

    @property
    def start_time(self) -> date | None:
        """Start of the game: a `datetime`, or a `date` if only the day is known."""
        return header.parse_moment(self.headers.get(header.START_TIME, ""))

    @property
    def end_time(self) -> date | None:
        """End of the game: a `datetime`, or a `date` if only the day is known."""
        return header.parse_moment(self.headers.get(header.END_TIME, ""))

    @property
    def max_moves(self) -> int | None:
        """The move limit of the game."""
        text = self.headers.get(header.MAX_MOVES, "")
        return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None

    def time_limit(self, color: Color) -> header.TimeLimit | None:
        """Return the time limit of a player."""
        own = header.BLACK_TIME if color is Color.BLACK else header.WHITE_TIME
        text = self.headers.get(own) or self.headers.get(header.TIME, "")
        return header.TimeLimit.parse(text)

    def _repr_html_(self) -> str:
        """Draw the last position and list the moves, for notebooks."""
        from keisei.shogi.render.html import record_html

        return record_html(self)


def ending_of(outcome: Outcome) -> Ending:
    """Return the ending of an outcome: perpetual check is a foul, having no legal move is mate."""
    if outcome.termination is Termination.PERPETUAL_CHECK:
        return Ending.BLACK_FOUL if outcome.winner is Color.WHITE else Ending.WHITE_FOUL
    return _ENDINGS[outcome.termination]


_ENDINGS: Final = {
    Termination.CHECKMATE: Ending.MATE,
    Termination.NO_LEGAL_MOVE: Ending.MATE,
    Termination.REPETITION: Ending.REPETITION,
    Termination.DECLARATION: Ending.DECLARATION,
    Termination.PLY_LIMIT: Ending.MAX_MOVES,
    Termination.ILLEGAL_MOVE: Ending.ILLEGAL_MOVE,
}


def _play_all(replay: Replay, moves: list[Move]) -> None:
    """Play the moves; `IllegalMoveError` names the one that is illegal."""
    for move in moves:
        try:
            replay.play(move)
        except IllegalMoveError as error:
            raise IllegalMoveError(f"move {replay.length + 1}, {move}: {error}") from None


def _check_seconds(seconds: float | None) -> None:
    if seconds is not None and not 0 <= seconds <= MAX_SECONDS:  # NaN is neither
        raise ValueError(f"{seconds} seconds; a time must be from 0 to {MAX_SECONDS}")

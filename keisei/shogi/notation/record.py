"""A game on paper: start, moves, times, comments, headers, how it ended.

>>> record = GameRecord.from_moves(["7g7f", "3c3d"], headers={"black": "Akane", "white": "Botan"})
>>> record.black, len(record.moves), record.result
('Akane', 2, None)
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import date
from enum import Enum
from typing import Final

from keisei.errors import IllegalMoveError
from keisei.shogi.game import ShogiGame
from keisei.shogi.notation import headers as header
from keisei.shogi.notation.reader import Replay, text_lines
from keisei.shogi.notation.sfen import STARTPOS_SFEN, parse_sfen
from keisei.shogi.rules import Outcome, Termination
from keisei.shogi.types import Color, Diagram, Move

STARTPOS: Final = parse_sfen(STARTPOS_SFEN)
"""The usual start position."""

MAX_SECONDS: Final = 5_999_999
"""The longest time of a move, more than two months: KIF gives the minutes five digits."""


class Ending(Enum):
    """How a game, or the record of it, ended. "The mover" is the side whose turn it was."""

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
    """A mating problem without solution (%FUZUMI, 不詰)."""

    ERROR = "error"
    """Something broke (%ERROR, エラー)."""

    DEFAULT_WIN = "win by default"
    """The mover's opponent did not play (KIF 不戦勝; CSA has no word for it)."""

    DEFAULT_LOSS = "loss by default"
    """The mover did not play (KIF 不戦敗; CSA has no word for it)."""

    def winner(self, mover: Color) -> Color | None:
        """Who won when the game ended so with `mover` to move; None for draws and open games."""
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
    """A move with what was written next to it."""

    move: Move

    seconds: float | None = None
    """Time the player used, up to `MAX_SECONDS`; None if it was not recorded."""

    comment: str = ""
    """Any number of lines, without the marks that formats put in front of them."""

    bookmark: str = ""
    """A name for the position after the move (KIF and KI2 only)."""

    def __post_init__(self) -> None:
        _check_seconds(self.seconds)
        if len(text_lines(self.bookmark)) > 1:
            raise ValueError(f"bookmark {self.bookmark!r}; a bookmark is a single line")


@dataclass(frozen=True, slots=True)
class Result:
    """The last line of a record: how it ended. `GameRecord.winner` says for whom."""

    ending: Ending

    seconds: float | None = None
    """Time used before ending the game, up to `MAX_SECONDS`; None if it was not recorded."""

    comment: str = ""
    """What was remarked after the end."""

    def __post_init__(self) -> None:
        _check_seconds(self.seconds)


@dataclass(frozen=True, slots=True)
class Variation:
    """Another way to play on. It leaves the line written before it, cut back to `ply` - 1 moves."""

    ply: int
    """Which move it replaces, the first move of the game being 1."""

    moves: list[RecordedMove]

    result: Result | None = None

    comment: str = ""
    """What was written before its first move."""


@dataclass(slots=True)
class GameRecord:
    """A game from its start to its end. Every move is legal: building a record plays it through.

    Raises `IllegalMoveError` (which move, which rule) or `IllegalPositionError`.
    """

    start: Diagram = STARTPOS

    moves: list[RecordedMove] = field(default_factory=list)

    headers: dict[str, str] = field(default_factory=dict)
    """Names, times and such as text, by the keys of `keisei.shogi.notation.headers` ("black",
    "event", ...); other keys are kept as the file named them."""

    comment: str = ""
    """What was written before the first move."""

    result: Result | None = None
    """How it ended; None if the record just stops."""

    variations: list[Variation] = field(default_factory=list)
    """In the order of a KIF file: each leaves the line before it (see `Variation.ply`)."""

    def __post_init__(self) -> None:
        line = _checked(Replay(self.start), self.main_line, first_ply=1)
        for variation in self.variations:
            if not 1 <= variation.ply <= len(line) + 1:
                raise IllegalMoveError(
                    f"a variation at move {variation.ply} of a line of {len(line)} moves"
                )
            stem = line[: variation.ply - 1]
            branch = [recorded.move for recorded in variation.moves]
            line = stem + _checked(Replay(self.start, stem), branch, first_ply=variation.ply)

    @classmethod
    def from_moves(
        cls,
        moves: Iterable[Move | str],
        *,
        start: Diagram = STARTPOS,
        headers: Mapping[str, str] | None = None,
        result: Result | None = None,
    ) -> "GameRecord":
        """A record of bare moves, given as `Move` or USI text."""
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
        """The record of a game that was played here, and of its outcome if it is over.

        `outcome` is needed where the moves don't tell it: a declared win, a try at an illegal
        move, a limit that the game does not know. `ValueError` if it cannot be so.
        """
        outcome = game.outcome() if outcome is None else outcome
        result = None if outcome is None else Result(ending_of(outcome))
        record = cls.from_moves(game.moves, start=game.start, headers=headers, result=result)
        if outcome is not None and record.winner is not outcome.winner:
            raise ValueError(f"{outcome} cannot be with {game.turn.name.title()} to move")
        return record

    @property
    def main_line(self) -> list[Move]:
        """The moves alone."""
        return [recorded.move for recorded in self.moves]

    @property
    def turn(self) -> Color:
        """The side to move after the last move."""
        return self.start.turn if len(self.moves) % 2 == 0 else self.start.turn.opponent

    @property
    def winner(self) -> Color | None:
        """Who won, where the result says so."""
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
        """Where it was played, or ``""``."""
        return self.headers.get(header.SITE, "")

    @property
    def start_time(self) -> date | None:
        """When it began: a `datetime`, or a `date` where only the day is known."""
        return header.parse_moment(self.headers.get(header.START_TIME, ""))

    @property
    def end_time(self) -> date | None:
        """When it ended: a `datetime`, or a `date` where only the day is known."""
        return header.parse_moment(self.headers.get(header.END_TIME, ""))

    @property
    def max_moves(self) -> int | None:
        """The move limit that was agreed on."""
        text = self.headers.get(header.MAX_MOVES, "")
        return int(text) if text.isascii() and text.isdigit() and len(text) < 10 else None

    def time_limit(self, color: Color) -> header.TimeLimit | None:
        """The time that a player had."""
        own = header.BLACK_TIME if color is Color.BLACK else header.WHITE_TIME
        text = self.headers.get(own) or self.headers.get(header.TIME, "")
        return header.TimeLimit.parse(text)

    def _repr_html_(self) -> str:
        """The last board and the moves, for notebooks."""
        from keisei.shogi.render.html import record_html

        return record_html(self)


def ending_of(outcome: Outcome) -> Ending:
    """How records call an outcome. Giving perpetual check is a foul; no move at all is mate."""
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


def _checked(replay: Replay, moves: list[Move], first_ply: int) -> list[Move]:
    """Play the moves; say which one is at fault if one is."""
    for ply, move in enumerate(moves, start=first_ply):
        try:
            replay.play(move)
        except IllegalMoveError as error:
            raise IllegalMoveError(f"move {ply}, {move}: {error}") from None
    return moves


def _check_seconds(seconds: float | None) -> None:
    if seconds is not None and not 0 <= seconds <= MAX_SECONDS:  # NaN is neither
        raise ValueError(f"{seconds} seconds; a time is from 0 to {MAX_SECONDS}")

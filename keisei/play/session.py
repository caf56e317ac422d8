"""The session of one game: players, moves, clocks, result, and the position that is shown.

Nothing here draws or waits: pages and tests call it, and `now` tells the time.

>>> session = GameSession(people={Color.BLACK})
>>> session.push("7g7f")
>>> session.is_persons_turn, session.shown.ply
(False, 1)
"""

import time
from collections.abc import Callable, Collection, Iterable, Mapping
from typing import Final, NamedTuple

from keisei.constants import MAX_PLY
from keisei.errors import IllegalMoveError, KeiseiError
from keisei.play.move_text import move_texts
from keisei.shogi.game import ShogiGame
from keisei.shogi.notation import headers as header
from keisei.shogi.notation.headers import TimeLimit
from keisei.shogi.notation.move_input import parse_move
from keisei.shogi.notation.record import (
    MAX_SECONDS,
    Ending,
    GameRecord,
    RecordedMove,
    Result,
    ending_of,
)
from keisei.shogi.notation.sfen import STARTPOS_SFEN
from keisei.shogi.render.glyphs import Lettering
from keisei.shogi.types import Color, Diagram, Move


class TimeLeft(NamedTuple):
    """Time that a side has left, in seconds."""

    main: float
    byoyomi: float
    """Seconds for this move once `main` is used up."""

    is_up: bool
    """Whether the side has lost on time."""

    def __str__(self) -> str:
        seconds = self.main if self.main > 0 else self.byoyomi
        whole = int(seconds) + (seconds > int(seconds))  # 0 only when time is up
        return f"{whole // 60}:{whole % 60:02}"


def time_left(limit: TimeLimit, used: Iterable[float], thinking: float = 0.0) -> TimeLeft:
    """Return the time left after moves of `used` seconds and `thinking` seconds on the next one."""
    main = float(limit.main)
    for seconds in used:
        main = max(0.0, main - seconds) + limit.increment
    byoyomi = limit.byoyomi - max(0.0, thinking - main)
    return TimeLeft(max(0.0, main - thinking), max(0.0, min(byoyomi, limit.byoyomi)), byoyomi < 0)


MAX_GAME_PLIES: Final = 512
"""Plies after which a game is a draw, counted from its start position."""

BOTH_SIDES: Final = frozenset(Color)

REASONS: Final = {ending: ending.value for ending in Ending} | {
    Ending.RESIGNATION: "resignation",
    Ending.TIME_UP: "time is up",
    Ending.ILLEGAL_MOVE: "a move against the rules",
    Ending.BLACK_FOUL: "perpetual check",
    Ending.WHITE_FOUL: "perpetual check",
    Ending.REPETITION: "the fourth repetition",
    Ending.MAX_MOVES: "the game is too long",
    Ending.ERROR: "the player did not answer",
}
"""Why a game is over; some endings have names that not everybody understands."""


class End(NamedTuple):
    """End of a game."""

    ending: Ending
    winner: Color | None

    def __str__(self) -> str:
        if self.winner is not None:
            return f"{self.winner.name.title()} wins: {self.reason}."
        return f"A draw: {self.reason}." if self.is_draw else f"Broken off: {self.reason}."

    @property
    def reason(self) -> str:
        """Why the game is over, in a few words."""
        return REASONS[self.ending]

    @property
    def is_draw(self) -> bool:
        """Whether neither side won; False too for a game that was broken off."""
        return self.winner is None and self.ending not in _OPEN


_OPEN: Final = frozenset(
    {Ending.ERROR, Ending.INTERRUPTED, Ending.TAKEN_BACK, Ending.NO_MATE, Ending.ILLEGAL_MOVE}
)


class GameSession:
    """A game of people and computer players: moves, taking back, looking back, clocks, records."""

    revision: int
    """Number of changes of the game: an answer to an older revision is out of date."""

    cursor: int
    """Number of moves played in the position that is shown."""

    end: End | None
    """How the game ended; None until then."""

    headers: dict[str, str]
    """Headers of the game record: names, event and so on."""

    saved_as: str
    """Name under which the game is kept: see `keisei.play.saved_games`; empty until it is."""

    def __init__(
        self,
        start: str | Diagram = STARTPOS_SFEN,
        *,
        people: Collection[Color] = BOTH_SIDES,
        headers: Mapping[str, str] | None = None,
        limit: TimeLimit | None = None,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """Set up the position and start the clock of the side to move.

        Args:
            start: an SFEN, a USI ``position`` command with its moves, or a diagram.
            people: the sides that people play; computer players have the others.
            headers: of the record, by the keys of `keisei.shogi.notation.headers`.
            limit: time of each side; None: no limit.
            now: a clock, in seconds.

        Raises:
            KeiseiError: The position is invalid, a move is illegal, or there are too many of them.
        """
        if isinstance(start, str):  # checked before they are played: pages may send any number
            words = start.split()
            _require_short(len(words) - words.index("moves") - 1 if "moves" in words else 0)
        game = ShogiGame(start)
        game.ply_limit = min(game.start.move_number - 1 + MAX_GAME_PLIES, MAX_PLY)
        self.people = frozenset(people)
        self.headers = dict(headers or {})
        self.limit = limit
        self.saved_as = ""
        self.revision = 0
        self.end = None
        self._now = now
        self._game = game
        self._seconds: list[float | None] = [None] * len(game.actions)
        self.cursor = len(self._seconds)
        self._began: float | None = now()
        self._banked = 0.0
        self._shown = game
        self._update()

    @classmethod
    def from_record(
        cls,
        record: GameRecord,
        *,
        people: Collection[Color] = BOTH_SIDES,
        limit: TimeLimit | None = None,
        now: Callable[[], float] = time.monotonic,
    ) -> "GameSession":
        """Make a session of a recorded game, which continues if it is not over."""
        _require_short(len(record.moves))
        session = cls(record.start, people=people, headers=record.headers, limit=limit, now=now)
        for recorded in record.moves:
            session._game.push(recorded.move)
            session._seconds.append(recorded.seconds)
        session._update()
        if record.result is not None:
            session.end = End(record.result.ending, record.winner)
        return session

    def copy(self) -> "GameSession":
        """Return a session of the same game, which changes of this one do not reach."""
        return GameSession.from_record(
            self.record(), people=self.people, limit=self.limit, now=self._now
        )

    # ---- state ----

    @property
    def game(self) -> ShogiGame:
        """The game with all its moves. Change it only by `push` and `take_back`."""
        return self._game

    @property
    def shown(self) -> ShogiGame:
        """The game up to the position that is shown."""
        return self._shown

    @property
    def length(self) -> int:
        """Number of moves played."""
        return len(self._seconds)

    @property
    def turn(self) -> Color:
        """The side to move in the game."""
        return self._game.turn

    @property
    def is_live(self) -> bool:
        """Whether the game is not over and its last position is shown."""
        return self.end is None and self.cursor == self.length

    @property
    def is_persons_turn(self) -> bool:
        """Whether the side to move is a person's."""
        return self.end is None and self.turn in self.people

    @property
    def can_take_back(self) -> bool:
        """Whether there is a move of a person to take back."""
        return self._moves_to_take_back() > 0

    def name(self, color: Color) -> str:
        """Return the name of the player of a side."""
        key = header.BLACK if color is Color.BLACK else header.WHITE
        return self.headers.get(key) or color.name.title()

    def moves(self, lettering: Lettering) -> list[str]:
        """Return all moves as text for a list of moves."""
        return move_texts(self._game.start, self._game.moves, lettering)

    # ---- playing ----

    def push(self, move: Move | str) -> None:
        """Play a move, as `Move` or as people type it; raises `KeiseiError` if it is not legal."""
        if self.end is not None:
            raise IllegalMoveError("the game is over")
        if self.limit is not None and self.has_lost_on_time:
            self.finish(Ending.TIME_UP)
            return
        self._game.push(parse_move(self._game, move) if isinstance(move, str) else move)
        self._seconds.append(min(self._thinking, MAX_SECONDS))
        self._reset_clock()
        self._update()

    def finish(self, ending: Ending) -> None:
        """End the game by the side to move: by resignation, on time ..."""
        if self.end is not None:
            raise KeiseiError("the game is over already")
        if ending is Ending.DECLARATION and not self._game.can_declare:
            raise KeiseiError("a win can't be declared: the king, 10 pieces and the points, "
                              "all in the enemy's camp, and no check")  # fmt: skip
        self.end = End(ending, ending.winner(self.turn))
        self.revision += 1

    def take_back(self) -> None:
        """Take back the last move of a person and the moves after it."""
        count = self._moves_to_take_back()
        if count == 0:
            raise KeiseiError("there is no move to take back")
        self._cut(self.length - count)

    def play_on(self) -> None:
        """Continue from the position that is shown: the moves after it are dropped."""
        self._cut(self.cursor)

    def change_players(self, people: Collection[Color], headers: Mapping[str, str]) -> None:
        """Let other players continue the game, in the time that is left."""
        self.people = frozenset(people)
        self.headers |= headers
        self.revision += 1

    # ---- the position that is shown ----

    def go_to(self, ply: int) -> None:
        """Show the position after `ply` moves, or the nearest that exists."""
        self.cursor = max(0, min(ply, self.length))
        if self.cursor == self.length:
            self._shown = self._game
            return
        self._shown = ShogiGame(self._game.start, ply_limit=self._game.ply_limit)
        for action in self._game.actions[: self.cursor].tolist():
            self._shown.push_action(action)

    # ---- time ----

    def time_left(self, color: Color) -> TimeLeft | None:
        """Return the time that a side has left; None without a limit."""
        if self.limit is None:
            return None
        first = 0 if self._game.start.turn is color else 1
        used = [seconds or 0.0 for seconds in self._seconds[first::2]]
        if self.end is not None and self.end.ending is Ending.TIME_UP and self.turn is color:
            return TimeLeft(0.0, 0.0, is_up=True)
        is_thinking = self.end is None and self.turn is color
        return time_left(self.limit, used, self._thinking if is_thinking else 0.0)

    @property
    def has_lost_on_time(self) -> bool:
        """Whether the time of the side to move is up."""
        left = self.time_left(self.turn)
        return self.end is None and left is not None and left.is_up

    @property
    def clock_runs(self) -> bool:
        """Whether the clock of the side to move is running."""
        return self._began is not None

    def stop_clock(self) -> None:
        """Stop the clock until `start_clock`; the time used for this move so far is kept."""
        self._banked = self._thinking
        self._began = None

    def start_clock(self) -> None:
        """Start the clock of the side to move, if it is not running."""
        if self._began is None:
            self._began = self._now()

    def _reset_clock(self) -> None:
        """Start counting for another move; a clock that was stopped stays stopped."""
        self._banked = 0.0
        if self._began is not None:
            self._began = self._now()

    @property
    def _thinking(self) -> float:
        """Seconds that the side to move has used for this move."""
        running = 0.0 if self._began is None else max(0.0, self._now() - self._began)
        return self._banked + running

    # ---- the record ----

    def record(self) -> GameRecord:
        """Return the record of the game."""
        headers = dict(self.headers)
        if self.limit is not None:
            headers[header.TIME] = str(self.limit)
        return GameRecord(
            self._game.start,
            [
                RecordedMove(move, None if seconds is None else float(round(seconds)))
                for move, seconds in zip(self._game.moves, self._seconds, strict=True)
            ],
            headers,
            result=None if self.end is None else Result(self.end.ending),
        )

    def _moves_to_take_back(self) -> int:
        """Return the number of moves up to and including the last one of a person."""
        for count in range(1, min(self.length, 2) + 1):
            mover = self.turn if count % 2 == 0 else self.turn.opponent
            if mover in self.people:
                return count
        return 0

    def _cut(self, length: int) -> None:
        while self.length > length:
            self._game.pop()
            self._seconds.pop()
        self.end = None
        self._reset_clock()
        self._update()

    def _update(self) -> None:
        """Note the outcome after a change of the game, and look at its last position."""
        outcome = self._game.outcome()
        if outcome is not None:
            self.end = End(ending_of(outcome), outcome.winner)
        self.revision += 1
        self.cursor = self.length
        self._shown = self._game


def _require_short(moves: int) -> None:
    if moves > MAX_GAME_PLIES:
        raise KeiseiError(f"the game has {moves} moves; up to {MAX_GAME_PLIES} can be shown")

"""A game at a table: who sits there, what was played, how long it took, where one looks.

Nothing here draws or waits: pages and tests call it, and time comes in through `now`.

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
    """What a player has left, in seconds."""

    main: float
    byoyomi: float
    """For this move, when `main` is used up."""

    is_up: bool
    """Whether the player has lost on time."""

    def __str__(self) -> str:
        seconds = self.main if self.main > 0 else self.byoyomi
        whole = int(seconds) + (seconds > int(seconds))  # 0 is shown when it is over, not before
        return f"{whole // 60}:{whole % 60:02}"


def time_left(limit: TimeLimit, used: Iterable[float], thinking: float = 0.0) -> TimeLeft:
    """What is left after moves that took the `used` seconds, and `thinking` on the next one."""
    main = float(limit.main)
    for seconds in used:
        main = max(0.0, main - seconds) + limit.increment
    byoyomi = limit.byoyomi - max(0.0, thinking - main)
    return TimeLeft(max(0.0, main - thinking), max(0.0, min(byoyomi, limit.byoyomi)), byoyomi < 0)


LONGEST_GAME: Final = 512
"""Plies after which a game is a draw, counted from where it began."""

EVERYBODY: Final = frozenset(Color)

_REASONS: Final = {
    Ending.RESIGNATION: "resignation",
    Ending.TIME_UP: "time is up",
    Ending.ILLEGAL_MOVE: "a move against the rules",
    Ending.BLACK_FOUL: "perpetual check",
    Ending.WHITE_FOUL: "perpetual check",
    Ending.REPETITION: "the fourth repetition",
    Ending.MAX_MOVES: "the game is too long",
    Ending.ERROR: "the player did not answer",
}
"""What endings are called where their own names don't say it to everybody."""


class End(NamedTuple):
    """How a game ended."""

    ending: Ending
    winner: Color | None

    def __str__(self) -> str:
        reason = _REASONS.get(self.ending, self.ending.value)
        if self.winner is not None:
            return f"{self.winner.name.title()} wins: {reason}."
        return f"Broken off: {reason}." if self.ending in _OPEN else f"A draw: {reason}."


_OPEN: Final = frozenset(
    {Ending.ERROR, Ending.INTERRUPTED, Ending.TAKEN_BACK, Ending.NO_MATE, Ending.ILLEGAL_MOVE}
)


class GameSession:
    """One game: played by people and others, walked through, taken back, written down."""

    revision: int
    """Grows with every change of the game: an answer to an older one is out of date."""

    cursor: int
    """How many moves have been played in the position that is looked at."""

    end: End | None
    """How the game ended; None while it goes on."""

    headers: dict[str, str]
    """What a record of the game says besides its moves."""

    def __init__(
        self,
        start: str | Diagram = STARTPOS_SFEN,
        *,
        people: Collection[Color] = EVERYBODY,
        headers: Mapping[str, str] | None = None,
        limit: TimeLimit | None = None,
        now: Callable[[], float] = time.monotonic,
    ) -> None:
        """Set up the pieces; the clock of the side to move starts.

        Args:
            start: an SFEN, a USI ``position`` command with its moves, or a diagram.
            people: the sides that people play; others play the rest.
            headers: names and such, by the keys of `keisei.shogi.notation.headers`.
            limit: the time that each side has; None: all the time in the world.
            now: a clock, in seconds.

        Raises:
            KeiseiError: It is no position, a move is illegal, or there are too many of them.
        """
        if isinstance(start, str):  # counted before they are played: a page may send any number
            words = start.split()
            _require_short(len(words) - words.index("moves") - 1 if "moves" in words else 0)
        game = ShogiGame(start)
        game.ply_limit = min(game.start.move_number - 1 + LONGEST_GAME, MAX_PLY)
        self.people = frozenset(people)
        self.headers = dict(headers or {})
        self.limit = limit
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
        cls, record: GameRecord, *, now: Callable[[], float] = time.monotonic
    ) -> "GameSession":
        """A game that was written down, to be walked through from its beginning."""
        _require_short(len(record.moves))
        session = cls(record.start, headers=record.headers, now=now)
        for recorded in record.moves:
            session._game.push(recorded.move)
            session._seconds.append(recorded.seconds)
        session._update()
        if record.result is not None:
            session.end = End(record.result.ending, record.winner)
        return session

    # ---- how it stands ----

    @property
    def game(self) -> ShogiGame:
        """The game with all its moves, to look at: `push` and `take_back` change it."""
        return self._game

    @property
    def shown(self) -> ShogiGame:
        """The game up to the position that is looked at."""
        return self._shown

    @property
    def length(self) -> int:
        """How many moves have been played."""
        return len(self._seconds)

    @property
    def turn(self) -> Color:
        """Whose turn it is in the game."""
        return self._game.turn

    @property
    def is_live(self) -> bool:
        """Whether the position that is looked at is the last one, in a game that goes on."""
        return self.end is None and self.cursor == self.length

    @property
    def is_persons_turn(self) -> bool:
        """Whether a person is to move."""
        return self.end is None and self.turn in self.people

    @property
    def can_take_back(self) -> bool:
        """Whether there is a move of a person's to take back."""
        return self._moves_to_take_back() > 0

    def name(self, color: Color) -> str:
        """Who plays a side."""
        key = header.BLACK if color is Color.BLACK else header.WHITE
        return self.headers.get(key) or color.name.title()

    def moves(self, lettering: Lettering) -> list[str]:
        """All moves as a list of moves shows them."""
        return move_texts(self._game.start, self._game.moves, lettering)

    # ---- playing ----

    def push(self, move: Move | str) -> None:
        """Play a move for the side to move; raises `IllegalMoveError`, which says why not."""
        if self.end is not None:
            raise IllegalMoveError("the game is over")
        if self.limit is not None and self.has_lost_on_time:
            self.finish(Ending.TIME_UP)
            return
        self._game.push(move)
        self._seconds.append(min(self._thinking, MAX_SECONDS))
        self._reset_clock()
        self._update()

    def finish(self, ending: Ending) -> None:
        """End the game as it stands with the side to move: by resignation, on time ..."""
        if self.end is not None:
            raise KeiseiError("the game is over already")
        if ending is Ending.DECLARATION and not self._game.can_declare:
            raise KeiseiError("a win can't be declared: the king, 10 pieces and the points, "
                              "all in the enemy's camp, and no check")  # fmt: skip
        self.end = End(ending, ending.winner(self.turn))
        self.revision += 1

    def take_back(self) -> None:
        """Go back to before the last move of a person; the game goes on from there."""
        count = self._moves_to_take_back()
        if count == 0:
            raise KeiseiError("there is no move to take back")
        self._cut(self.length - count)

    def play_on(self) -> None:
        """Go on from the position that is looked at: the moves after it are dropped."""
        self._cut(self.cursor)

    def change_players(self, people: Collection[Color], headers: Mapping[str, str]) -> None:
        """Let other players continue the game, in the time that is left."""
        self.people = frozenset(people)
        self.headers |= headers
        self.revision += 1

    # ---- looking ----

    def go_to(self, ply: int) -> None:
        """Look at the position after so many moves; the nearest there is."""
        self.cursor = max(0, min(ply, self.length))
        if self.cursor == self.length:
            self._shown = self._game
            return
        self._shown = ShogiGame(self._game.start, ply_limit=self._game.ply_limit)
        for action in self._game.actions[: self.cursor].tolist():
            self._shown.push_action(action)

    # ---- time ----

    def time_left(self, color: Color) -> TimeLeft | None:
        """What a side has left; None without a limit."""
        if self.limit is None:
            return None
        first = 0 if self._game.start.turn is color else 1
        used = [seconds or 0.0 for seconds in self._seconds[first::2]]
        is_thinking = self.end is None and self.turn is color
        return time_left(self.limit, used, self._thinking if is_thinking else 0.0)

    @property
    def has_lost_on_time(self) -> bool:
        """Whether the time of the side to move is up."""
        left = self.time_left(self.turn)
        return self.end is None and left is not None and left.is_up

    @property
    def clock_runs(self) -> bool:
        """Whether the time that passes is the side to move's."""
        return self._began is not None

    def stop_clock(self) -> None:
        """Let no time pass until `start_clock`; what was used for this move so far is kept."""
        self._banked = self._thinking
        self._began = None

    def start_clock(self) -> None:
        """Let time pass again. A clock that runs goes on running."""
        if self._began is None:
            self._began = self._now()

    def _reset_clock(self) -> None:
        """Another move begins; a clock that was stopped stays so."""
        self._banked = 0.0
        if self._began is not None:
            self._began = self._now()

    @property
    def _thinking(self) -> float:
        """Seconds that the side to move has used for this move."""
        running = 0.0 if self._began is None else max(0.0, self._now() - self._began)
        return self._banked + running

    # ---- writing it down ----

    def record(self) -> GameRecord:
        """The game on paper."""
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
        """One's own last move and what came after it."""
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
    if moves > LONGEST_GAME:
        raise KeiseiError(f"the game has {moves} moves; up to {LONGEST_GAME} can be shown")

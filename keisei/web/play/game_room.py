"""A table in the club: a game, those who sit there, and those who look on.

People's moves come in from pages; everybody else is asked in a thread, so that no page waits for
anybody's thinking. A table without pages rests: engines end, and begin anew when a page comes back.
Clocks run while a page is there; that of a machine not while it is paused, or its network loads.
"""

import asyncio
import logging
import secrets
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from keisei.analysis.review import Opinion, Reviewer
from keisei.errors import KeiseiError
from keisei.play.session import GameSession
from keisei.shogi.notation import headers as header
from keisei.shogi.notation.record import Ending
from keisei.shogi.types import Color, Move
from keisei.web.play.catalogue import Catalogue, Entry
from keisei.web.play.game_setup import Seat, Setup

if TYPE_CHECKING:
    from keisei.play.opponent import Opponent

PACE: Final = 0.7
"""Seconds between moves when nobody but machines plays: so that people can follow."""

logger = logging.getLogger(__name__)

Listener = Callable[[], None]


class Table:
    """One game with its players. All methods are for the event loop's thread."""

    def __init__(
        self,
        catalogue: Catalogue,
        setup: Setup | None = None,
        *,
        adviser: str | None = None,
        seed: int | None = None,
        pace: float = PACE,
    ) -> None:
        """Set a table.

        Args:
            catalogue: who can be played.
            setup: the first game.
            adviser: the network whose opinion is shown, by its key; None: nobody's.
            seed: of the players' chance.
            pace: seconds between the moves of machines that play each other.
        """
        self.id = secrets.token_urlsafe(9)
        self.catalogue = catalogue
        self.adviser = adviser
        self.paused = False
        self.problem = ""
        """What went wrong last, in words; empty where nothing did."""

        self.thinking: Color | None = None
        """The side that a machine is thinking for."""

        self.opinions: list[Opinion] = []
        """Of the start and of the position after each move, as far as there are any."""

        self._seed = seed
        self._pace = pace
        self._entries: dict[str, Entry] = {}
        self._is_loading = False
        self._opponents: dict[str, tuple[str, Opponent]] = {}
        self._reviewer: tuple[Opponent, Reviewer] | None = None
        self._advised: tuple[GameSession, int, str] | None = None
        self._listeners: list[Listener] = []
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self.setup = setup or Setup()
        self.session = GameSession()
        if adviser is not None:
            self.entry(adviser)
        self.begin(self.setup)

    # ---- the game ----

    def begin(self, setup: Setup) -> None:
        """Begin another game; raises `KeiseiError` where the setup makes no sense."""
        names = self._names(setup)
        self.session = GameSession(
            setup.start, people=setup.people, headers=names, limit=setup.limit
        )
        self.setup = setup
        self.paused = False
        self._changed()

    def open(self, session: GameSession) -> None:
        """Put a game that was read from a file on the table, for people to walk through."""
        session.go_to(session.length if session.end is None else 0)
        self.session = session
        self.setup = Setup()
        self.paused = False
        self._changed()

    def seat(self, color: Color, seat: Seat) -> None:
        """Have somebody else play a side from now on, or the same one with another strength."""
        setup = (
            replace(self.setup, black=seat)
            if color is Color.BLACK
            else replace(self.setup, white=seat)
        )
        names = self._names(setup)
        self.session.seat(setup.people, names)
        self.setup = setup
        self._changed()

    def move(self, usi: str) -> None:
        """A person's move; raises `KeiseiError` if it can't be played."""
        if not self.session.is_persons_turn:
            raise KeiseiError("it is not your turn")
        if not self.session.is_live:
            raise KeiseiError("go to the last move first, or play on from here")
        self.session.push(usi)
        self._changed()

    def finish(self, ending: Ending) -> None:
        """A person ends the game: resigns, or declares a win."""
        if not self.session.is_persons_turn:
            raise KeiseiError("it is not your turn")
        self.session.finish(ending)
        self._changed()

    def take_back(self) -> None:
        """Take back a person's last move."""
        self.session.take_back()
        self._changed()

    def play_on(self) -> None:
        """Go on from the position that is looked at."""
        self.session.play_on()
        self._changed()

    def go_to(self, ply: int) -> None:
        """Look at another position."""
        self.session.go_to(ply)
        self._tell()

    def pause(self, paused: bool) -> None:
        """Have machines stop before their next move, or go on."""
        self.paused = paused
        self._changed()

    def advise(self, key: str | None) -> None:
        """Show the opinion of another network, or of none."""
        if key == self.adviser:
            return
        if key is not None and not self.entry(key).is_network:
            raise KeiseiError(f"{key} has no network")
        self.adviser = key
        self.opinions = []
        self._changed()

    def advise_by_default(self) -> None:
        """Where nobody's opinion is shown yet, show that of a network at the table."""
        if self.adviser is not None:
            return
        for seat in self.setup.seats.values():
            if seat.key is not None and self.entry(seat.key).is_network:
                self.advise(seat.key)
                return

    def entry(self, key: str) -> Entry:
        """Whom a key means; `KeiseiError` if nobody.

        Looked up once: a game goes on though training has deleted the checkpoint that plays it.
        """
        if key not in self._entries:
            self._entries[key] = self.catalogue.find(key)
        return self._entries[key]

    def tick(self) -> None:
        """Look at the clock: whose time is up has lost."""
        if self.session.has_lost_on_time:
            self.session.finish(Ending.TIME_UP)
            self._changed()

    # ---- those who look on ----

    @property
    def is_watched(self) -> bool:
        """Whether a page shows it."""
        return bool(self._listeners)

    def attach(self, listener: Listener) -> None:
        """Have a page be told of every change; one that comes again is told once."""
        if listener not in self._listeners:
            self._listeners.append(listener)
        self._set_clock()
        self._wake()

    async def detach(self, listener: Listener) -> None:
        """A page has gone; after the last one the table rests."""
        if listener in self._listeners:
            self._listeners.remove(listener)
        if not self._listeners:
            await self.close()

    async def close(self) -> None:
        """End engines and let go of networks; the game stays."""
        self._listeners.clear()
        self._set_clock()
        opponents, self._opponents = list(self._opponents.values()), {}
        self._reviewer = self._advised = None
        for _, opponent in opponents:
            await asyncio.to_thread(opponent.close)

    async def settled(self) -> None:
        """Wait until nobody thinks any more. For tests."""
        while running := [task for task in self._tasks.values() if not task.done()]:
            await asyncio.gather(*running)

    def _tell(self) -> None:
        for listener in list(self._listeners):
            listener()

    def _changed(self) -> None:
        self.problem = ""
        if self._advised is not None and self._advised[0] is not self.session:
            self.opinions = []
        del self.opinions[self.session.length + 1 :]
        self._set_clock()
        self._wake()
        self._tell()

    def _set_clock(self) -> None:
        """Have the clock run, unless nobody is there or a machine is kept from moving."""
        session = self.session
        is_kept = session.turn not in session.people and (self.paused or self._is_loading)
        if self._listeners and not is_kept:
            session.start_clock()
        else:
            session.stop_clock()

    def _halt(self, problem: str) -> None:
        """Pause because of something that went wrong."""
        self.paused, self.problem = True, problem
        self._set_clock()
        self._tell()

    # ---- machines ----

    def _wake(self) -> None:
        """Have the machines think that have something to think about."""
        if not self._listeners:
            return
        for name, work in (("play", self._play), ("advise", self._advise)):
            task = self._tasks.get(name)
            if task is None or task.done():
                task = asyncio.get_running_loop().create_task(work())
                task.add_done_callback(self._report)
                self._tasks[name] = task

    def _report(self, task: "asyncio.Task[None]") -> None:
        """A fault of the program must not look as if somebody was thinking for ever."""
        if task.cancelled() or (error := task.exception()) is None:
            return
        logger.error("at a table: %s", error, exc_info=error)
        self._halt(f"Something went wrong: {error!r}. The log says more.")

    async def _play(self) -> None:
        """Make the machines' moves until it is a person's turn, or the end."""
        while self._machine_is_to_move():
            session, revision, color = self.session, self.session.revision, self.session.turn
            self.thinking = color
            self._tell()
            answer: Move | Ending | None = None
            problem = ""
            try:
                answer = await self._answer(color)
            except KeiseiError as error:
                problem = str(error)
            finally:
                self.thinking = None
            if session is not self.session or revision != session.revision:
                continue  # it was asked about a game that has changed since
            if answer is None:
                if self._listeners:  # else it was ended because everybody has left
                    self._halt(problem)
                return
            self._apply(answer)

    async def _answer(self, color: Color) -> Move | Ending:
        game = self.session.game.copy()  # another one may be on the table when it has loaded
        self._is_loading = True
        self._set_clock()
        try:
            opponent = await self._opponent(color.name, self._word(self.setup.seats[color]))
        finally:
            self._is_loading = False
            self._set_clock()
        answer, _ = await asyncio.gather(
            asyncio.to_thread(opponent.choose, game),
            asyncio.sleep(0.0 if self.session.people else self._pace),
        )
        return answer

    def _apply(self, answer: Move | Ending) -> None:
        looks_elsewhere = self.session.cursor != self.session.length
        cursor = self.session.cursor
        if isinstance(answer, Ending):
            self.session.finish(answer)
        else:
            self.session.push(answer)
        if looks_elsewhere:
            self.session.go_to(cursor)
        self._changed()

    def _machine_is_to_move(self) -> bool:
        session = self.session
        return (
            bool(self._listeners)
            and not self.paused
            and session.end is None
            and session.turn not in session.people
        )

    async def _advise(self) -> None:
        """Have the adviser judge the game, and again when it has changed meanwhile."""
        while self._listeners and self.adviser is not None:
            asked = self.session, self.session.revision, self.adviser
            if asked == self._advised:
                return
            try:
                opponent = await self._opponent("adviser", self._word(Seat(self.adviser)))
                opinions = await asyncio.to_thread(
                    self._reviewer_of(opponent).review, self.session.game.copy()
                )
            except KeiseiError as error:
                self.adviser, self.problem = None, str(error)
                self._tell()
                return
            if asked == (self.session, self.session.revision, self.adviser):
                self.opinions, self._advised = opinions, asked
                self._tell()

    def _reviewer_of(self, opponent: "Opponent") -> Reviewer:
        if self._reviewer is None or self._reviewer[0] is not opponent:
            if opponent.predictor is None:
                raise KeiseiError(f"{opponent.name} has no network")
            self._reviewer = opponent, Reviewer(opponent.predictor)
        return self._reviewer[1]

    async def _opponent(self, role: str, word: str) -> "Opponent":
        """Who plays a role; made, in a thread, where somebody else did so far."""
        seated = self._opponents.get(role)
        if seated is not None and seated[0] == word:
            return seated[1]
        if seated is not None:
            del self._opponents[role]
            await asyncio.to_thread(seated[1].close)
        opponent = await asyncio.to_thread(_open, word, self._seed)
        if not self._listeners:  # everybody has left meanwhile, and closed what there was
            await asyncio.to_thread(opponent.close)
            raise KeiseiError("nobody is at the table")
        self._opponents[role] = word, opponent
        return opponent

    def _word(self, seat: Seat) -> str:
        assert seat.key is not None
        return self.entry(seat.key).player(seat.level)

    def _names(self, setup: Setup) -> dict[str, str]:
        """Headers of the record; refuses who is not in the catalogue."""
        return {
            key: "You" if seat.key is None else self._label(seat)
            for key, seat in ((header.BLACK, setup.black), (header.WHITE, setup.white))
        }

    def _label(self, seat: Seat) -> str:
        assert seat.key is not None
        entry = self.entry(seat.key)
        if not entry.levels:
            return entry.label
        level = entry.level(seat.level)
        return level.word if not entry.word else f"{entry.label} ({level.label})"


def _open(word: str, seed: int | None) -> "Opponent":
    """Make a player. Torch, which takes seconds to import, is not needed before."""
    from keisei.play.opponent import Opponent

    return Opponent.named(word, seed=seed)

"""Game rooms: a game, its players, and the pages that show it.

People's moves come from pages. Bots, networks and engines choose theirs in a thread, so that no
page waits for them. A room without pages is idle: its engines are stopped, and started again when
a page comes back. Clocks run while a page is connected; the clock of a computer player is also
stopped while the game is paused or its network loads.
"""

import asyncio
import logging
from collections import defaultdict
from collections.abc import Iterable
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Final

from keisei.analysis import PositionAnalysis, Reviewer
from keisei.errors import KeiseiError
from keisei.play.saved_games import SavedGame, SavedGames, new_name
from keisei.play.session import BOTH_SIDES, GameSession
from keisei.shogi.notation import headers as header
from keisei.shogi.notation.record import Ending
from keisei.shogi.types import Color, Move
from keisei.web.languages import mark
from keisei.web.play.catalogue import (
    BUILTIN_ENTRY,
    Catalogue,
    CatalogueEntry,
    GameSetup,
    PlayerChoice,
)
from keisei.web.rooms import NO_NETWORK, Room, Rooms

if TYPE_CHECKING:
    from keisei.play.opponent import Opponent

PACE: Final = 0.7
"""Minimum seconds per move when computer players play each other, so that people can follow."""

_ANALYST: Final = "analyst"
"""Role of the network that analyses the game; the players' roles are the names of their colours."""

_NOT_YOUR_TURN: Final = mark("it is not your turn")

YOU: Final = mark("You")
"""Name of a person, in records too."""

logger = logging.getLogger(__name__)


class GameRoom(Room):
    """One game with its players and pages."""

    def __init__(
        self,
        catalogue: Catalogue,
        setup: GameSetup | None = None,
        *,
        analyst: str | None = None,
        seed: int | None = None,
        pace: float = PACE,
        saved: SavedGames | None = None,
    ) -> None:
        """Open a room and begin its first game.

        Args:
            catalogue: the players that can be chosen.
            setup: the first game; None: two people, the usual start, no clock.
            analyst: key of the network whose analysis is shown; None: no analysis.
            seed: seed of the players' random numbers.
            pace: minimum seconds per move when computer players play each other.
            saved: the folder in which people's games are kept; None: they are not.
        """
        super().__init__()
        self.catalogue = catalogue
        self.analyst = analyst
        self.saved = saved
        self.paused = False
        self.reviewing = False
        """Whether the game was opened to look at it, and is not being played."""

        self.problem = ""
        """The last error, as text; empty if there is none."""

        self.save_problem = ""
        """Why the game could not be saved, until it is; empty if it could."""

        self.thinking: Color | None = None
        """The side whose computer player is choosing a move."""

        self.analyses: list[PositionAnalysis] = []
        """Analyses of the start and of the positions after each move, as far as they are known."""

        self._seed = seed
        self._pace = pace
        self._entries: dict[str, CatalogueEntry] = {}
        self._opponents: dict[tuple[str, PlayerChoice], Opponent] = {}
        self._loading: set[str] = set()
        self._prepared: set[tuple[str, PlayerChoice]] = set()
        self._role_locks: defaultdict[str, asyncio.Lock] = defaultdict(asyncio.Lock)
        self._reviewer: tuple[Opponent, Reviewer] | None = None
        self._analysed: tuple[GameSession, int, str] | None = None
        self._kept: tuple[GameSession, int] | None = None
        self._previous: tuple[GameSession, GameSetup, bool] | None = None
        self._replaced_at: tuple[GameSession, int] | None = None
        self._tasks: dict[str, asyncio.Task[None]] = {}
        self.setup = setup or GameSetup()
        self.session = GameSession()
        if analyst is not None:
            self.entry(analyst)
        self.begin(self.setup)

    # ---- the game ----

    def begin(self, setup: GameSetup) -> None:
        """Begin another game.

        Raises:
            KeiseiError: A player or the starting position of the setup does not exist.
        """
        names = self._names(setup)
        session = GameSession(setup.start, people=setup.people, headers=names, limit=setup.limit)
        self._replace_game(session, setup)

    def open(self, session: GameSession) -> None:
        """Show a game that was read from a file; both sides belong to people."""
        session.go_to(session.length if session.end is None else 0)
        self._replace_game(session, GameSetup(), reviewing=True)

    def reopen(self, game: SavedGame, others: "Iterable[GameRoom]" = ()) -> None:
        """Continue a saved game; if it is over, or its players are gone, look at it.

        Args:
            game: the game. If this room has it already, on the board or replaced, it is shown.
            others: rooms that may have it too. Each file belongs to one room: if a page shows one
                that has it, this room continues in a new file.

        Raises:
            KeiseiError: The game is too long.
        """
        if self.session.saved_as == game.name:
            return
        if self._previous is not None and self._previous[0].saved_as == game.name:
            self.restore()
            return
        try:
            setup = GameSetup.from_json(game.players)
            self._names(setup)
        except KeiseiError:
            setup = GameSetup()
        session = GameSession.from_record(game.own_record(), people=setup.people, limit=setup.limit)
        is_free = all(room.give_up(game.name) for room in others if room is not self)
        session.saved_as = game.name if is_free else new_name()
        self._kept = session, session.revision
        self._replace_game(session, setup, reviewing=session.people == BOTH_SIDES)

    def give_up(self, name: str) -> bool:
        """Leave the file of a saved game to another room, unless a page shows this one.

        Returns whether the file is free. If people come back, they continue in a new file.
        """
        sessions = [self.session] if self._previous is None else [self.session, self._previous[0]]
        mine = [session for session in sessions if session.saved_as == name]
        if mine and self.is_watched:
            return False
        for session in mine:
            session.saved_as = new_name()
        return True

    @property
    def offers_restore(self) -> bool:
        """Whether the game on the board has replaced another, and no move was made since."""
        return self._previous is not None and self._replaced_at == (
            self.session, self.session.length,
        )  # fmt: skip

    def restore(self) -> None:
        """Bring back the game that was replaced; it changes places with the one on the board."""
        if self._previous is None:
            raise KeiseiError(mark("there is no earlier game"))
        previous, self._previous = self._previous, None
        self._replace_game(*previous)

    def _replace_game(
        self, session: GameSession, setup: GameSetup, reviewing: bool = False
    ) -> None:
        """Show another game; the one before is kept for `restore`."""
        self.session.stop_clock()  # it continues from there if the game comes back
        if self.session.length:
            self._previous = self.session, self.setup, self.reviewing
        self.session, self.setup, self.reviewing = session, setup, reviewing
        self._replaced_at = session, session.length
        self.paused = False
        self._changed()

    @property
    def shows_analysis(self) -> bool:
        """Whether analysis may be shown: the game is over, reviewed, or played by computers."""
        return self.reviewing or self.session.end is not None or not self.session.people

    def change_player(self, color: Color, player: PlayerChoice) -> None:
        """Let another player, or the same one at another strength, continue for a side."""
        setup = (
            replace(self.setup, black=player)
            if color is Color.BLACK
            else replace(self.setup, white=player)
        )
        self.session.change_players(setup.people, self._names(setup))
        self.setup = setup
        self._changed()

    def move(self, usi: str) -> None:
        """Play a person's move.

        Raises:
            KeiseiError: It is not a person's turn, or the move is illegal.
        """
        if not self.session.is_persons_turn:
            raise KeiseiError(_NOT_YOUR_TURN)
        if not self.session.is_live:
            raise KeiseiError(mark("go to the last move first, or play on from here"))
        self.session.push(usi)
        self._changed()

    def finish(self, ending: Ending) -> None:
        """End the game for the person to move, by resignation or by declaring a win."""
        if not self.session.is_persons_turn:
            raise KeiseiError(_NOT_YOUR_TURN)
        self.session.finish(ending)
        self._changed()

    def take_back(self) -> None:
        """Take back a person's last move."""
        self.session.take_back()
        self._changed()

    def play_on(self) -> None:
        """Continue from the position on the board; the game with its later moves is kept."""
        before = self.session.copy()
        before.stop_clock()
        before.saved_as, self.session.saved_as = self.session.saved_as, ""
        self._previous = before, self.setup, self.reviewing
        self.reviewing = False
        self.session.play_on()
        self._replaced_at = self.session, self.session.length
        self._changed()

    def go_to(self, ply: int) -> None:
        """Show another position of the game."""
        self.session.go_to(ply)
        self._redraw()

    def pause(self, paused: bool) -> None:
        """Stop computer players before their next move, or let them continue."""
        self.paused = paused
        self._changed()

    def analyse_with(self, key: str | None) -> None:
        """Show the analysis of another network; None: no analysis."""
        if key == self.analyst:
            return
        if key is not None and not self.entry(key).is_network:
            raise KeiseiError(NO_NETWORK.format(player=key))
        self.analyst = key
        self.analyses = []
        self._changed()

    def analyse_by_default(self, *, otherwise: str | None = None) -> None:
        """Show the analysis of a network that plays here, unless one is shown already.

        If none plays, that of the network with the key `otherwise`.
        """
        if self.analyst is not None:
            return
        for player in self.setup.players.values():
            if player.key is not None and self.entry(player.key).is_network:
                self.analyse_with(player.key)
                return
        if otherwise is not None:
            self.analyse_with(otherwise)

    def find_hint(self) -> None:
        """Let a network look at the position on the board: one that plays, or the package's."""
        self.analyse_by_default(otherwise=BUILTIN_ENTRY.key)

    def entry(self, key: str) -> CatalogueEntry:
        """Return a player of the catalogue; raises `KeiseiError` if there is none with this key.

        Entries are kept: a game continues after training has deleted its player's checkpoint.
        """
        if key not in self._entries:
            self._entries[key] = self.catalogue.find(key)
        return self._entries[key]

    def check_clock(self) -> None:
        """End the game if the side to move has run out of time."""
        if self.session.has_lost_on_time:
            self.session.finish(Ending.TIME_UP)
            self._changed()

    # ---- pages ----

    async def _release(self) -> None:
        """Stop engines and release networks."""
        opponents, self._opponents = list(self._opponents.values()), {}
        self._prepared.clear()
        self._reviewer = self._analysed = None
        for opponent in opponents:
            await asyncio.to_thread(opponent.close)

    async def settled(self) -> None:
        """Wait until no computer player or analysis is running. For tests."""
        while running := [task for task in self._tasks.values() if not task.done()]:
            await asyncio.gather(*running)

    def _changed(self) -> None:
        """Update everything that depends on the game after a change of it."""
        self.problem = ""
        if self._analysed is not None and self._analysed[0] is not self.session:
            self.analyses = []
        del self.analyses[self.session.length + 1 :]
        self._resume()
        self._redraw()

    def _resume(self) -> None:
        """Start or stop the clock, and start the tasks that have something to do."""
        session, turn = self.session, self.session.turn
        is_held_up = turn not in session.people and (self.paused or turn.name in self._loading)
        if not self._pages or is_held_up:
            session.stop_clock()
        else:
            session.start_clock()
        if not self._pages:
            return
        for work, is_wanted in (
            (self._play, not session.is_persons_turn),
            (self._prepare, session.is_persons_turn),
            (self._analyse, self.analyst is not None),
            (self._keep, self.saved is not None),
        ):
            task = self._tasks.get(work.__name__)
            if is_wanted and (task is None or task.done()):
                task = asyncio.get_running_loop().create_task(work())
                task.add_done_callback(self._report_failure)
                self._tasks[work.__name__] = task

    def _report_failure(self, task: "asyncio.Task[None]") -> None:
        """Show an unexpected error of a task, which would otherwise look like endless thinking."""
        if task.cancelled() or (error := task.exception()) is None:
            return
        logger.error("in a game room: %s", error, exc_info=error)
        self._halt(f"something went wrong: {error!r}; see the log")

    def _halt(self, problem: str) -> None:
        """Pause the game because of an error."""
        self.paused, self.problem = True, problem
        self._resume()
        self._redraw()

    # ---- computer players ----

    async def _play(self) -> None:
        """Play the computer players' moves until it is a person's turn or the game is over."""
        while self._pages and not self.paused and self.session.end is None:
            session, revision, color = self.session, self.session.revision, self.session.turn
            if color in session.people:
                return
            self.thinking = color
            self._redraw()
            answer: Move | Ending | KeiseiError
            try:
                answer = await self._answer(color)
            except KeiseiError as error:
                answer = error
            finally:
                self.thinking = None
            if session is not self.session or revision != session.revision:
                continue  # the game has changed in the meantime
            if isinstance(answer, KeiseiError):
                if self._pages:  # otherwise the player was stopped because the last page closed
                    self._halt(str(answer))
                return
            self._apply(answer)

    async def _answer(self, color: Color) -> Move | Ending:
        """Return the move of a side's computer player, or how it ends the game."""
        game = self.session.game.copy()  # a new game may have begun when the player has loaded
        player = self.setup.players[color]
        opponent = await self._opponent(color.name, player)
        answer, _ = await asyncio.gather(
            asyncio.to_thread(opponent.choose, game),
            asyncio.sleep(0.0 if self.session.people else self._pace),
        )
        return answer

    def _apply(self, answer: Move | Ending) -> None:
        """Play a computer player's answer; a position that is being looked at stays on view."""
        session, cursor = self.session, self.session.cursor
        is_looking_back = cursor != session.length
        if isinstance(answer, Ending):
            session.finish(answer)
        else:
            session.push(answer)
        if is_looking_back:
            session.go_to(cursor)
        self._changed()

    async def _prepare(self) -> None:
        """Load the computer players while people think about their first move.

        A player that cannot be loaded is reported at its turn, when it is tried again.
        """
        for color, player in self.setup.players.items():
            wanted = color.name, player
            if player.key is None or wanted in self._prepared or not self._pages:
                continue
            self._prepared.add(wanted)
            with suppress(KeiseiError):
                opponent = await self._opponent(*wanted)
                await asyncio.to_thread(opponent.warm_up)

    async def _opponent(self, role: str, player: PlayerChoice) -> "Opponent":
        """Return the player of a role, loaded if it is not yet."""
        async with self._role_locks[role]:
            return self._opponents.get((role, player)) or await self._load(role, player)

    async def _load(self, role: str, player: PlayerChoice) -> "Opponent":
        """Load a player in a thread, in place of the one that had the role before."""
        assert player.key is not None
        spec = self.entry(player.key).player_spec(player.level)
        self._loading.add(role)
        self._resume()
        try:
            for key in [key for key in self._opponents if key[0] == role]:
                await asyncio.to_thread(self._opponents.pop(key).close)
            opponent = await asyncio.to_thread(_open_player, spec, self._seed)
        finally:
            self._loading.remove(role)
            self._resume()
        if not self._pages:  # the last page was closed in the meantime
            await asyncio.to_thread(opponent.close)
            raise KeiseiError(mark("no page shows the game any more"))
        self._opponents[role, player] = opponent
        return opponent

    def _names(self, setup: GameSetup) -> dict[str, str]:
        """Return the players' names as headers of a record; checks that the catalogue has them."""
        return {
            key: YOU if player.key is None else self.entry(player.key).player_name(player.level)
            for key, player in ((header.BLACK, setup.black), (header.WHITE, setup.white))
        }

    # ---- keeping ----

    async def _keep(self) -> None:
        """Save the game if a person plays it, and again if it has changed in the meantime."""
        while self.saved is not None:
            session, wanted = self.session, (self.session, self.session.revision)
            if wanted == self._kept or not session.length or not self.setup.people:
                return
            if self.reviewing and not session.saved_as:
                return  # a file that was opened
            # It has its name before it is saved: by then another session may have taken it over.
            session.saved_as = session.saved_as or new_name()
            record, players = session.record(), self.setup.to_json()
            problem = ""
            try:
                await asyncio.to_thread(
                    self.saved.save, record, name=session.saved_as, players=players
                )
                self._kept = wanted
            except KeiseiError as error:
                problem = str(error)
            if problem != self.save_problem:
                self.save_problem = problem
                self._redraw()
            if problem and wanted == (self.session, self.session.revision):
                return  # it is tried again at the next change

    # ---- analysis ----

    async def _analyse(self) -> None:
        """Let the analyst evaluate the game, and again if it has changed in the meantime."""
        while self._pages and self.analyst is not None:
            wanted = self.session, self.session.revision, self.analyst
            if wanted == self._analysed:
                return
            player = PlayerChoice(self.analyst)
            try:
                opponent = await self._opponent(_ANALYST, player)
                analyses = await asyncio.to_thread(
                    self._reviewer_of(opponent).review, self.session.game.copy()
                )
            except KeiseiError as error:
                self.analyst, self.problem = None, str(error)
                self._redraw()
                return
            if wanted == (self.session, self.session.revision, self.analyst):
                self.analyses, self._analysed = analyses, wanted
                self._redraw()

    def _reviewer_of(self, opponent: "Opponent") -> Reviewer:
        if self._reviewer is None or self._reviewer[0] is not opponent:
            if opponent.predictor is None:
                raise KeiseiError(NO_NETWORK.format(player=opponent.name))
            self._reviewer = opponent, Reviewer(opponent.predictor)
        return self._reviewer[1]


def _open_player(spec: str, seed: int | None) -> "Opponent":
    """Make a player. The players' modules, which take seconds to import, are imported here."""
    from keisei.play.opponent import Opponent

    return Opponent.from_spec(spec, seed=seed)


class Lobby(Rooms[GameRoom]):
    """The game rooms by id."""

"""``keisei play`` in the browser: its settings, its first game, and the page it serves."""

from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from keisei.play.mate_problems import read_problems
from keisei.play.saved_games import SavedGames
from keisei.play.session import GameSession
from keisei.shogi.notation.sfen import STARTPOS_SFEN
from keisei.shogi.render.glyphs import Lettering
from keisei.shogi.types import Color
from keisei.web.play.catalogue import (
    BUILTIN_ENTRY,
    PERSON,
    Catalogue,
    GameSetup,
    PlayerChoice,
    require_existing,
)
from keisei.web.play.game_room import GameRoom, Lobby
from keisei.web.server import LOOPBACK, PROBLEMS_ADDRESS, serve


@dataclass(frozen=True, kw_only=True)
class PlaySettings:
    """The first game of a page, and the players that can be chosen."""

    runs: Path
    """Directory that holds the runs to choose from."""

    model: str | None = None
    """Spec of the opponent; None: the player in the package, if the page's visitor agrees."""

    others: tuple[str, ...] = ()
    """Specs of further players to choose from."""

    watch: bool = False
    """Whether the model plays the first of the others while people watch."""

    color: Color = Color.BLACK
    """The side that the person plays."""

    lettering: Lettering = "kanji"
    start: str = STARTPOS_SFEN
    seed: int | None = None
    games: Path | None = None
    """Folder in which games are kept; None: the usual one."""

    def first_game(self) -> GameSetup:
        """Return the setup with which a new page begins."""
        key = BUILTIN_ENTRY.key if self.model is None else f"named:{self.model}"
        model = PlayerChoice(key)
        other = PlayerChoice(f"named:{self.others[0]}") if self.watch else PERSON
        if self.watch or self.color is Color.WHITE:
            return GameSetup(black=model, white=other, start=self.start)
        return GameSetup(black=other, white=model, start=self.start)


def serve_play(
    settings: PlaySettings,
    *,
    host: str = LOOPBACK,
    port: int | None = None,
    token: str | None = None,
    open_browser: bool = True,
    console: Console | None = None,
) -> None:
    """Serve the board until Ctrl-C; the other arguments are those of `serve`.

    Raises:
        KeiseiError: A player or the starting position does not exist.
    """
    named = [spec for spec in (settings.model, *settings.others) if spec is not None]
    for spec in named:
        require_existing(spec)
    GameSession(settings.start)  # raises if it is not a position
    catalogue = Catalogue(settings.runs, named)
    serve(
        lambda: _build_page(settings, catalogue),
        title="Keisei",
        host=host,
        port=port,
        token=token,
        open_browser=open_browser,
        console=console,
    )


def _build_page(settings: PlaySettings, catalogue: Catalogue) -> None:
    from nicegui import app, ui

    from keisei.web.analysis.analysis_routes import build_analysis_routes
    from keisei.web.play.play_page import PlayPage
    from keisei.web.play.problems_page import ProblemsPage

    lobby, saved = Lobby(), SavedGames(settings.games)

    def new_room(start: str) -> GameRoom:
        setup = settings.first_game()
        setup = setup.starting_at(start) if start else setup
        room = GameRoom(catalogue, setup, seed=settings.seed, saved=saved)
        room.analyse_by_default()
        return room

    @ui.page("/")
    def play(room: str = "", start: str = "") -> None:
        """Show a board; ``?room=`` is the id of the game of a page that is reloaded.

        ``?start=`` is the SFEN of a position to play from.
        """
        found = lobby.find(room)
        page = PlayPage(found or new_room(start), lobby, lettering=settings.lettering)
        page.build(ask_first=found is None and settings.model is None and not start)

    build_analysis_routes(lambda: catalogue, lobby.find, lettering=settings.lettering)

    @ui.page(PROBLEMS_ADDRESS)
    def tsume(problem: str = "1") -> None:
        """Show a mate problem; ``?problem=`` is its number."""
        ProblemsPage(read_problems(), problem, address=PROBLEMS_ADDRESS)

    app.on_shutdown(lobby.close)

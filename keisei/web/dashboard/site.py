"""The dashboard's site: all runs, one run, the ladder, and a board to play checkpoints on."""

from functools import cache, partial
from pathlib import Path
from typing import TYPE_CHECKING

from fastapi import Request
from nicegui import app, ui
from rich.console import Console

from keisei.errors import KeiseiError
from keisei.run_files import LADDER
from keisei.runs.folder import RunsFolder
from keisei.runs.watch import Watch
from keisei.web.analysis.analysis_routes import build_analysis_routes
from keisei.web.dashboard.components import GAMES_ADDRESS, PLAY_ADDRESS, Dashboard
from keisei.web.dashboard.games_page import games_page
from keisei.web.dashboard.ladder_page import ladder_page
from keisei.web.dashboard.overview_page import overview_page, view_from
from keisei.web.dashboard.run_page import run_page
from keisei.web.guard import is_loopback
from keisei.web.server import LOOPBACK, PROBLEMS_ADDRESS, serve

if TYPE_CHECKING:
    from keisei.web.play.catalogue import Catalogue
    from keisei.web.play.game_room import GameRoom, Lobby


def serve_dashboard(
    runs: Path,
    *,
    store: Path | None = None,
    host: str = LOOPBACK,
    port: int | None = None,
    token: str | None = None,
    control: bool | None = None,
    open_browser: bool = True,
    console: Console | None = None,
) -> None:
    """Serve the dashboard until Ctrl-C; the other arguments are those of `serve`.

    Args:
        runs: the directory that holds the runs.
        store: the results behind the ladder; None: the default file among the runs.
        host: see `serve`.
        port: see `serve`.
        token: see `serve`.
        control: whether visitors may pause, resume and reset runs; None: if only this machine can
            reach the server.
        open_browser: see `serve`.
        console: see `serve`.
    """
    with Watch(RunsFolder(runs)) as watch:
        allows_control = is_loopback(host) if control is None else control
        dashboard = Dashboard(watch, store or runs / Path(LADDER).name, allows_control)
        serve(
            lambda: build_pages(dashboard),
            title="Keisei dashboard",
            host=host,
            port=port,
            token=token,
            open_browser=open_browser,
            console=console,
        )


def build_pages(dashboard: Dashboard) -> None:
    """Register all pages."""

    @ui.page("/")
    def index(request: Request) -> None:
        query = request.query_params
        overview_page(
            dashboard,
            query.get("runs"),
            query.getlist("show"),
            view_from(query),
            group=query.get("group") == "1",
        )

    @ui.page("/run/{name}")
    def one_run(name: str, request: Request) -> None:
        run_page(dashboard, name, view_from(request.query_params))

    @ui.page(GAMES_ADDRESS)
    def games(runs: str = "") -> None:
        games_page(dashboard, runs)

    @ui.page("/ladder")
    def ladder() -> None:
        ladder_page(dashboard)

    build_play_page(dashboard.watch.folder.path)
    build_problems_page()


def build_play_page(runs: Path) -> None:
    """Register the board of ``keisei play``, which imports Numba when it is first opened."""

    @cache
    def lobby() -> "Lobby":
        from keisei.web.play.game_room import Lobby

        app.on_shutdown((rooms := Lobby()).close)
        return rooms

    @ui.page(PLAY_ADDRESS)
    def play(against: str = "", room: str = "", start: str = "") -> None:
        from keisei.web.play.play_page import PlayPage

        found = lobby().find(room) or _room_against(runs, against)
        page = PlayPage(found or _new_room(runs, start), lobby(), lettering="kanji")
        page.build(ask_first=found is None and not start)

    build_analysis_routes(
        partial(_catalogue, runs), lambda room: lobby().find(room), play_address=PLAY_ADDRESS
    )


def build_problems_page() -> None:
    """Register the mate problems, which import Numba when they are first opened."""

    @ui.page(PROBLEMS_ADDRESS)
    def tsume(problem: str = "1") -> None:
        from keisei.play.mate_problems import read_problems
        from keisei.web.play.problems_page import ProblemsPage

        ProblemsPage(read_problems(), problem, address=PROBLEMS_ADDRESS)


def _room_against(runs: Path, key: str) -> "GameRoom | None":
    """Return a new room for a game against a player of the catalogue; None if there is none.

    Only the catalogue's players can be named, so that no other file is opened.
    """
    from keisei.play.saved_games import SavedGames
    from keisei.web.play.catalogue import GameSetup, PlayerChoice
    from keisei.web.play.game_room import GameRoom

    try:
        setup = GameSetup(white=PlayerChoice(key))
        room = GameRoom(_catalogue(runs), setup, saved=SavedGames())
    except KeiseiError:  # the checkpoint may have been deleted meanwhile
        return None
    room.analyse_by_default()
    return room


def _new_room(runs: Path, start: str) -> "GameRoom":
    """Return a new room: two people, or the player in the package from a position."""
    from keisei.play.saved_games import SavedGames
    from keisei.web.play.catalogue import BUILTIN_ENTRY, GameSetup, PlayerChoice
    from keisei.web.play.game_room import GameRoom

    setup = GameSetup(white=PlayerChoice(BUILTIN_ENTRY.key)).starting_at(start) if start else None
    return GameRoom(_catalogue(runs), setup, saved=SavedGames())


def _catalogue(runs: Path) -> "Catalogue":
    from keisei.web.play.catalogue import Catalogue

    return Catalogue(runs)

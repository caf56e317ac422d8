"""The dashboard's pages: all runs, one run, the ladder, a board to play on."""

from nicegui import ui

from keisei.web.dashboard.components import Dashboard
from keisei.web.dashboard.ladder_page import ladder_page
from keisei.web.dashboard.overview_page import overview
from keisei.web.dashboard.play_link import build_play_page
from keisei.web.dashboard.run_page import run_page

__all__ = ["Dashboard", "build_pages"]


def build_pages(board: Dashboard) -> None:
    """Register the pages."""

    @ui.page("/")
    def index(runs: str | None = None, show: str = "", x: str = "timestep") -> None:
        overview(board, runs, show, x)

    @ui.page("/run/{name}")
    def one_run(name: str, x: str = "timestep") -> None:
        run_page(board, name, x)

    @ui.page("/ladder")
    def ladder() -> None:
        ladder_page(board)

    build_play_page(board.watch.folder.path)

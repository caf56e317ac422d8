"""Playing a checkpoint from the dashboard, on the board of ``keisei play``."""

from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from nicegui import app, ui

from keisei.errors import KeiseiError

if TYPE_CHECKING:
    from keisei.runs.artifacts import RunCheckpoint
    from keisei.web.play.game_room import Table
    from keisei.web.play.room_directory import Tables

ADDRESS: Final = "/play"


def play_address(run: str, checkpoint: "RunCheckpoint", *, is_newest: bool) -> str:
    """The page on which a checkpoint is played: the catalogue calls a run's newest by the run."""
    key = f"run:{run}" if is_newest else f"run:{run}/{checkpoint.name}"
    return f"{ADDRESS}?against={quote(key, safe='')}"


def build_play_page(runs: Path) -> None:
    """Register the page."""
    house = _House(runs)

    @ui.page(ADDRESS)
    def play(against: str = "", table: str = "") -> None:
        from keisei.web.play.play_page import PlayPage

        found, is_set = house.table(table, against)
        PlayPage(found, house.tables, lettering="kanji").build(ask_first=not is_set)

    app.on_shutdown(house.close)


class _House:
    """The tables that visitors play at. Numba is only imported when the first one is set."""

    def __init__(self, runs: Path) -> None:
        self._runs = runs
        self._tables: Tables | None = None

    @property
    def tables(self) -> "Tables":
        """Those that visitors sit at."""
        from keisei.web.play.room_directory import Tables

        self._tables = self._tables or Tables()
        return self._tables

    def table(self, table_id: str, key: str) -> "tuple[Table, bool]":
        """(the table with an id, or a new one; whether it is known who plays).

        Only players of the catalogue can be named: no other file is opened.
        """
        from keisei.web.play.catalogue import Catalogue
        from keisei.web.play.game_room import Table
        from keisei.web.play.game_setup import Seat, Setup

        if (found := self.tables.find(table_id)) is not None:
            return found, True
        catalogue = Catalogue(self._runs)
        try:
            table = Table(catalogue, Setup(white=Seat(key)))
        except KeiseiError:  # it may have been removed meanwhile
            return Table(catalogue), False
        table.advise_by_default()
        return table, True

    async def close(self) -> None:
        """End all players."""
        if self._tables is not None:
            await self._tables.close()

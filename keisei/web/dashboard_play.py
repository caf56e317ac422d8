"""Playing a checkpoint from the dashboard, on the board of ``keisei play``."""

from pathlib import Path
from typing import TYPE_CHECKING, Final
from urllib.parse import quote

from nicegui import app, ui

from keisei.errors import KeiseiError

if TYPE_CHECKING:
    from keisei.dashboard.checkpoints import Playable
    from keisei.web.table import Table, Tables

ADDRESS: Final = "/play"


def play_address(run: str, checkpoint: "Playable", *, is_newest: bool) -> str:
    """The page on which a checkpoint is played: the catalogue calls a run's newest by the run."""
    key = f"run:{run}" if is_newest else f"run:{run}/{checkpoint.name}"
    return f"{ADDRESS}?against={quote(key, safe='')}"


def build_play_page(runs: Path) -> None:
    """Register the page."""
    house = _House(runs)

    @ui.page(ADDRESS)
    def play(against: str = "", table: str = "") -> None:
        from keisei.web.play_page import PlayPage

        found, is_set = house.table(table, against)
        PlayPage(found, lettering="kanji").build(ask_first=not is_set)

    app.on_shutdown(house.close)


class _House:
    """The tables that visitors play at. Numba is only imported when the first one is set."""

    def __init__(self, runs: Path) -> None:
        self._runs = runs
        self._tables: Tables | None = None

    def table(self, table_id: str, key: str) -> "tuple[Table, bool]":
        """(the table with an id, or a new one; whether it is known who plays).

        Only players of the catalogue can be named: no other file is opened.
        """
        from keisei.web.catalogue import Catalogue
        from keisei.web.table import Seat, Setup, Table, Tables

        self._tables = self._tables or Tables()
        if (found := self._tables.find(table_id)) is not None:
            return found, True
        catalogue = Catalogue(self._runs)
        try:
            seat = Seat(catalogue.find(key).key)
        except KeiseiError:  # it may have been removed meanwhile
            seat = Seat()
        table = Table(catalogue, Setup(white=seat), adviser=seat.key)
        self._tables.add(table)
        return table, seat.key is not None

    async def close(self) -> None:
        """End all players."""
        if self._tables is not None:
            await self._tables.close()

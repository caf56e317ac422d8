"""Playing a checkpoint from the dashboard, on the board of ``keisei play``."""

from pathlib import Path
from typing import Final
from urllib.parse import quote

from nicegui import app, ui

from keisei.dashboard.checkpoints import Playable
from keisei.errors import KeiseiError
from keisei.web.catalogue import Catalogue
from keisei.web.table import Seat, Setup, Table, Tables

ADDRESS: Final = "/play"


def play_address(run: str, checkpoint: Playable, *, is_newest: bool) -> str:
    """The page on which a checkpoint is played: the catalogue calls a run's newest by the run."""
    key = f"run:{run}" if is_newest else f"run:{run}/{checkpoint.name}"
    return f"{ADDRESS}?against={quote(key, safe='')}"


def build_play_page(runs: Path) -> None:
    """Register the page; only players of the catalogue can be named in its address."""
    catalogue = Catalogue(runs)
    tables = Tables()

    @ui.page(ADDRESS)
    def play(against: str = "", table: str = "") -> None:
        from keisei.web.play_page import PlayPage

        found = tables.find(table)
        is_known = found is not None
        if found is None:
            key = _known(catalogue, against)
            found = Table(catalogue, Setup(white=Seat(key)), adviser=key)
            tables.add(found)
            is_known = key is not None
        PlayPage(found, lettering="kanji").build(ask_first=not is_known)

    app.on_shutdown(tables.close)


def _known(catalogue: Catalogue, key: str) -> str | None:
    """The key, if somebody has it: the checkpoint may have been removed meanwhile."""
    try:
        return catalogue.find(key).key
    except KeiseiError:
        return None

"""``keisei play`` in the browser: which pages there are, and what the first one shows."""

from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from keisei.play.session import GameSession
from keisei.shogi.notation.sfen import STARTPOS_SFEN
from keisei.shogi.render.glyphs import Lettering
from keisei.shogi.types import Color
from keisei.web.play.catalogue import Catalogue, require_existing
from keisei.web.play.game_room import Table
from keisei.web.play.game_setup import Seat, Setup
from keisei.web.play.room_directory import Tables
from keisei.web.server import LOOPBACK, serve


@dataclass(frozen=True, kw_only=True)
class PlaySettings:
    """What the command line says about the first game, and about who can be played."""

    runs: Path
    model: str | None = None
    """Who is played; None: the page asks."""

    others: tuple[str, ...] = ()
    """Further players to choose from."""

    watch: bool = False
    """Whether the model plays the first of the others, and people look on."""

    color: Color = Color.BLACK
    """The side that the person plays."""

    lettering: Lettering = "kanji"
    start: str = STARTPOS_SFEN
    seed: int | None = None

    def first_game(self) -> Setup:
        """The game that a new page begins."""
        if self.model is None:
            return Setup(start=self.start)
        model = Seat(f"named:{self.model}")
        other = Seat(f"named:{self.others[0]}") if self.watch else Seat()
        if self.watch or self.color is Color.WHITE:
            return Setup(black=model, white=other, start=self.start)
        return Setup(black=other, white=model, start=self.start)


def serve_play(
    settings: PlaySettings,
    *,
    host: str = LOOPBACK,
    port: int | None = None,
    token: str | None = None,
    open_browser: bool = True,
    console: Console | None = None,
) -> None:
    """Serve the board until Ctrl-C; the arguments are those of `serve`."""
    named = [word for word in (settings.model, *settings.others) if word is not None]
    for word in named:
        require_existing(word)
    GameSession(settings.start)  # refuses what can't be played
    catalogue = Catalogue(settings.runs, named)
    tables = Tables()
    serve(
        lambda: _register(settings, catalogue, tables),
        title="Keisei",
        host=host,
        port=port,
        token=token,
        open_browser=open_browser,
        console=console,
    )


def _register(settings: PlaySettings, catalogue: Catalogue, tables: Tables) -> None:
    from nicegui import app, ui

    from keisei.web.play.play_page import PlayPage

    def new_table() -> Table:
        table = Table(catalogue, settings.first_game(), seed=settings.seed)
        table.advise_by_default()
        return table

    @ui.page("/")
    def play(table: str = "") -> None:
        """A board; ``?table=`` finds the game of a page that was loaded before."""
        found = tables.find(table)
        page = PlayPage(found or new_table(), tables, lettering=settings.lettering)
        page.build(ask_first=found is None and settings.model is None)

    app.on_shutdown(tables.close)

"""Sample games of a run to choose from and to step through: one viewer, or two side by side."""

from collections.abc import Callable
from typing import Any

from nicegui import events, run, ui

from keisei.errors import KeiseiError
from keisei.runs.artifacts import GameFile, OpenedGame, list_games, open_game
from keisei.runs.folder import RunsFolder
from keisei.web.dashboard.components import (
    board_picture,
    ending_text,
    moves_text,
    set_name,
)
from keisei.web.dashboard.run_messages import message_text
from keisei.web.events import number_within
from keisei.web.languages import page_language, tr
from keisei.web.theme import toast


class GameViewer:
    """A list of a run's sample games, and a board that shows one of them."""

    def __init__(
        self,
        folder: RunsFolder,
        name: str,
        games: list[GameFile],
        *,
        on_ply: Callable[[int], None] = lambda ply: None,
    ) -> None:
        """Add the viewer.

        Args:
            folder: the folder of the run.
            name: the run.
            games: its sample games.
            on_ply: called with the ply that is shown when someone steps through the game.
        """
        self._folder, self._name, self._on_ply = folder, name, on_ply
        self._game: OpenedGame | None = None
        self._is_following = False
        labels = {
            game.file: tr(
                "update {number}: {players}",
                number=game.update,
                players=game.players.replace("-vs-", " - "),
            )
            for game in games
        }
        select = ui.select(
            labels, label=tr("Game"), on_change=self._open, with_input=True, clearable=False
        )
        select.props("outlined dense options-dense behavior=menu").mark("game")
        select.style("max-width: 420px")
        self._select = select
        with ui.element("div").classes("d-viewer") as self._viewer:
            self._picture = ui.html(sanitize=False).classes("d-board")
            self._caption = ui.label("").classes("d-hint").style("text-align: center")
            self._caption.props["aria-live"] = "polite"
            with ui.element("div").classes("d-row").style("flex-wrap: nowrap"):
                self._step("first_page", tr("First position"), lambda: 0)
                self._step("chevron_left", tr("Previous move"), lambda: self.ply - 1)
                self._slider = ui.slider(min=0, max=1, value=0, on_change=self._draw)
                set_name(self._slider, tr("Ply"))
                self._step("chevron_right", tr("Next move"), lambda: self.ply + 1)
                self._step("last_page", tr("Last position"), lambda: self._last)
        self._viewer.set_visibility(False)

    def choose(self, file: str) -> None:
        """Open a game."""
        self._select.value = file

    @property
    def ply(self) -> int:
        """The ply that is shown."""
        return int(number_within(self._slider.value, self._last))

    def show_ply(self, ply: int) -> None:
        """Show a ply, or the last one if the game is shorter, without telling others."""
        self._is_following = True
        self._slider.value = min(max(0, ply), self._last)
        self._is_following = False

    @property
    def _last(self) -> int:
        return len(self._game.frames) - 1 if self._game is not None else 0

    def _step(self, icon: str, label: str, ply: Callable[[], int]) -> None:
        def go() -> None:
            self._slider.value = min(max(0, ply()), self._last)

        set_name(ui.button(icon=icon, on_click=go).props("flat round dense"), label)

    async def _open(self, event: events.ValueChangeEventArguments[Any]) -> None:
        try:
            game = await run.io_bound(open_game, self._folder, self._name, str(event.value))
        except KeiseiError as error:
            toast(message_text(str(error)))
            return
        if game is None:  # the server is shutting down
            return
        self._game = game
        self._viewer.set_visibility(True)
        self._slider.props(f"max={self._last}")
        if self.ply == self._last:
            self._draw()
        self._slider.value = self._last

    def _draw(self) -> None:
        if self._game is None:
            return
        ply = min(self.ply, self._last)
        frame = self._game.frames[ply]
        self._picture.content = board_picture(
            frame.diagram, frame.last_move, page_language(), frame.check_square
        )
        caption = [
            tr("{black} (Black) - {white} (White)", black=self._game.black, white=self._game.white),
            tr("move {number} of {last}", number=self.ply, last=self._last),
        ]
        if frame.last_move is not None:
            caption.append(moves_text(self._game.frames[ply - 1].diagram, [frame.last_move]))
        if ply == self._last and self._game.ending is not None:
            caption.append(ending_text(self._game.ending))
        self._caption.text = tr(", ").join(caption)
        if not self._is_following:
            self._on_ply(self.ply)


def games_of(folder: RunsFolder, name: str) -> list[GameFile]:
    """Return the sample games of a run; none if there is no such run."""
    try:
        folder.run(name)
    except KeiseiError:
        return []
    return list_games(folder, name)

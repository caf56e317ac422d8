"""`RoomPage`: one browser's view of a room, which it enters when the browser connects."""

from abc import ABC, abstractmethod
from typing import Generic

from nicegui import Client, ui

from keisei.errors import KeiseiError
from keisei.web.languages import tr
from keisei.web.play.error_wording import error_text
from keisei.web.rooms import AnyRoom, Rooms
from keisei.web.theme import frame, toast


class RoomPage(ABC, Generic[AnyRoom]):
    """A page that shows a room, and is redrawn when the room changes."""

    def __init__(self, room: AnyRoom, rooms: Rooms[AnyRoom]) -> None:
        self._room, self._rooms = room, rooms
        self._client: Client = ui.context.client
        self._is_refused = False
        self._client.on_delete(self._leave)
        self._client.on_connect(self._enter)

    @abstractmethod
    def draw(self) -> None:
        """Show the room as it is now."""

    def _enter(self) -> None:
        """Attach the page to its room when the browser connects, or connects again.

        Not earlier: a request for the page alone may come from something other than a browser, or
        from a page of another site, and must not make a player load.
        """
        if self._is_refused:
            return
        try:
            self._rooms.enter(self._room, self.draw)
        except KeiseiError as error:
            self._refuse(error_text(error))
            return
        self.draw()
        # A page that is reloaded finds its game by this address.
        self._client.run_javascript(
            f"history.replaceState(history.state, '', '?room={self._room.id}')"
        )

    def _refuse(self, reason: str) -> None:
        """Show why there is no game instead of the game."""
        self._is_refused = True
        self._client.content.clear()
        with self._client.content, frame(tr("Shogi")), ui.element("div").classes("k-card"):
            ui.label(reason).props('role="alert"')

    async def _leave(self) -> None:
        await self._room.detach(self.draw)

    def _warn(self, error: KeiseiError) -> None:
        with self._client:
            toast(error_text(error))

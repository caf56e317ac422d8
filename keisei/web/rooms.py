"""`Room`: what pages show together. `Rooms`: kept by id, so that a reloaded page finds its own."""

import secrets
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator
from typing import Final, Generic, TypeVar

from keisei.errors import KeiseiError
from keisei.web.languages import mark

MAX_ROOMS: Final = 32
"""Rooms of a kind at a time; each keeps its engines and networks while a page shows it."""

NO_ROOM: Final = mark("All game rooms are in use. Close a page with a game, then reload this one.")

NO_NETWORK: Final = mark("{player} has no network")

Redraw = Callable[[], None]
"""Function by which a page redraws itself; it also identifies the page."""


class Room(ABC):
    """A game that is played, or one that is analysed, and the pages that show it.

    Without pages it is idle. Call its methods in the event loop's thread only.
    """

    def __init__(self) -> None:
        self.id = secrets.token_urlsafe(9)
        self._pages: list[Redraw] = []

    @property
    def is_watched(self) -> bool:
        """Whether a page shows the room."""
        return bool(self._pages)

    def attach(self, redraw: Redraw) -> None:
        """Add a page, which is redrawn after every change; adding it twice has no effect."""
        if redraw not in self._pages:
            self._pages.append(redraw)
        self._resume()

    async def detach(self, redraw: Redraw) -> None:
        """Remove a page; without pages the room becomes idle."""
        if redraw in self._pages:
            self._pages.remove(redraw)
        if not self._pages:
            await self.close()

    async def close(self) -> None:
        """Stop what runs in the room, and release its memory; the game is kept."""
        self._pages.clear()
        self._resume()
        await self._release()

    def _redraw(self) -> None:
        for redraw in list(self._pages):
            redraw()

    @abstractmethod
    def _resume(self) -> None:
        """Start what is to run while pages show the room, or stop it if none does."""

    @abstractmethod
    async def _release(self) -> None:
        """Release networks and engines."""


AnyRoom = TypeVar("AnyRoom", bound=Room)


class Rooms(Generic[AnyRoom]):
    """Rooms by id: those with pages, and the latest of those that were left."""

    def __init__(self) -> None:
        self._rooms: dict[str, AnyRoom] = {}

    def __iter__(self) -> Iterator[AnyRoom]:
        return iter(self._rooms.values())

    def find(self, room_id: str) -> AnyRoom | None:
        """Return the room with an id; None if it is not kept."""
        return self._rooms.get(room_id)

    def enter(self, room: AnyRoom, redraw: Redraw) -> None:
        """Attach a page to a room, which is kept from now on.

        If there are `MAX_ROOMS`, the room that has been left for longest is dropped.

        Raises:
            KeiseiError: All rooms have pages.
        """
        self._rooms.pop(room.id, None)
        if len(self._rooms) >= MAX_ROOMS:
            left = next((old for old in self._rooms.values() if not old.is_watched), None)
            if left is None:
                raise KeiseiError(NO_ROOM)
            del self._rooms[left.id]
        self._rooms[room.id] = room
        room.attach(redraw)

    async def close(self) -> None:
        """Stop what runs in all rooms."""
        for room in self._rooms.values():
            await room.close()

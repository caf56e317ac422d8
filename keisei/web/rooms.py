"""`Rooms`: what pages show, kept by id, so that a page that is reloaded finds it again."""

from collections.abc import Callable, Iterator
from typing import Final, Generic, Protocol, TypeVar

from keisei.errors import KeiseiError
from keisei.web.languages import mark

MAX_ROOMS: Final = 32
"""Rooms of a kind at a time; each keeps its engines and networks while a page shows it."""

NO_ROOM: Final = mark("All game rooms are in use. Close a page with a game, then reload this one.")

Redraw = Callable[[], None]
"""Function by which a page redraws itself; it also identifies the page."""


class Room(Protocol):
    """What is known of a room: a game that is played, or one that is analysed."""

    id: str

    @property
    def is_watched(self) -> bool:
        """Whether a page shows the room."""

    def attach(self, redraw: Redraw) -> None:
        """Add a page."""

    async def close(self) -> None:
        """Stop what runs in the room."""


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

"""The tables of the club, by their ids: a page that is loaded anew finds its game again."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from keisei.errors import KeiseiError
from keisei.play.session import EVERYBODY
from keisei.shogi.notation.headers import TimeLimit
from keisei.shogi.notation.sfen import STARTPOS_SFEN
from keisei.shogi.types import Color
from keisei.web.play.game_room import Listener, Table


class Seat(NamedTuple):
    """Who plays a side."""

    key: str | None = None
    """Of the catalogue; None: a person."""

    level: int | None = None
    """Strength, where there is a choice; None: the usual one."""


PERSON: Final = Seat()


@dataclass(frozen=True)
class Setup:
    """What a game is begun with."""

    black: Seat = PERSON
    white: Seat = PERSON
    start: str = STARTPOS_SFEN
    limit: TimeLimit | None = None

    @property
    def seats(self) -> Mapping[Color, Seat]:
        """Both of them."""
        return {Color.BLACK: self.black, Color.WHITE: self.white}

    @property
    def people(self) -> frozenset[Color]:
        """The sides that people play."""
        return frozenset(color for color in EVERYBODY if self.seats[color].key is None)


MOST_TABLES: Final = 32
"""Tables that there are at a time, each with its engines and networks while a page shows it."""


class Tables:
    """Those at which somebody sits, and the last ones that were left."""

    def __init__(self) -> None:
        self._tables: dict[str, Table] = {}

    def find(self, table_id: str) -> Table | None:
        """The table with an id, if it is still there."""
        return self._tables.get(table_id)

    def attach(self, table: Table, listener: Listener) -> None:
        """Have a page sit down at a table, which is remembered from now on.

        Where there are many, the one that nobody has come to for longest is forgotten. Raises
        `KeiseiError` if somebody sits at all of them.
        """
        self._tables.pop(table.id, None)
        if len(self._tables) >= MOST_TABLES:
            left = next((old for old in self._tables.values() if not old.is_watched), None)
            if left is None:
                raise KeiseiError(
                    f"All {MOST_TABLES} tables are taken. Close a page with a game, then load this "
                    "one again."
                )
            del self._tables[left.id]
        self._tables[table.id] = table
        table.attach(listener)

    async def close(self) -> None:
        """End all engines."""
        for table in self._tables.values():
            await table.close()

"""The tables of the club, by their ids: a page that is loaded anew finds its game again."""

from typing import Final

from keisei.errors import KeiseiError
from keisei.web.play.game_room import Listener, Table

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

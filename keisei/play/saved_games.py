"""The folder in which people's games are kept: a KIF file each, saved after every move.

>>> saved = SavedGames(Path("games"))  # doctest: +SKIP
>>> saved.save(session.record())  # doctest: +SKIP
'20261118-130500-3f9c'
>>> saved.games()[0].name  # doctest: +SKIP
'20261118-130500-3f9c'
"""

import os
import re
import secrets
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Final

import platformdirs

from keisei.errors import KeiseiError
from keisei.shogi.notation.files import games_as_bytes, read_first_game
from keisei.shogi.notation.reader import UTF8
from keisei.shogi.notation.record import GameRecord
from keisei.system import read_bytes, write_atomically

GAMES_VARIABLE: Final = "KEISEI_GAMES"
"""Environment variable that names another folder."""

MAX_LISTED: Final = 100

_SUFFIX: Final = ".kif"
_NAME: Final = re.compile(r"[0-9]{8}-[0-9]{6}-[0-9a-f]{4}")
_PLAYERS: Final = "Keisei"
"""Header for what other programs do not know: who plays, so that the game can be continued."""


@dataclass(frozen=True)
class SavedGame:
    """A game in the folder."""

    name: str
    record: GameRecord

    @property
    def began(self) -> datetime:
        """When it was first saved."""
        return datetime.strptime(self.name[:15], "%Y%m%d-%H%M%S")

    @property
    def players(self) -> str:
        """What `SavedGames.save` was given as `players`; empty if the file has none."""
        return self.record.headers.get(_PLAYERS, "")

    def own_record(self) -> GameRecord:
        """Return the record with the headers that were the game's own."""
        own = {key: text for key, text in self.record.headers.items() if key != _PLAYERS}
        return replace(self.record, headers=own)


def games_directory() -> Path:
    """Return the folder in which games are kept where nothing else is said."""
    named = os.environ.get(GAMES_VARIABLE)
    if named:
        return Path(named)
    return platformdirs.user_data_path("keisei", appauthor=False) / "games"


def new_name() -> str:
    """Return a name for a game that is not saved yet."""
    return f"{datetime.now():%Y%m%d-%H%M%S}-{secrets.token_hex(2)}"


class SavedGames:
    """The folder. Several processes may use it: each game has a file of its own."""

    def __init__(self, directory: Path | None = None) -> None:
        """Use a folder, which is made when the first game is saved; None: the usual one."""
        self.directory = games_directory() if directory is None else directory

    def save(self, record: GameRecord, *, name: str = "", players: str = "") -> str:
        """Save a game and return its name.

        Args:
            record: the game so far.
            name: what was returned when it was saved before; empty: a new one.
            players: text from which the game's players can be found again.

        Raises:
            KeiseiError: The file cannot be written.
        """
        record = replace(record, headers={**record.headers, _PLAYERS: players})
        name = name or new_name()
        data = games_as_bytes([record], f"game{_SUFFIX}", UTF8)
        try:
            self.directory.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise KeiseiError(f"cannot make {self.directory}: {error.strerror}") from error
        write_atomically(self._path(name), data, durable=False)
        return name

    def games(self) -> list[SavedGame]:
        """Return the latest games, the newest first; files that cannot be read are left out."""
        try:
            names = [path.stem for path in self.directory.glob(f"*{_SUFFIX}")]
        except OSError:
            return []
        found = []
        for name in sorted(filter(_NAME.fullmatch, names), reverse=True)[:MAX_LISTED]:
            with suppress(KeiseiError):
                found.append(self.find(name))
        return found

    def find(self, name: str) -> SavedGame:
        """Return a game.

        Raises:
            KeiseiError: There is none of this name, or it cannot be read.
        """
        return SavedGame(name, read_first_game(read_bytes(self._path(name)), f"game{_SUFFIX}"))

    def delete(self, name: str) -> None:
        """Delete a game; it may be gone already."""
        with suppress(FileNotFoundError):
            self._path(name).unlink()

    def _path(self, name: str) -> Path:
        """Return the file of a game; a name from a page may be anything."""
        if not _NAME.fullmatch(name):
            raise KeiseiError(f"there is no saved game {name!r}")
        return self.directory / f"{name}{_SUFFIX}"

"""Who works in a sweep's directory: locks that the system gives back, however a process ends.

SQLite's own file locks serve as locks here: they work on every system, and need no clean-up.
"""

import sqlite3
import time
from pathlib import Path
from typing import Final, Self

from keisei.errors import KeiseiError
from keisei.system import FileAccessError

_LOOK_SECONDS: Final = 0.1


class LockedError(KeiseiError):
    """Another process holds the lock."""


class FileLock:
    """A lock that is held by one process alone or, `shared`, by several that share it.

    As a context it waits up to `patience` seconds and is then held until the end of the context.
    """

    def __init__(self, path: Path, *, shared: bool = False, patience: float = 0.0) -> None:
        self._path = path
        self._shared = shared
        self._patience = patience
        self._connection: sqlite3.Connection | None = None

    def __enter__(self) -> Self:
        deadline = time.monotonic() + self._patience
        while not self._is_taken():
            if time.monotonic() >= deadline:
                raise LockedError(f"{self._path} is in use by another process")
            time.sleep(_LOOK_SECONDS)
        return self

    def __exit__(self, *_: object) -> None:
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _is_taken(self) -> bool:
        try:
            connection = sqlite3.connect(self._path, timeout=0.0, isolation_level=None)
        except sqlite3.OperationalError as error:
            raise FileAccessError(f"cannot open {self._path}: {error}") from error
        try:
            if self._shared:
                connection.execute("BEGIN")
                connection.execute("SELECT * FROM sqlite_master").fetchall()
            else:
                connection.execute("BEGIN EXCLUSIVE")
        except sqlite3.DatabaseError as error:
            connection.close()
            if error.sqlite_errorcode == sqlite3.SQLITE_BUSY:
                return False
            raise FileAccessError(f"cannot lock {self._path}: {error}") from error
        self._connection = connection
        return True

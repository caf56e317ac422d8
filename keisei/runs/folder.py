"""The sample games of a run, to play through."""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, BinaryIO, Final

from keisei.errors import KeiseiError
from keisei.runs import run_files

if TYPE_CHECKING:
    pass

MAX_FILE_BYTES: Final = 16 << 20
"""The largest file that is read as a whole. Journals, which grow, are read in pieces."""


class OutsideError(KeiseiError):
    """A path that leads out of the folder."""


class RunsFolder:
    """A directory of runs, from which files are read."""

    def __init__(self, path: Path) -> None:
        """Look at a folder.

        Raises:
            KeiseiError: There is no such directory, or it is a run itself.
        """
        if not path.is_dir():
            raise KeiseiError(
                f"there is no directory {path}; `keisei train` makes runs, in {run_files.RUNS}"
            )
        if (path / run_files.CONFIG).is_file():
            raise KeiseiError(
                f"{path} is a run; the dashboard shows the folder that it is in: "
                f"keisei dashboard {path.resolve().parent}"
            )
        self.path = path
        self._root = Path(os.path.realpath(path))

    def runs(self) -> list[str]:
        """The names of the runs, sorted; links to directories elsewhere are none."""
        try:
            with os.scandir(self._root) as entries:
                names = [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
        except OSError:
            return []  # it is gone, perhaps for a moment
        return sorted(name for name in names if (self._root / name / run_files.CONFIG).is_file())

    def links(self) -> list[str]:
        """Names of the links in the folder: what they lead to is not shown."""
        try:
            with os.scandir(self._root) as entries:
                return sorted(entry.name for entry in entries if entry.is_symlink())
        except OSError:
            return []

    def resolve(self, *parts: str) -> Path:
        """The real path of something in the folder, there already or not.

        Raises:
            OutsideError: It leads out of the folder.
        """
        shown = "/".join(parts)
        if any("\0" in part for part in parts):
            raise OutsideError("a name with a zero byte is no name of a file")
        real = Path(os.path.realpath(self._root.joinpath(*parts)))
        if not real.is_relative_to(self._root):
            raise OutsideError(f"{shown} leads out of {self.path}: it is not read")
        return real

    def run(self, name: str) -> Path:
        """The directory of a run by its name.

        Raises:
            KeiseiError: There is none.
        """
        # A name is one part of a path: no other run's checkpoint, and not the folder itself.
        if name in ("", ".", "..") or any(mark in name for mark in "/\\\0"):
            raise OutsideError(f"{name!r} is no name of a run")
        path = self.resolve(name)
        if path != self._root / name or not (path / run_files.CONFIG).is_file():
            raise KeiseiError(f"there is no run {name} in {self.path}")
        return path

    @contextmanager
    def open(self, *parts: str) -> Iterator[BinaryIO]:
        """A file to read from.

        Raises:
            OutsideError: It leads out of the folder.
            OSError: It cannot be read, or is no ordinary file: opening a pipe would wait for ever.
        """
        path = self.resolve(*parts)
        if not stat.S_ISREG(path.stat().st_mode):
            raise OSError(f"{path} is no ordinary file")
        with path.open("rb") as file:
            yield file

    def read(self, *parts: str) -> bytes | None:
        """What a file holds; None if it cannot be read, is not there, or is far too large."""
        try:
            with self.open(*parts) as file:
                data = file.read(MAX_FILE_BYTES + 1)
        except (OSError, OutsideError):
            return None
        return data if len(data) <= MAX_FILE_BYTES else None

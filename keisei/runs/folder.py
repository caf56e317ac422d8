"""A directory of runs, from which nothing outside is ever read.

Names come from web pages, and files may be symbolic links: every path is resolved and checked.
"""

import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO, Final

from keisei import run_files
from keisei.errors import KeiseiError

MAX_FILE_BYTES: Final = 16 << 20
"""Maximum size of a file that is read as a whole; journals are read in chunks."""


class OutsideError(KeiseiError):
    """A path that leads out of the folder."""


class RunsFolder:
    """A directory of runs, from which files are read."""

    def __init__(self, path: Path) -> None:
        """Open a folder.

        Raises:
            KeiseiError: `path` is not a directory, or is itself a run.
        """
        if not path.is_dir():
            raise KeiseiError(
                f"there is no directory {path}; `keisei train` creates runs in {run_files.RUNS}"
            )
        if (path / run_files.CONFIG).is_file():
            raise KeiseiError(
                f"{path} is a run; the dashboard shows the directory that contains it: "
                f"keisei dashboard {path.resolve().parent}"
            )
        self.path = path
        self._root = Path(os.path.realpath(path))

    def runs(self) -> list[str]:
        """Return the names of the runs, sorted; symbolic links to directories are not runs."""
        try:
            with os.scandir(self._root) as entries:
                names = [entry.name for entry in entries if entry.is_dir(follow_symlinks=False)]
        except OSError:
            return []  # the folder is gone, perhaps for a moment
        return sorted(name for name in names if (self._root / name / run_files.CONFIG).is_file())

    def links(self) -> list[str]:
        """Return the names of the symbolic links in the folder, whose targets are not shown."""
        try:
            with os.scandir(self._root) as entries:
                return sorted(entry.name for entry in entries if entry.is_symlink())
        except OSError:
            return []

    def resolve(self, *parts: str) -> Path:
        """Return the real path of something in the folder, whether it exists or not.

        Raises:
            OutsideError: The path leads out of the folder.
        """
        shown = "/".join(parts)
        if any("\0" in part for part in parts):
            raise OutsideError("a file name cannot contain a zero byte")
        real = Path(os.path.realpath(self._root.joinpath(*parts)))
        if not real.is_relative_to(self._root):
            raise OutsideError(f"{shown} leads out of {self.path} and is not read")
        return real

    def run(self, name: str) -> Path:
        """Return the directory of a run.

        Raises:
            KeiseiError: The folder has no run of this name.
        """
        # A name is a single part of a path: not a run's subdirectory, and not the folder itself.
        if name in ("", ".", "..") or any(mark in name for mark in "/\\\0"):
            raise OutsideError(f"{name!r} is not the name of a run")
        path = self.resolve(name)
        if path != self._root / name or not (path / run_files.CONFIG).is_file():
            similar = run_files.similar_run(Path(name), self.path)
            raise KeiseiError(f"there is no run {name} in {self.path}{similar}")
        return path

    @contextmanager
    def open(self, *parts: str) -> Iterator[BinaryIO]:
        """Open a file for reading.

        Raises:
            OutsideError: The path leads out of the folder.
            OSError: The file cannot be read, or is not a regular file: a pipe would block.
        """
        path = self.resolve(*parts)
        if not stat.S_ISREG(path.stat().st_mode):
            raise OSError(f"{path} is not a regular file")
        with path.open("rb") as file:
            yield file

    def read(self, *parts: str) -> bytes | None:
        """Return the content of a file; None if it is missing, unreadable or too large."""
        try:
            with self.open(*parts) as file:
                data = file.read(MAX_FILE_BYTES + 1)
        except (OSError, OutsideError):
            return None
        return data if len(data) <= MAX_FILE_BYTES else None

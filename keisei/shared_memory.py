"""Shared memory: blocks that several processes map, and named arrays laid out in a block.

Where the system has too little of it, as in many containers, a block is a file in the directory for
temporary files instead, which all processes map.

The name of a block holds the id of the process that created it. If that process is killed, Python's
resource tracker removes its blocks; if the tracker is killed as well, and for files, the next start
of a run does (`remove_orphans`).
"""

import logging
import mmap
import os
import re
import secrets
import tempfile
from contextlib import suppress
from multiprocessing.shared_memory import SharedMemory
from pathlib import Path
from typing import Final, Self

from keisei.errors import KeiseiError

logger = logging.getLogger(__name__)

_PREFIX: Final = "keisei"
_DIRECTORY: Final = Path("/dev/shm")  # noqa: S108 - shared memory
"""Where Linux lists blocks. Windows frees a block with its last user; macOS does not list them."""


class SharedMemoryError(KeiseiError):
    """There is too little memory that processes can share; the message says where."""


class SharedBlock:
    """A block of shared memory; the process that created it removes it."""

    def __init__(self, block: "SharedMemory | _MappedFile", *, is_owner: bool) -> None:
        self._block = block
        self._is_owner = is_owner

    @classmethod
    def create(cls, size: int) -> Self:
        """Create a block of `size` bytes, in a file if the system has too little shared memory.

        Raises:
            SharedMemoryError: There is no room for a file either.
        """
        name = f"{_owner_prefix()}{os.getpid()}-{secrets.token_hex(4)}"  # macOS: 30 characters
        try:
            return cls(_new_memory(name, size), is_owner=True)
        except OSError as error:
            shortage = (
                f"there is no room for {size / 2**20:,.1f} MB of shared memory in {_DIRECTORY} "
                f"({error.strerror}); in a container, --shm-size gives more of it"
            )
        path = Path(tempfile.gettempdir()) / name
        try:
            block = cls(_MappedFile(path, size), is_owner=True)
        except OSError as error:
            path.unlink(missing_ok=True)
            raise SharedMemoryError(
                f"{shortage}. Nor is there in {path.parent} ({error.strerror})"
            ) from (error)
        logger.warning("%s. A file in %s takes its place", shortage, path.parent)
        return block

    @classmethod
    def attach(cls, name: str) -> Self:
        """Attach a block that another process created."""
        path = Path(name)
        block = _MappedFile(path) if path.is_absolute() else SharedMemory(name)
        return cls(block, is_owner=False)

    @property
    def name(self) -> str:
        """Name by which another process attaches the block."""
        return self._block.name

    @property
    def memory(self) -> memoryview:
        """The bytes of the block."""
        memory = self._block.buf
        assert memory is not None
        return memory

    def close(self) -> None:
        """Release the block, and remove it if it was created here.

        Arrays that are still views of it keep it mapped.
        """
        with suppress(BufferError):
            self._block.close()
        if self._is_owner:
            with suppress(FileNotFoundError):
                self._block.unlink()


class _MappedFile:
    """A file that is used as memory, with the interface of `SharedMemory`."""

    def __init__(self, path: Path, size: int = 0) -> None:
        """Map a file; with a `size` create it, with all its room on the disk reserved."""
        self.name = str(path)
        if size:
            with path.open("xb") as new:
                new.truncate(size)
                if hasattr(os, "posix_fallocate"):
                    os.posix_fallocate(new.fileno(), 0, size)
        with path.open("r+b") as file:
            self._map = mmap.mmap(file.fileno(), 0)
        self.buf: memoryview | None = memoryview(self._map)

    def close(self) -> None:
        """Release the map; raises `BufferError` while there are views of it."""
        if self.buf is not None:
            self.buf.release()
            self.buf = None
        self._map.close()

    def unlink(self) -> None:
        """Remove the file."""
        Path(self.name).unlink()


def remove_orphans() -> int:
    """Remove the blocks of processes that have ended; returns the number of blocks."""
    removed = 0
    name = re.compile(re.escape(_owner_prefix()) + r"(\d+)-[0-9a-f]+")
    directories = (_DIRECTORY, Path(tempfile.gettempdir())) if _DIRECTORY.is_dir() else ()
    for path in (path for directory in directories for path in directory.glob(f"{_PREFIX}-*")):
        match = name.fullmatch(path.name)
        if match is not None and not _is_alive(int(match[1])):
            with suppress(OSError):
                path.unlink()
                removed += 1
    if removed:
        logger.info("removed %d blocks of shared memory that a killed run had left", removed)
    return removed


def _new_memory(name: str, size: int) -> SharedMemory:
    """Create shared memory and reserve all of it; raises OSError if there is too little."""
    memory = SharedMemory(name, create=True, size=size)
    try:
        _reserve(name, size)
    except OSError:
        memory.close()
        memory.unlink()
        raise
    return memory


def _reserve(name: str, size: int) -> None:
    """Allocate the memory now: where it is short, the first write would kill the process."""
    path = _DIRECTORY / name
    if not path.is_file() or not hasattr(os, "posix_fallocate"):
        return
    file = os.open(path, os.O_RDWR)
    try:
        os.posix_fallocate(file, 0, size)
    finally:
        os.close(file)


def _owner_prefix() -> str:
    """Start of the names of all blocks whose owner is a process visible from here.

    Containers may share their memory but not their process ids.
    """
    try:
        return f"{_PREFIX}-{Path('/proc/self/ns/pid').stat().st_ino}-"
    except OSError:  # not Linux
        return f"{_PREFIX}-"


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # another user's process
        return True
    return True

"""Shared memory: blocks that several processes map, and named arrays laid out in a block.

The name of a block holds the id of the process that created it. If that process is killed, Python's
resource tracker removes its blocks; if the tracker is killed as well, the next start of a run does
(`remove_orphans`).
"""

import logging
import os
import re
import secrets
from contextlib import suppress
from multiprocessing.shared_memory import SharedMemory
from pathlib import Path
from typing import Final, Self

from keisei.errors import KeiseiError

logger = logging.getLogger(__name__)

_PREFIX: Final = "keisei"
_DIRECTORY: Final = Path("/dev/shm")
"""Where Linux lists blocks. Windows frees a block with its last user; macOS does not list them."""


class SharedBlock:
    """A block of shared memory; the process that created it removes it."""

    def __init__(self, block: SharedMemory, *, is_owner: bool) -> None:
        self._block = block
        self._is_owner = is_owner

    @classmethod
    def create(cls, size: int) -> Self:
        """Create a block of `size` bytes.

        Raises:
            KeiseiError: The system has too little shared memory.
        """
        name = f"{_owner_prefix()}{os.getpid()}-{secrets.token_hex(4)}"  # macOS: 30 characters
        block = cls(SharedMemory(name, create=True, size=size), is_owner=True)
        try:
            _reserve(name, size)
        except OSError as error:
            block.close()
            raise KeiseiError(
                f"there is no room for {size / 2**20:,.1f} MB of shared memory in {_DIRECTORY} "
                f"({error.strerror}); in a container, --shm-size gives more of it"
            ) from error
        return block

    @classmethod
    def attach(cls, name: str) -> Self:
        """Attach a block that another process created."""
        return cls(SharedMemory(name), is_owner=False)

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


def remove_orphans() -> int:
    """Remove the blocks of processes that have ended; returns the number of blocks."""
    removed = 0
    name = re.compile(re.escape(_owner_prefix()) + r"(\d+)-[0-9a-f]+")
    for path in _DIRECTORY.glob(f"{_PREFIX}-*") if _DIRECTORY.is_dir() else ():
        match = name.fullmatch(path.name)
        if match is not None and not _is_alive(int(match[1])):
            with suppress(OSError):
                path.unlink()
                removed += 1
    if removed:
        logger.info("removed %d blocks of shared memory that a killed run had left", removed)
    return removed


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

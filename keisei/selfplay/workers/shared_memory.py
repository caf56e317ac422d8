"""Blocks of memory that processes share, and that nobody leaves behind.

A block's name tells whose it is. Should a process be killed, its resource tracker frees its blocks;
should that be killed as well, the next start does (`remove_orphans`).
"""

import logging
import os
import re
import secrets
from contextlib import suppress
from multiprocessing.shared_memory import SharedMemory
from pathlib import Path
from typing import Final

from keisei.errors import KeiseiError

logger = logging.getLogger(__name__)

_PREFIX: Final = "keisei"
_PLACE: Final = Path("/dev/shm")
"""Where Linux shows them. Windows frees a block with its last user; macOS does not list them."""


def create_block(size: int) -> SharedMemory:
    """A new block of this process.

    Raises:
        KeiseiError: There is no room for it.
    """
    name = f"{_owners()}{os.getpid()}-{secrets.token_hex(4)}"  # macOS takes 30 characters
    block = SharedMemory(name, create=True, size=size)
    try:
        _reserve(block, size)
    except OSError as error:
        release_block(block, is_owner=True)
        raise KeiseiError(
            f"there is no room for {size / 2**20:,.1f} MB of shared memory in {_PLACE} "
            f"({error.strerror}); in a container, --shm-size gives more of it"
        ) from error
    return block


def _reserve(block: SharedMemory, size: int) -> None:
    """Take the memory now: where it is short, the first write would kill the process."""
    if not (_PLACE / block.name).is_file() or not hasattr(os, "posix_fallocate"):
        return
    file = os.open(_PLACE / block.name, os.O_RDWR)
    try:
        os.posix_fallocate(file, 0, size)
    finally:
        os.close(file)


def _owners() -> str:
    """How the names of blocks begin whose owners can be told from here.

    Containers may share their memory but not the numbers of their processes.
    """
    try:
        return f"{_PREFIX}-{Path('/proc/self/ns/pid').stat().st_ino}-"
    except OSError:  # no Linux
        return f"{_PREFIX}-"


def attach_block(name: str) -> SharedMemory:
    """A block that the parent process has made."""
    return SharedMemory(name)


def release_block(block: SharedMemory, *, is_owner: bool) -> None:
    """Let go of a block; its owner removes it. Arrays that still look at it keep it mapped."""
    with suppress(BufferError):
        block.close()
    if is_owner:
        with suppress(FileNotFoundError):
            block.unlink()


def remove_orphans() -> int:
    """Remove the blocks of processes that are no more; returns how many there were."""
    removed = 0
    name = re.compile(re.escape(_owners()) + r"(\d+)-[0-9a-f]+")
    for path in _PLACE.glob(f"{_PREFIX}-*") if _PLACE.is_dir() else ():
        match = name.fullmatch(path.name)
        if match is not None and not _is_alive(int(match[1])):
            with suppress(OSError):
                path.unlink()
                removed += 1
    if removed:
        logger.info("removed %d blocks of shared memory that a killed run had left", removed)
    return removed


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except PermissionError:  # somebody else's
        return True
    return True

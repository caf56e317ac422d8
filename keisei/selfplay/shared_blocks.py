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

logger = logging.getLogger(__name__)

_PREFIX: Final = "keisei"
_NAME: Final = re.compile(rf"{_PREFIX}-(\d+)-[0-9a-f]+")
_PLACE: Final = Path("/dev/shm")
"""Where Linux shows them. Windows frees a block with its last user; macOS does not list them."""


def create_block(size: int) -> SharedMemory:
    """A new block of this process."""
    return SharedMemory(f"{_PREFIX}-{os.getpid()}-{secrets.token_hex(6)}", create=True, size=size)


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
    for path in _PLACE.glob(f"{_PREFIX}-*") if _PLACE.is_dir() else ():
        match = _NAME.fullmatch(path.name)
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

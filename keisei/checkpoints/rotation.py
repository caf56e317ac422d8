"""Checkpoints of a directory: listing, naming, and removing old ones."""

import logging
import re
import secrets
import shutil
import time
from pathlib import Path
from typing import Final

from keisei.checkpoints.manifest import check_size, read_manifest
from keisei.errors import CheckpointError

logger = logging.getLogger(__name__)

UNFINISHED: Final = ".unfinished-"
"""Prefix of the name of a checkpoint that is being written."""

REMOVED: Final = ".removed-"
"""Prefix of the name of a checkpoint that is being removed."""

ABANDONED_AFTER: Final = 3600.0
"""Seconds without any write after which an unfinished checkpoint counts as abandoned."""

_NAME: Final = re.compile(r"step-(\d{12,})(?:-(\d+))?")


def list_checkpoints(directory: Path) -> list[Path]:
    """List the checkpoints in a directory, good and bad, the newest last.

    A directory that does not exist has none.
    """
    try:
        paths = [path for path in directory.iterdir() if _NAME.fullmatch(path.name)]
    except FileNotFoundError:
        return []
    except OSError as error:
        raise CheckpointError(f"{directory}: cannot be read: {error.strerror or error}") from error
    return sorted(paths, key=rank)


def rank(path: Path) -> tuple[int, int]:
    """Sort key of checkpoints: the timestep, then the number of the save at that timestep."""
    found = _NAME.fullmatch(path.name)
    assert found is not None, path
    return int(found[1]), int(found[2] or 1)


def free_name(directory: Path, timestep: int) -> Path:
    """Return a path that does not exist yet: a checkpoint never replaces another."""
    path = directory / f"step-{timestep:012d}"
    number = 1
    while path.exists():
        number += 1
        path = directory / f"step-{timestep:012d}-{number}"
    return path


def remove_outdated(directory: Path, *, newest: Path, keep: int) -> None:
    """Remove all but the `keep` latest good checkpoints, and leftovers of dead processes.

    Checkpoints of a later timestep than `newest` are not touched. An error of the file system is
    only logged, since the run can continue.
    """
    try:
        for path in _outdated(directory, newest, keep):
            # Renamed first, so that a half-removed checkpoint is never seen.
            path.rename(directory / f"{REMOVED}{path.name}-{secrets.token_hex(4)}")
        for path in _leftovers(directory):
            shutil.rmtree(path)
    except OSError as error:
        logger.warning("cannot remove old checkpoints in %s: %s", directory, error)


def remove_leftovers(directory: Path) -> None:
    """Remove what a killed process left half-written or half-removed.

    Only for a directory that no process writes to. An error of the file system is only logged.
    """
    try:
        for path in directory.iterdir() if directory.is_dir() else ():
            if path.name.startswith((UNFINISHED, REMOVED)):
                shutil.rmtree(path)
    except OSError as error:
        logger.warning("cannot remove unfinished checkpoints in %s: %s", directory, error)


def _outdated(directory: Path, newest: Path, keep: int) -> list[Path]:
    older = [path for path in list_checkpoints(directory) if rank(path) < rank(newest)]
    to_keep = keep - 1
    while older and to_keep:
        to_keep -= _looks_complete(older.pop())
    return older


def _looks_complete(path: Path) -> bool:
    """Return whether a checkpoint has all files in full length; their contents are not read."""
    try:
        for name, record in read_manifest(path).files.items():
            check_size(path / name, record.size)
    except CheckpointError:
        return False
    return True


def _leftovers(directory: Path) -> list[Path]:
    """List removed checkpoints, and unfinished ones that no process is writing any more."""
    return [
        path
        for path in directory.iterdir()
        if path.name.startswith(REMOVED)
        or (path.name.startswith(UNFINISHED) and _idle_seconds(path) > ABANDONED_AFTER)
    ]


def _idle_seconds(path: Path) -> float:
    return time.time() - max(entry.stat().st_mtime for entry in (path, *path.iterdir()))

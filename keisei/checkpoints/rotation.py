"""Which checkpoints a directory holds, and which of them have had their time."""

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

_NAME: Final = re.compile(r"step-(\d{12,})(?:-(\d+))?")


def list_checkpoints(directory: Path) -> list[Path]:
    """The checkpoints of a run, good and bad, the newest last; none if there is no directory."""
    try:
        paths = [path for path in directory.iterdir() if _NAME.fullmatch(path.name)]
    except FileNotFoundError:
        return []
    except OSError as error:
        raise CheckpointError(f"{directory}: cannot be read: {error.strerror or error}") from error
    return sorted(paths, key=rank)


def rank(path: Path) -> tuple[int, int]:
    """Checkpoints in the order of their timesteps, then of the saves at the same timestep."""
    found = _NAME.fullmatch(path.name)
    assert found is not None, path
    return int(found[1]), int(found[2] or 1)


UNFINISHED: Final = ".unfinished-"
"""Begins the name of a checkpoint that is being written."""

REMOVED: Final = ".removed-"
"""Begins the name of a checkpoint that is being removed."""

ABANDONED_AFTER: Final = 3600.0
"""Seconds without any write after which an unfinished checkpoint is taken for abandoned."""


def free_name(directory: Path, timestep: int) -> Path:
    """A name that does not exist yet: a checkpoint never takes the place of another."""
    path = directory / f"step-{timestep:012d}"
    number = 1
    while path.exists():
        number += 1
        path = directory / f"step-{timestep:012d}-{number}"
    return path


def remove_outdated(directory: Path, *, newest: Path, keep: int) -> None:
    """Remove what is older than the newest `keep` good checkpoints, and what dead processes left.

    Checkpoints of a later timestep than the `newest` are not touched. A system that refuses to
    remove something is only warned of: the run can go on.
    """
    try:
        for path in _outdated(directory, newest, keep):
            # Renamed first, so that a half-removed checkpoint is never seen.
            path.rename(directory / f"{REMOVED}{path.name}-{secrets.token_hex(4)}")
        for path in _leftovers(directory):
            shutil.rmtree(path)
    except OSError as error:
        logger.warning("cannot remove old checkpoints in %s: %s", directory, error)


def _outdated(directory: Path, newest: Path, keep: int) -> list[Path]:
    older = [path for path in list_checkpoints(directory) if rank(path) < rank(newest)]
    to_keep = keep - 1
    while older and to_keep:
        to_keep -= _looks_complete(older.pop())
    return older


def _looks_complete(path: Path) -> bool:
    """Whether a checkpoint has all its files in full length; their contents are not read."""
    try:
        for name, record in read_manifest(path).files.items():
            check_size(path / name, record.size)
    except CheckpointError:
        return False
    return True


def _leftovers(directory: Path) -> list[Path]:
    """Removed checkpoints, and unfinished ones that surely no process is writing any more."""
    return [
        path
        for path in directory.iterdir()
        if path.name.startswith(REMOVED)
        or (path.name.startswith(UNFINISHED) and _idle_seconds(path) > ABANDONED_AFTER)
    ]


def _idle_seconds(path: Path) -> float:
    return time.time() - max(entry.stat().st_mtime for entry in (path, *path.iterdir()))

"""Which checkpoints a directory holds, told by their names alone: needs no torch."""

import re
from pathlib import Path
from typing import Final

from keisei.errors import KeiseiError

_NAME: Final = re.compile(r"step-(\d{12,})(?:-(\d+))?")


class CheckpointError(KeiseiError):
    """A checkpoint that cannot be saved or loaded; the message names the file and the reason."""


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

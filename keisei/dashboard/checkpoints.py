"""The checkpoints of a run that are there to be played."""

from typing import Final, NamedTuple

from keisei import run_files
from keisei.checkpoints.listing import list_checkpoints, rank
from keisei.dashboard.folder import OutsideError, RunsFolder
from keisei.dashboard.run_data import RunData
from keisei.errors import KeiseiError
from keisei.training.metrics import Strength

_MANIFEST: Final = "manifest.json"
"""A checkpoint is complete if it has one: see `keisei.checkpoints.manifest`, which needs torch."""


class Playable(NamedTuple):
    """A checkpoint on disk."""

    name: str
    timestep: int
    update: int | None
    """Updates of the network, where the journal tells."""

    seconds: float | None
    """Seconds of training, where the journal tells."""

    scores: dict[str, Strength]
    """Of the evaluation of the same network, if there was one."""


def playable(folder: RunsFolder, run: RunData) -> list[Playable]:
    """The checkpoints of a run that are complete, the newest first."""
    try:
        paths = list_checkpoints(folder.resolve(run.name, run_files.CHECKPOINTS))
    except KeiseiError:
        return []
    scores = {found.update: dict(found.scores) for found in run.evaluations}
    told = {saved.path.rpartition("/")[2]: saved for saved in reversed(run.saved)}
    found = []
    for path in reversed(paths):
        if not _is_there(folder, run.name, path.name):
            continue
        saved = told.get(path.name)
        found.append(
            Playable(
                name=path.name,
                timestep=rank(path)[0],
                update=saved.update if saved else None,
                seconds=saved.seconds if saved else None,
                scores=scores.get(saved.update, {}) if saved else {},
            )
        )
    return found


def _is_there(folder: RunsFolder, run: str, name: str) -> bool:
    try:
        return folder.resolve(run, run_files.CHECKPOINTS, name, _MANIFEST).is_file()
    except (OSError, OutsideError):
        return False

"""The checkpoints of a run that are there to be played."""

from pathlib import Path
from typing import Final, NamedTuple

from keisei import run_files
from keisei.dashboard.folder import OutsideError, RunsFolder
from keisei.dashboard.run_data import RunData
from keisei.training.metrics import Strength

_MANIFEST: Final = "manifest.json"
"""A checkpoint is complete if it has one: see `keisei.checkpoints.manifest`, which needs torch."""


class Playable(NamedTuple):
    """A checkpoint on disk."""

    name: str
    path: Path
    """As the user would write it: the folder as it was given, then the run."""

    timestep: int
    update: int
    seconds: float
    scores: dict[str, Strength]
    """Of the evaluation of the same network, if there was one."""


def playable(folder: RunsFolder, run: RunData) -> list[Playable]:
    """The checkpoints that the journal tells of and that have not been removed, newest first."""
    scores = {found.update: dict(found.scores) for found in run.evaluations}
    found = []
    for saved in run.saved:
        parts = saved.path.split("/")
        # The path stands in a file: nothing else than a checkpoint of this very run is offered.
        if len(parts) != 2 or parts[0] != run_files.CHECKPOINTS:
            continue
        try:
            is_there = folder.resolve(run.name, *parts, _MANIFEST).is_file()
        except (OSError, OutsideError):
            continue
        if is_there:
            found.append(
                Playable(
                    name=parts[1],
                    path=folder.path / run.name / parts[0] / parts[1],
                    timestep=saved.timestep,
                    update=saved.update,
                    seconds=saved.seconds,
                    scores=scores.get(saved.update, {}),
                )
            )
    return found

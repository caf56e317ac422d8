"""Names of the files and directories of a training run."""

import json
import os
import stat
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from keisei.errors import KeiseiError, did_you_mean
from keisei.system import read_bytes, require_possible

RUNS: Final = "runs"
"""Default directory of all runs."""

LADDER: Final = f"{RUNS}/ladder.sqlite3"
"""Match results of all players, from runs and elsewhere: see `keisei.evaluation.results`."""

CONFIG: Final = "config.json"
"""Settings of the run."""

METRICS: Final = "metrics.jsonl"
"""Journal of the run, one JSON object per line: see `keisei.runs.journal`."""

LIVE: Final = "live.json"
"""Games in progress; removed when the run ends: see `keisei.training.writers`."""

HEARTBEAT: Final = "heartbeat.json"
"""Sign of life and phase; removed when the run ends: see `keisei.runs.heartbeat`."""

LOCK: Final = "training.lock"
"""Locked by the process that trains the run, for as long as it does; stays there, empty."""

NOTES: Final = "notes.json"
"""What people wrote about the run: see `keisei.runs.notes`."""

LOG: Final = "run.log"
"""Log messages."""

STRENGTH: Final = "strength.json"
"""Elo ratings of the run's checkpoints: see `keisei.evaluation.run_strength`."""

ELO_PLOT: Final = "plots/elo.png"
"""Plot of the ratings in `STRENGTH`."""

CALIBRATION: Final = "calibration.json"
"""How good the network's values are: see `keisei.evaluation.calibration`."""

REPORT: Final = "report.html"
"""Report of the run on one page."""

PLOTS: Final = "plots"
"""Directory of the report's plots as PNG files."""

PAUSE: Final = "PAUSE"
"""Pauses the run while it exists: see `keisei.selfplay.source.PauseFile`."""

RESET: Final = "RESET"
"""Makes the run abandon its games; the run removes it: see `keisei.selfplay.source.ResetFile`."""

CHECKPOINTS: Final = "checkpoints"
"""Directory of the checkpoints: see `keisei.checkpoints.store`."""

MILESTONES: Final = "milestones"
"""Directory of networks that are kept for good, as checkpoints without the state of training."""

GAMES: Final = "games"
"""Directory of sample games as KIF and CSA files."""

EVALUATING: Final = "evaluating"
"""Directory of networks under evaluation in the background; removed when the run ends."""

TENSORBOARD: Final = "tensorboard"
"""Directory of TensorBoard's event files."""

WANDB_ID: Final = "wandb-id.txt"
"""Id of the run at Weights & Biases."""

WANDB: Final = "wandb"
"""Directory of Weights & Biases, which keeps links in it."""

_FILES: Final = (
    *(CONFIG, METRICS, LIVE, HEARTBEAT, LOCK, NOTES, LOG, STRENGTH, CALIBRATION, REPORT),
    *(PAUSE, RESET, WANDB_ID),
)
"""What is a file and not a directory."""


def run_places(path: Path) -> tuple[Path, ...]:
    """Return where a run may be that is given by its path, or by its name in `RUNS`."""
    require_possible(path)
    return path, RUNS / path


def find_run(path: Path) -> Path:
    """Return the directory of the run that is given by its path, or by its name in `RUNS`."""
    for place in run_places(path):
        if (place / CONFIG).is_file():
            return place
    raise KeiseiError(
        f"there is no run in {path}: a run's directory holds a {CONFIG}{similar_run(path)}"
    )


def require_own_files(run_directory: Path) -> None:
    """Raise `KeiseiError` if something in a run leads out of it, or would block.

    A run that a stranger packed may hold links, through which training would append to files
    elsewhere or replace them, and pipes, which never end. To be called before anything is written.
    """
    for name in _FILES:
        if (run_directory / name).is_dir():
            raise KeiseiError(f"{run_directory / name} is a directory, not a file: remove it")
    for directory, folders, files in os.walk(run_directory):
        for name in (*folders, *files):
            require_own(Path(directory, name), run_directory)
        if WANDB in folders:
            folders.remove(WANDB)


def require_own(path: Path, run_directory: Path) -> None:
    """Raise `KeiseiError` if a file of a run leads out of it, or is neither a file nor a directory.

    It may be missing.
    """
    if not Path(os.path.realpath(path)).is_relative_to(os.path.realpath(run_directory)):
        raise KeiseiError(
            f"{path} is a link that leads out of the run, which is only written in its own "
            "directory: replace it by what it leads to, or remove it"
        )
    try:
        mode = path.stat().st_mode
    except OSError:
        return
    if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
        raise KeiseiError(f"{path} is not a regular file: remove it")


def similar_run(path: Path, folder: Path | None = None) -> str:
    """Return the end of a message about a run that is not there: one with a similar name, if any.

    It is looked for in `folder`, or where a run of this path would be.
    """
    parents = [place.parent for place in run_places(path)] if folder is None else [folder]
    names: list[str] = []
    for parent in parents:
        with suppress(OSError):  # no such folder, or not ours
            names += [run.name for run in parent.iterdir() if (run / CONFIG).is_file()]
    return did_you_mean(path.name, names)


def read_config(run_directory: Path) -> Mapping[str, Any]:
    """Return the settings of a run as written, by any version of Keisei: nothing is validated."""
    path = run_directory / CONFIG
    try:
        config = json.loads(read_bytes(path))
    except (ValueError, RecursionError) as error:  # the latter is JSON nested too deeply
        raise KeiseiError(f"{path} is not JSON: {error}") from error
    if not isinstance(config, dict):
        raise KeiseiError(f"{path} holds no settings: it should be a JSON object")
    return config

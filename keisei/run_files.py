"""Names of the files and directories of a training run."""

import json
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

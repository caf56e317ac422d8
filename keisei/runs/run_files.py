"""Where runs lie, and what lies where in the directory of one."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from keisei.errors import KeiseiError
from keisei.system import read_bytes

RUNS: Final = "runs"
"""The directory that holds the runs unless the settings say otherwise."""

LADDER: Final = f"{RUNS}/ladder.sqlite3"
"""Results of all players, of runs and others: see `keisei.evaluation.results`."""

CONFIG: Final = "config.json"
"""The settings that were in effect."""

METRICS: Final = "metrics.jsonl"
"""Every step, evaluation, checkpoint, start and end: see `keisei.runs.journal`."""

LIVE: Final = "live.json"
"""Games under way; gone when the run has ended: see `keisei.training.game_callbacks`."""

PAUSE: Final = "PAUSE"
"""Pauses the run while it exists: see `keisei.selfplay.source.PauseFile`."""

LOG: Final = "run.log"
"""What was logged."""

STRENGTH: Final = "strength.json"
"""How strong its checkpoints are: see `keisei.evaluation.run_strength`."""

ELO_PLOT: Final = "plots/elo.png"
"""The same as a picture; the report has one of its own, of the scores during training."""

REPORT: Final = "report.html"
"""The run on one page."""

PLOTS: Final = "plots"
"""The report's plots as PNG files."""

CHECKPOINTS: Final = "checkpoints"
"""The run's state at several moments: see `keisei.checkpoints.store`."""

GAMES: Final = "games"
"""Sample games as KIF and CSA files."""

EVALUATING: Final = "evaluating"
"""Networks that are being measured in the background; gone when the run has ended."""

TENSORBOARD: Final = "tensorboard"
"""TensorBoard's event files."""

WANDB_ID: Final = "wandb-id.txt"
"""Under which id Weights & Biases knows the run."""


def run_places(path: Path) -> tuple[Path, ...]:
    """Where a run may be that was named by its path, or by its name in ``runs``."""
    return path, RUNS / path


def find_run(path: Path) -> Path:
    """The directory of the run that was named by its path, or by its name in ``runs``."""
    for place in run_places(path):
        if (place / CONFIG).is_file():
            return place
    raise KeiseiError(f"there is no run in {path}: it would hold a {CONFIG}")


def read_config(run_directory: Path) -> Mapping[str, Any]:
    """The settings of a run as they were written, by whichever version: nothing is validated."""
    path = run_directory / CONFIG
    try:
        config = json.loads(read_bytes(path))
    except ValueError as error:
        raise KeiseiError(f"{path} is not JSON: {error}") from error
    if not isinstance(config, dict):
        raise KeiseiError(f"{path} holds no settings")
    return config

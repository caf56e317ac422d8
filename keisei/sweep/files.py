"""Where sweeps lie, and what lies where in the directory of one."""

from pathlib import Path
from typing import Final

SWEEPS: Final = "sweeps"
"""The directory that holds the sweeps."""

STUDY: Final = "study.sqlite3"
"""Every trial, its parameters and scores: see `keisei.sweep.study`. optuna's own tools read it."""

TRIALS: Final = "trials"
"""The runs, one per trial: ``keisei runs`` lists them."""

BEST: Final = "best.yaml"
"""The best trial so far as a recipe."""

PLOT: Final = "scores.png"
"""The scores, trial by trial."""

IN_USE: Final = "in-use.lock"
"""Held by the process that directs the sweep."""

TRIALS_IN_USE: Final = "trials-in-use.lock"
"""Shared by the processes that train."""

OUTPUT: Final = "output.txt"
"""In a trial's run: what its process wrote to the terminal that it has not."""


def trial_directory(sweep_directory: Path, number: int) -> Path:
    """The run of a trial."""
    return sweep_directory / TRIALS / f"trial-{number:04}"

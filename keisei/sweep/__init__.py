"""Search for good settings: many short runs, each with other values of some fields.

`load_space` reads the search space, `checked` validates it, and `run_sweep` trains its trials, each
in a process of its own, and writes the best one as a recipe. Trials are stored in SQLite by optuna
(`keisei.sweep.study`). `keisei.sweep.wandb_agent` does the same for a sweep that Weights & Biases
directs.
"""

from typing import TYPE_CHECKING

from keisei.front_door import imported_on_use

if TYPE_CHECKING:
    from keisei.sweep.check import checked
    from keisei.sweep.runner import run_sweep
    from keisei.sweep.space import Sweep, load_space
    from keisei.sweep.summary import SweepSummary

__all__ = ["Sweep", "SweepSummary", "checked", "load_space", "run_sweep"]

# The process of a trial imports this package, and starts fast.
__getattr__, __dir__ = imported_on_use(
    __name__,
    {
        "Sweep": "space",
        "SweepSummary": "summary",
        "checked": "check",
        "load_space": "space",
        "run_sweep": "runner",
    },
)

"""Sweeps directed by Weights & Biases: the same space and trials, but its choice of values.

`sweep_definition` describes the search space to Weights & Biases. An agent requests values, trains
a trial with them, and sends the curves; any number of agents can work on one sweep. The package
``wandb`` is an argument, so that tests can pass a fake.
"""

import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from keisei.errors import KeiseiError
from keisei.sweep.space import (
    Choices,
    Range,
    Sweep,
    Value,
)
from keisei.sweep.study import LOCKS
from keisei.sweep.trial import TrialProcess, share_of_machine
from keisei.system import make_directory
from keisei.training.wandb_tracker import TIMESTEP

METRIC: Final = "score"
"""Name of the objective at Weights & Biases."""

AGENT_RUNS: Final = "wandb-runs"
"""Directory of the agents' runs in that of the sweep, each named by its id."""

POLL_INTERVAL: Final = 1.0
"""Seconds between two reads of the trial's journal."""


def sweep_definition(sweep: Sweep, name: str) -> dict[str, Any]:
    """Return the sweep as ``wandb sweep`` takes it."""
    return {
        "name": name,
        "method": "bayes" if sweep.sampler.kind == "tpe" else "random",
        "metric": {"name": METRIC, "goal": "maximize"},
        "run_cap": sweep.trials,
        "parameters": {path: _definition(each) for path, each in sweep.space.items()},
    }


def _definition(parameter: Range | Choices) -> dict[str, Any]:
    if isinstance(parameter, Choices):
        return {"values": list(parameter.ends())}
    if parameter.step is not None:
        return {"values": parameter.grid()}
    low, high = parameter.ends()
    kinds = {
        (False, False): "uniform",
        (False, True): "log_uniform_values",
        (True, False): "int_uniform",
        (True, True): "q_log_uniform_values",
    }
    return {"distribution": kinds[bool(parameter.whole), parameter.log], "min": low, "max": high}


def run_agent(
    sweep: Sweep, directory: Path, wandb: Any, *, sweep_id: str, count: int | None = None
) -> None:
    """Train the trials that Weights & Biases requests, up to `count`; `wandb` is the package.

    `sweep_id` is ``ENTITY/PROJECT/ID``, ``PROJECT/ID`` or ``ID``.
    """
    make_directory(directory)
    wandb.agent(sweep_id, function=lambda: train_one(sweep, directory, wandb), count=count)


def train_one(sweep: Sweep, directory: Path, wandb: Any) -> None:
    """Train one trial with values from Weights & Biases, and send its curves and score."""
    make_directory(directory)
    run = wandb.init(dir=str(directory), settings={"console": "off", "silent": True})
    exit_code = 1
    try:
        _train(sweep, directory, run)
        exit_code = 0
    finally:
        run.finish(exit_code=exit_code)


def _train(sweep: Sweep, directory: Path, run: Any) -> None:
    flags = share_of_machine(sweep.config(), sweep.side_by_side)
    names = {"run.root": str(directory / AGENT_RUNS), "run.name": str(run.id)}
    # The curves are sent from here: a second tracker would start a second run there.
    config = sweep.config(
        _parameters(sweep, run.config), {**flags, **names, "logging.wandb": "off"}
    )
    run.define_metric(TIMESTEP)
    run.define_metric("*", step_metric=TIMESTEP)
    lock = directory / LOCKS / f"{run.id}.lock"
    trial = TrialProcess(config, lock, sweep.objective.against)
    try:
        timestep = 0
        has_ended = False
        while not has_ended:
            has_ended = trial.has_ended()
            for entry in trial.read():
                timestep = entry.timestep
                if entry.metrics:
                    run.log({**entry.metrics, TIMESTEP: entry.timestep, "update": entry.update})
            if not has_ended:
                time.sleep(POLL_INTERVAL)
        result = trial.result()
        run.log({METRIC: result.score, TIMESTEP: timestep})
    finally:
        trial.close()


def _parameters(sweep: Sweep, given: Mapping[str, Any]) -> dict[str, Value]:
    missing = [path for path in sweep.space if path not in given]
    if missing:
        raise KeiseiError(
            f"Weights & Biases gave no value for {', '.join(missing)}: its sweep has another "
            "space; `keisei sweep SPACE.yaml --wandb-config` prints the right definition"
        )
    return {path: parameter.stored(given[path]) for path, parameter in sweep.space.items()}

"""The runs in a directory: what their files tell about each, without loading any model.

Reading needs neither numba nor torch, so that ``keisei runs`` answers at once.
"""

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, Literal

from keisei.errors import KeiseiError
from keisei.metric_names import Strength, strengths
from keisei.runs import run_files
from keisei.runs.journal import (
    FINISHED_REASONS,
    INTERRUPTED,
    Entry,
    History,
)

State = Literal["finished", "running", "interrupted", "failed", "broken"]

_SILENCE: Final = 120.0
"""Seconds without a word after which a run counts as killed, if its steps are not as slow."""

_SLOW_STEPS: Final = 10.0
"""A run whose steps are slow may be silent for so many of them: it may be evaluating."""


@dataclass(frozen=True)
class ListedRun:
    """A run in a few words."""

    name: str
    state: State
    note: str = ""
    """Why it is broken or has failed."""

    timestep: int = 0
    total_timesteps: int = 0
    update: int = 0
    games: int = 0
    seconds: float = 0.0
    started: float = 0.0
    """When its first session began, in seconds since 1970."""

    scores: Mapping[str, Strength] = field(default_factory=dict)
    """The last result against each opponent."""

    model: str = ""
    """Its kind and size, such as ``resnet 2x64``."""

    parameters: int | None = None

    def as_dict(self) -> dict[str, Any]:
        """For machines."""
        fields = dict(vars(self))
        fields["scores"] = {
            opponent: {"score": result.score, "low": result.low, "high": result.high,
                       "games": result.games}
            for opponent, result in self.scores.items()
        }  # fmt: skip
        return fields


def list_runs(root: Path, *, now: float | None = None) -> list[ListedRun]:
    """All runs of a directory, the oldest first; directories that are no runs, broken, last."""
    if not root.is_dir():
        raise KeiseiError(f"there is no directory {root}; `keisei train` makes runs")
    directories = sorted(path for path in root.iterdir() if path.is_dir())
    runs = [summarize(path, now=time.time() if now is None else now) for path in directories]
    return sorted(runs, key=lambda run: (run.state == "broken", run.started))


def summarize(run_directory: Path, *, now: float) -> ListedRun:
    """What the files of a run tell, whatever state they are in; `now` is in seconds since 1970."""
    name = run_directory.name
    try:
        history = History.read(run_directory)
        config = run_files.read_config(run_directory)
    except KeiseiError as error:
        return ListedRun(name, "broken", note=str(error))
    if not history.entries:
        return ListedRun(name, "broken", note=f"{run_files.METRICS} has no readable line")
    furthest = history.furthest
    state, note = run_state(history.end, history.entries[-1], now)
    scores: dict[str, Strength] = {}
    for evaluation in history.evaluations:
        scores |= strengths(evaluation.metrics)
    parameters = history.facts.get("parameters")
    return ListedRun(
        name=name,
        state=state,
        note=note,
        timestep=furthest.timestep,
        total_timesteps=furthest.total_timesteps,
        update=furthest.update,
        games=furthest.games,
        seconds=furthest.seconds,
        started=history.entries[0].time,
        scores=scores,
        model=model_name(config),
        parameters=parameters if isinstance(parameters, int) else None,
    )


def run_state(end: Entry | None, last: Entry, now: float) -> tuple[State, str]:
    """(the state of a run, why) by its end, if it has come, and its last sign of life."""
    if end is not None:
        if end.reason in FINISHED_REASONS:
            return "finished", ""
        return ("interrupted", "") if end.reason == INTERRUPTED else ("failed", end.reason)
    # A run that was killed could not say so. It is taken for running while it wrote not long ago.
    per_step = last.seconds / last.update if last.update else 0.0
    if now - last.time <= max(_SILENCE, _SLOW_STEPS * per_step):
        return "running", ""
    return "interrupted", "killed"


def model_name(config: Mapping[str, Any]) -> str:
    """The kind and size of a run's network, such as ``resnet 2x64``."""
    model = config.get("model")
    if not isinstance(model, dict):
        return ""
    kind, depth, width = (model.get(key) for key in ("type", "tower_depth", "tower_width"))
    return f"{kind} {depth}x{width}"

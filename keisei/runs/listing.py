"""Overviews of runs, read from their files alone.

Needs neither Numba nor torch, so that ``keisei runs`` answers at once.
"""

import os
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, Literal

from keisei import run_files
from keisei.callbacks import Progress
from keisei.errors import KeiseiError
from keisei.formats import network_name
from keisei.runs.heartbeat import HEARTBEAT_TIMEOUT, RunHeartbeat, parse_heartbeat
from keisei.runs.history import RunStatus, read_status
from keisei.runs.journal import (
    FINISHED_REASONS,
    INTERRUPTED,
    EloEstimate,
    JournalEntry,
    ScoreEstimate,
)
from keisei.runs.notes import EMPTY_NOTES, RunNotes, read_notes
from keisei.system import FileAccessError, read_bytes

StateName = Literal["finished", "running", "interrupted", "failed", "broken"]

_SILENCE_TIMEOUT: Final = 120.0
"""Seconds without a new line after which a run without a heartbeat counts as killed, unless its
steps are slow. Earlier versions wrote none, and one may fail to be written."""

_MAX_MINUTES: Final = 1e15
"""Time limits beyond this, as in damaged settings, count as none."""

_SILENCE_STEPS: Final = 10.0
"""Steps after which a silent run counts as killed: it may be evaluating in between."""


@dataclass(frozen=True)
class RunOverview:
    """A run in one row of a table."""

    name: str
    state: StateName
    note: str = ""
    """Why the run is broken or has failed."""

    timestep: int = 0
    total_timesteps: int = 0
    update: int = 0
    games: int = 0
    seconds: float = 0.0
    started: float = 0.0
    """When its first session began, in seconds since 1970."""

    scores: Mapping[str, ScoreEstimate] = field(default_factory=dict)
    """Latest score against each opponent."""

    elo: EloEstimate | None = None
    """Latest rating."""

    model: str = ""
    """Type and size of the network, such as ``resnet 2x64``."""

    parameters: int | None = None
    last_written: float = 0.0
    """When the last line of its journal was written, in seconds since 1970."""

    metrics: Mapping[str, float] = field(default_factory=dict)
    """Metrics of the last step."""

    max_minutes: float = 0.0
    """Time limit of the run in minutes; 0 for none."""

    activity: str = ""
    """Present phase of a running run, such as ``playing 40 %``."""

    notes: RunNotes = EMPTY_NOTES
    heartbeat: RunHeartbeat | None = None
    """Last sign of life of a running run; None if it writes none."""

    @property
    def fraction_done(self) -> float:
        """Fraction of the run that is over, 0 to 1: see `Progress.fraction_done`."""
        return Progress(
            timestep=self.timestep,
            total_timesteps=self.total_timesteps,
            update=self.update,
            games=self.games,
            seconds=self.seconds,
            max_minutes=self.max_minutes,
        ).fraction_done

    def as_dict(self) -> dict[str, Any]:
        """Return what ``keisei runs --json`` prints of the run."""
        fields = dict(vars(self))
        for name in ("last_written", "metrics", "max_minutes", "heartbeat"):
            del fields[name]
        fields["scores"] = {
            opponent: {"score": result.score, "low": result.low, "high": result.high,
                       "games": result.games}
            for opponent, result in self.scores.items()
        }  # fmt: skip
        del fields["notes"]
        fields |= {"tags": list(self.notes.tags), "is_archived": self.notes.is_archived}
        fields["elo"] = None if self.elo is None else self.elo._asdict()
        return fields


def list_runs(root: Path, *, now: float | None = None) -> list[RunOverview]:
    """Return all runs of a directory, oldest first; subdirectories without a run come last."""
    if not root.is_dir():
        raise KeiseiError(f"there is no directory {root}; `keisei train` creates runs")
    directories = sorted(path for path in root.iterdir() if path.is_dir())
    runs = [read_overview(path, now=time.time() if now is None else now) for path in directories]
    return sorted(runs, key=lambda run: (run.state == "broken", run.started))


def read_overview(run_directory: Path, *, now: float) -> RunOverview:
    """Return the overview of a run in any state; `now` is in seconds since 1970."""
    try:
        _require_inside(run_directory)
        status = read_status(run_directory)
        config = run_files.read_config(run_directory)
    except KeiseiError as error:
        return RunOverview(run_directory.name, "broken", note=str(error))
    heartbeat = None
    with suppress(FileAccessError):
        heartbeat = parse_heartbeat(read_bytes(run_directory / run_files.HEARTBEAT))
    overview = make_overview(run_directory.name, status, config, heartbeat, now=now)
    return replace(overview, notes=read_notes(run_directory))


def _require_inside(run_directory: Path) -> None:
    """Raise `KeiseiError` if a link leads out of the directory that holds the runs."""
    root = os.path.realpath(run_directory.parent)
    for name in (run_files.CONFIG, run_files.METRICS, run_files.HEARTBEAT, run_files.NOTES):
        if not Path(os.path.realpath(run_directory / name)).is_relative_to(root):
            raise KeiseiError(f"a link leads out of {run_directory.parent}: it is not followed")


def make_overview(
    name: str,
    status: RunStatus,
    config: Mapping[str, Any],
    heartbeat: RunHeartbeat | None,
    *,
    now: float,
) -> RunOverview:
    """Return the overview of a run with a known status, settings and sign of life."""
    first, last, furthest = status.first, status.last, status.furthest
    if first is None or last is None or furthest is None:
        note = f"{run_files.METRICS} has no readable line yet"
        return RunOverview(name, "broken", note=note, model=model_name(config))
    state, note = _state(status.end, last, heartbeat, now)
    if state != "running":
        heartbeat = None
    parameters = status.facts.get("parameters")
    return RunOverview(
        name=name,
        state=state,
        note=note,
        timestep=furthest.timestep,
        total_timesteps=furthest.total_timesteps,
        update=furthest.update,
        games=furthest.games,
        seconds=furthest.seconds,
        started=first.time,
        scores=dict(status.scores),
        elo=status.elo,
        model=model_name(config),
        parameters=parameters if isinstance(parameters, int) else None,
        last_written=last.time,
        metrics=dict(status.metrics),
        max_minutes=_max_minutes(config),
        activity="" if heartbeat is None else _activity(heartbeat),
        heartbeat=heartbeat,
    )


def _activity(heartbeat: RunHeartbeat) -> str:
    ending = "; ends after this update" if heartbeat.is_stopping else ""
    return f"{heartbeat.progress}{ending}"


def _state(
    end: JournalEntry | None, last: JournalEntry, heartbeat: RunHeartbeat | None, now: float
) -> tuple[StateName, str]:
    """Return (state, note) of a run by its end, if there is one, or its signs of life."""
    if end is not None:
        if end.reason in FINISHED_REASONS:
            return "finished", ""
        return ("interrupted", "") if end.reason == INTERRUPTED else ("failed", end.reason)
    # A killed run leaves no end. It counts as running while its last sign of life is recent.
    if heartbeat is not None and heartbeat.time >= last.time - HEARTBEAT_TIMEOUT:
        is_running = heartbeat.is_fresh(now) or now - last.time <= HEARTBEAT_TIMEOUT
        return ("running", "") if is_running else ("interrupted", "killed")
    seconds_per_step = last.seconds / last.update if last.update else 0.0
    if now - last.time <= max(_SILENCE_TIMEOUT, _SILENCE_STEPS * seconds_per_step):
        return "running", ""
    return "interrupted", "killed"


def model_name(config: Mapping[str, Any]) -> str:
    """Return the type and size of a run's network, such as ``resnet 2x64``."""
    model = config.get("model")
    if not isinstance(model, dict):
        return ""
    return network_name(model)


def _max_minutes(config: Mapping[str, Any]) -> float:
    """Return the time limit in a run's settings; 0 for none, or one that is not a number."""
    run = config.get("run")
    limit = run.get("max_minutes") if isinstance(run, dict) else None
    return float(limit) if isinstance(limit, int | float) and 0.0 < limit < _MAX_MINUTES else 0.0

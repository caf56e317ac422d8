"""The state of a run as a display knows it, from the events of the run."""

import logging
import math
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final

from keisei import metric_names as names
from keisei.callbacks import (
    CheckpointSaved,
    EvaluationEnd,
    PhaseProgress,
    Progress,
    StepEnd,
    TrainingEnd,
    TrainingStart,
)
from keisei.config_schema import AppConfig
from keisei.errors import KeiseiError
from keisei.runs.history import History
from keisei.runs.journal import (
    EloEstimate,
    ScoreEstimate,
    elo_estimate,
    evaluation_metrics,
    score_estimates,
)
from keisei.shogi.game import ShogiGame

TREND_LENGTH: Final = 60
"""Maximum number of values of a metric in its sparkline."""

MAX_MESSAGES: Final = 30
"""Maximum number of log messages that are kept."""

_NO_PROGRESS: Final = Progress(timestep=0, total_timesteps=1, update=0, games=0, seconds=0.0)

_STARTING: Final = PhaseProgress("starting")

_TRENDS: Final = (
    names.SPS,
    names.MEAN_PLIES,
    names.POLICY_LOSS,
    names.VALUE_LOSS,
    names.ENTROPY,
    names.APPROX_KL,
    names.CLIP_FRACTION,
    names.EXPLAINED_VARIANCE,
    names.GRAD_NORM,
)


@dataclass
class RunState:
    """State of a run. Times are in seconds; `clock` returns the present one."""

    config: AppConfig = field(default_factory=AppConfig)
    run_directory: Path = Path()
    facts: Mapping[str, Any] = field(default_factory=dict)
    progress: Progress = _NO_PROGRESS
    first: Progress = _NO_PROGRESS
    """Progress at the start of this session."""

    metrics: Mapping[str, float] = field(default_factory=dict)
    """Metrics of the last step."""

    trends: dict[str, deque[float]] = field(default_factory=dict)
    board: ShogiGame | None = None
    scores: dict[str, list[ScoreEstimate]] = field(default_factory=dict)
    """All scores against each opponent, oldest first."""

    ratings: list[EloEstimate] = field(default_factory=list)
    """All ratings, oldest first."""

    phase: PhaseProgress = _STARTING
    phase_began: float = 0.0
    """Time at which the phase began, by the clock."""

    is_stopping: bool = False
    """Whether the run was asked to end after this update."""

    checkpoint: Progress | None = None
    """Progress at the last checkpoint."""

    messages: deque[logging.LogRecord] = field(default_factory=lambda: deque(maxlen=MAX_MESSAGES))
    clock: Callable[[], float] = time.monotonic
    updated: float = 0.0
    """Time of `progress` by the clock."""

    # ---- events ----

    def start(self, event: TrainingStart) -> None:
        """Handle the start of a session; after a resume, read earlier metrics from the journal."""
        self.config, self.run_directory = event.config, event.run_directory
        self.facts, self.first = event.facts, event.progress
        self.phase_began = self.clock()
        self._set_progress(event.progress)
        if event.progress.update > 0:
            self.checkpoint = event.progress
            self._read_journal(event.run_directory, event.progress.update)

    def enter(self, event: PhaseProgress) -> None:
        """Handle the begin or the progress of a phase."""
        if event.phase != self.phase.phase:
            self.phase_began = self.clock()
        self.phase = event

    def step(self, event: StepEnd) -> None:
        """Handle the end of a training step."""
        self._set_progress(event.progress)
        self.metrics, self.board = event.metrics, event.board
        self._extend_trends(event.metrics)

    def evaluate(self, event: EvaluationEnd) -> None:
        """Handle an evaluation, of the present network or, in the background, of an earlier one."""
        if event.progress.seconds >= self.progress.seconds:
            self._set_progress(event.progress)
        self._add_evaluation(evaluation_metrics(event.scores, event.placement))

    def save(self, event: CheckpointSaved) -> None:
        """Handle a new checkpoint."""
        self._set_progress(event.progress)
        self.checkpoint = event.progress

    def end(self, event: TrainingEnd) -> None:
        """Handle the end of the session."""
        self._set_progress(event.progress)

    def _set_progress(self, progress: Progress) -> None:
        self.progress, self.updated = progress, self.clock()

    def _extend_trends(self, metrics: Mapping[str, float]) -> None:
        for name in _TRENDS:
            value = metrics.get(name, math.nan)
            if math.isfinite(value):
                self.trends.setdefault(name, deque(maxlen=TREND_LENGTH)).append(value)

    def _read_journal(self, run_directory: Path, update: int) -> None:
        try:
            history = History.read(run_directory)
        except KeiseiError:
            return  # without a journal the trends begin here
        for entry in history.steps[-TREND_LENGTH:]:
            if entry.update <= update:
                self._extend_trends(entry.metrics)
        for entry in history.evaluations:
            if entry.update <= update:
                self._add_evaluation(entry.metrics)

    def _add_evaluation(self, metrics: Mapping[str, float]) -> None:
        if (rating := elo_estimate(metrics)) is not None:
            self.ratings.append(rating)
        for opponent, score in score_estimates(metrics).items():
            self.scores.setdefault(opponent, []).append(score)

    # ---- derived values ----

    def metric(self, name: str) -> float:
        """Return a metric of the last step; NaN if missing."""
        return self.metrics.get(name, math.nan)

    def trend(self, name: str) -> list[float]:
        """Return the last values of a metric, oldest first."""
        return list(self.trends.get(name, ()))

    @property
    def seconds(self) -> float:
        """Seconds of training until now."""
        return self.progress.seconds + self.clock() - self.updated

    @property
    def phase_seconds(self) -> float:
        """Seconds since the phase began."""
        return self.clock() - self.phase_began

    @property
    def average_sps(self) -> float:
        """Plies per second in this session; NaN before the first step."""
        seconds = self.progress.seconds - self.first.seconds
        plies = self.progress.timestep - self.first.timestep
        return plies / seconds if seconds > 0.0 else math.nan

    @property
    def fraction_done(self) -> float:
        """Fraction of the run that is over: see `Progress.fraction_done`."""
        return replace(self.progress, seconds=self.seconds).fraction_done

    @property
    def seconds_left(self) -> float:
        """Remaining seconds of the run at the speed of this session; NaN while unknown."""
        plies = self.progress.total_timesteps - self.progress.timestep
        rate = self.average_sps
        left = plies / rate - (self.clock() - self.updated) if rate > 0.0 else math.inf
        if limit := self.progress.max_minutes * 60.0:
            left = min(left, limit - self.seconds)
        return max(0.0, left) if math.isfinite(left) else math.nan

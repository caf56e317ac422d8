"""What a display knows of the run, gathered from its events."""

import logging
import math
import time
from collections import deque
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from keisei import metric_names as names
from keisei.config_schema import AppConfig
from keisei.errors import KeiseiError
from keisei.metric_names import Strength
from keisei.runs.journal import History
from keisei.shogi.game import ShogiGame
from keisei.training.callbacks import (
    CheckpointSaved,
    EvaluationEnd,
    Progress,
    StepEnd,
    TrainingEnd,
    TrainingStart,
)

TREND_LENGTH: Final = 60
"""Values of a metric that are remembered for its sparkline."""

MESSAGES: Final = 30
"""Log messages that are remembered."""

_NO_PROGRESS: Final = Progress(timestep=0, total_timesteps=1, update=0, games=0, seconds=0.0)

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
    """The run at this moment. Times are in seconds; `clock` counts them."""

    config: AppConfig = field(default_factory=AppConfig)
    run_directory: Path = Path()
    facts: Mapping[str, Any] = field(default_factory=dict)
    progress: Progress = _NO_PROGRESS
    first: Progress = _NO_PROGRESS
    """Where this session began."""

    metrics: Mapping[str, float] = field(default_factory=dict)
    """Of the last step."""

    trends: dict[str, deque[float]] = field(default_factory=dict)
    board: ShogiGame | None = None
    scores: dict[str, list[Strength]] = field(default_factory=dict)
    """All results against each opponent, oldest first."""

    checkpoint: Progress | None = None
    """How far the run was when it was last saved."""

    messages: deque[logging.LogRecord] = field(default_factory=lambda: deque(maxlen=MESSAGES))
    clock: Callable[[], float] = time.monotonic
    heard: float = 0.0
    """When `progress` was true, by the clock."""

    # ---- what is told ----

    def start(self, event: TrainingStart) -> None:
        """The run begins or goes on; what was measured before is read from its journal."""
        self.config, self.run_directory = event.config, event.run_directory
        self.facts, self.first = event.facts, event.progress
        self._hear(event.progress)
        if event.progress.update > 0:
            self.checkpoint = event.progress
            self._recall(event.run_directory, event.progress.update)

    def step(self, event: StepEnd) -> None:
        """A step is done."""
        self._hear(event.progress)
        self.metrics, self.board = event.metrics, event.board
        self._extend_trends(event.metrics)

    def evaluate(self, event: EvaluationEnd) -> None:
        """The network has been measured, now or, in the background, as it was a while ago."""
        if event.progress.seconds >= self.progress.seconds:
            self._hear(event.progress)
        for opponent, strength in names.strengths(names.evaluation_metrics(event.scores)).items():
            self.scores.setdefault(opponent, []).append(strength)

    def save(self, event: CheckpointSaved) -> None:
        """The run has been saved."""
        self._hear(event.progress)
        self.checkpoint = event.progress

    def end(self, event: TrainingEnd) -> None:
        """The run ends."""
        self._hear(event.progress)

    def _hear(self, progress: Progress) -> None:
        self.progress, self.heard = progress, self.clock()

    def _extend_trends(self, metrics: Mapping[str, float]) -> None:
        for name in _TRENDS:
            value = metrics.get(name, math.nan)
            if math.isfinite(value):
                self.trends.setdefault(name, deque(maxlen=TREND_LENGTH)).append(value)

    def _recall(self, run_directory: Path, update: int) -> None:
        try:
            history = History.read(run_directory)
        except KeiseiError:
            return  # no journal: the curves begin here
        for entry in history.steps[-TREND_LENGTH:]:
            if entry.update <= update:
                self._extend_trends(entry.metrics)
        for entry in history.evaluations:
            if entry.update <= update:
                for opponent, strength in names.strengths(entry.metrics).items():
                    self.scores.setdefault(opponent, []).append(strength)

    # ---- what follows from it ----

    def metric(self, name: str) -> float:
        """A metric of the last step; NaN where there is none."""
        return self.metrics.get(name, math.nan)

    def trend(self, name: str) -> list[float]:
        """The last values of a metric."""
        return list(self.trends.get(name, ()))

    @property
    def seconds(self) -> float:
        """Seconds of training up to now."""
        return self.progress.seconds + self.clock() - self.heard

    @property
    def average_sps(self) -> float:
        """Plies per second in this session; NaN before its first step."""
        seconds = self.progress.seconds - self.first.seconds
        plies = self.progress.timestep - self.first.timestep
        return plies / seconds if seconds > 0.0 else math.nan

    @property
    def fraction(self) -> float:
        """How much of the run is done: of its plies or of its time, whichever is further."""
        done = self.progress.timestep / self.progress.total_timesteps
        limit = self.config.run.max_minutes * 60.0
        return min(1.0, max(done, self.seconds / limit if limit else 0.0))

    @property
    def seconds_left(self) -> float:
        """Seconds until the end, at the speed of this session; NaN when nothing is known yet."""
        plies = self.progress.total_timesteps - self.progress.timestep
        # NaN and 0 plies/s: unknown. `min` must not see a NaN, with which it is not symmetric.
        rate = self.average_sps
        left = plies / rate - (self.clock() - self.heard) if rate > 0.0 else math.inf
        if limit := self.config.run.max_minutes * 60.0:
            left = min(left, limit - self.seconds)
        return max(0.0, left) if math.isfinite(left) else math.nan

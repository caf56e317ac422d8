"""Events of a training run, and the callbacks that receive them.

The trainer emits events; display, trackers, report and plug-ins are callbacks. A callback that
raises is logged with its traceback, a full disk in one line, and training continues.
"""

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.metadata import entry_points
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, Literal, Protocol, runtime_checkable

from keisei.errors import KeiseiError
from keisei.formats import count, percent

if TYPE_CHECKING:  # readers of journals import `Progress`, and need neither Numba nor pydantic
    from keisei.config_schema import AppConfig
    from keisei.evaluation.calibration import Calibration
    from keisei.evaluation.measure import Measurement
    from keisei.evaluation.placing import Placement
    from keisei.evaluation.score import Score
    from keisei.shogi.game import ShogiGame
    from keisei.shogi.notation.record import GameRecord
    from keisei.shogi.rules import Outcome

logger = logging.getLogger(__name__)

PLUGIN_GROUP: Final = "keisei.callbacks"
"""Entry-point group in which packages register callbacks, each by a name and a class."""


@dataclass(frozen=True)
class Progress:
    """Progress of a run, counted over all its sessions."""

    timestep: int
    """Plies played in self-play."""

    total_timesteps: int
    """Plies after which the run is finished."""

    update: int
    """Updates of the network."""

    games: int
    """Games of self-play that have ended."""

    seconds: float
    """Seconds of training."""

    max_minutes: float = 0.0
    """Minutes of training after which the run ends; 0 for no time limit."""

    @property
    def ply_fraction(self) -> float:
        """Fraction of the plies that have been played; a run may exceed 1 in its last rollout."""
        return self.timestep / self.total_timesteps if self.total_timesteps > 0 else 0.0

    @property
    def time_fraction(self) -> float:
        """Fraction of the time limit that has passed; 0 without a limit."""
        return self.seconds / (60.0 * self.max_minutes) if self.max_minutes > 0.0 else 0.0

    @property
    def fraction_done(self) -> float:
        """Fraction of the run that is over, 0 to 1: by plies or by time, whichever is further."""
        return min(1.0, max(self.ply_fraction, self.time_fraction))


@dataclass(frozen=True)
class TrainingStart:
    """A session of training begins: a new run, or a resumed one."""

    config: "AppConfig"
    run_directory: Path
    progress: Progress
    facts: Mapping[str, Any]
    """Properties of the session: parameters, planes, device, precision, versions ..."""


Phase = Literal["starting", "playing", "learning", "evaluating", "waiting", "saving", "paused"]
"""Phases of a run. It waits at its end, for an evaluation in the background."""


@dataclass(frozen=True)
class PhaseProgress:
    """A phase of the run has begun, or has advanced: several times a second in most phases."""

    phase: Phase
    done: int = 0
    """Plies, samples or games so far; 0 in phases that are not counted."""

    total: int = 0
    """Plies and samples of the phase; games at most; 0 if unknown."""

    def __str__(self) -> str:
        """Describe the phase in a few words.

        >>> print(PhaseProgress("playing", 400, 1000))
        playing 40 %
        >>> print(PhaseProgress("evaluating", 120, 400))
        evaluating 120 of up to 400 games
        """
        if self.phase == "evaluating" and self.total:
            return f"evaluating {count(self.done)} of up to {count(self.total)} games"
        if self.phase == "waiting":
            return "waiting for an evaluation in the background"
        share = f" {percent(self.fraction)}" if self.total else ""
        return f"{self.phase}{share}"

    @property
    def fraction(self) -> float:
        """Fraction of the phase that is over, 0 to 1."""
        return min(1.0, self.done / self.total) if self.total else 0.0


@dataclass(frozen=True)
class StopRequested:
    """Someone has asked the run to end, by Ctrl-C for example; it will after this update."""


@dataclass(frozen=True)
class GameEnd:
    """A game of self-play has ended."""

    outcome: "Outcome"
    plies: int


@dataclass(frozen=True)
class EpochEnd:
    """A pass over the rollout's experience has ended."""

    epoch: int
    progress: Progress


@dataclass(frozen=True)
class StepEnd:
    """A training step has ended: a rollout, and an update from it."""

    progress: Progress
    metrics: Mapping[str, float]
    """Metrics by their full names, such as ``losses/policy`` or ``charts/SPS``."""

    board: "ShogiGame | None"
    """A game in progress, for the display."""


@dataclass(frozen=True)
class EvaluationEnd:
    """The network has been rated, and has played its standard opponents."""

    progress: Progress
    """Progress of the evaluated network; a background evaluation ends some updates later."""

    scores: "Mapping[str, Score]"
    """Scores by opponent."""

    placement: "Placement | None" = None
    """Rating on the scale; None if the settings ask for none."""

    games: "tuple[GameRecord, ...]" = field(default=())
    """Sample games."""

    calibration: "Calibration | None" = None
    """How good the network's values are."""

    @classmethod
    def of(cls, progress: Progress, measurement: "Measurement") -> "EvaluationEnd":
        """Make the event of a measurement."""
        return cls(
            progress,
            measurement.scores,
            measurement.placement,
            measurement.records,
            measurement.calibration,
        )


@dataclass(frozen=True)
class CheckpointSaved:
    """A checkpoint has been written."""

    path: Path
    progress: Progress


@dataclass(frozen=True)
class TrainingEnd:
    """The session of training ends."""

    reason: str
    """``finished``, ``time limit``, ``interrupted``, or the message of an error."""

    progress: Progress
    is_urgent: bool = False
    """Whether the user is not willing to wait: callbacks only release what they hold."""


class Callback:
    """Base class of callbacks: one method per event, each of which does nothing by default."""

    def on_training_start(self, event: TrainingStart) -> None:
        """Handle the start of a session."""

    def on_phase(self, event: PhaseProgress) -> None:
        """Handle the begin of a phase, or its progress."""

    def on_stop_requested(self, event: StopRequested) -> None:
        """Handle a request to end the run; called by a signal handler in the main thread."""

    def on_game_end(self, event: GameEnd) -> None:
        """Handle the end of a self-play game."""

    def on_epoch_end(self, event: EpochEnd) -> None:
        """Handle the end of a pass over the rollout's experience."""

    def on_step_end(self, event: StepEnd) -> None:
        """Handle the end of a training step."""

    def on_evaluation(self, event: EvaluationEnd) -> None:
        """Handle the scores of an evaluation."""

    def on_checkpoint(self, event: CheckpointSaved) -> None:
        """Handle a new checkpoint."""

    def on_training_end(self, event: TrainingEnd) -> None:
        """Handle the end of a session."""


Event = (
    TrainingStart
    | PhaseProgress
    | StopRequested
    | GameEnd
    | EpochEnd
    | StepEnd
    | EvaluationEnd
    | CheckpointSaved
    | TrainingEnd
)

_METHODS: Final[dict[type, str]] = {
    TrainingStart: "on_training_start",
    PhaseProgress: "on_phase",
    StopRequested: "on_stop_requested",
    GameEnd: "on_game_end",
    EpochEnd: "on_epoch_end",
    StepEnd: "on_step_end",
    EvaluationEnd: "on_evaluation",
    CheckpointSaved: "on_checkpoint",
    TrainingEnd: "on_training_end",
}


class EventBus:
    """Passes each event to every callback, in the order in which they were added."""

    def __init__(self, callbacks: list[Callback] | None = None) -> None:
        self.callbacks = list(callbacks or [])
        self._reported: set[str] = set()
        """Errors of the system that have been logged; a full disk fails at every event."""

    def emit(self, event: Event) -> None:
        """Call every callback with `event`; one that raises is logged, the others are called."""
        method = _METHODS[type(event)]
        for callback in self.callbacks:
            try:
                getattr(callback, method)(event)
            except OSError as error:
                problem = f"{type(callback).__name__}: {error}"
                if problem not in self._reported:
                    self._reported.add(problem)
                    logger.error("%s", problem)
            except Exception:
                logger.exception("callback %s failed in %s", type(callback).__name__, method)


@runtime_checkable
class _CallbackFactory(Protocol):
    def __call__(self) -> Callback: ...


def load_plugin(name: str) -> Callback:
    """Return the callback that an installed package registered under `name`."""
    found = {entry.name: entry for entry in entry_points(group=PLUGIN_GROUP)}
    if name not in found:
        known = ", ".join(sorted(found)) or "none"
        raise KeiseiError(f"unknown callback plug-in {name!r}; installed: {known}")
    try:
        make = found[name].load()
        callback = make() if isinstance(make, _CallbackFactory) else make
    except Exception as error:
        raise KeiseiError(f"plug-in {name!r} cannot be loaded: {error}") from error
    if not isinstance(callback, Callback):
        raise KeiseiError(f"plug-in {name!r} is not a keisei.callbacks.Callback")
    return callback

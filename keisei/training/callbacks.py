"""What happens during a run, and who is told: events, callbacks, the bus between them.

The trainer emits events; display, trackers, report and plug-ins are callbacks that read them. A
callback that fails is logged with its traceback, and training goes on.
"""

import logging
from collections.abc import Mapping
from dataclasses import dataclass, field
from importlib.metadata import entry_points
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

from keisei.config_schema import AppConfig
from keisei.errors import KeiseiError
from keisei.evaluation.score import Score
from keisei.shogi.game import ShogiGame
from keisei.shogi.notation.record import GameRecord
from keisei.shogi.rules import Outcome

logger = logging.getLogger(__name__)

PLUGIN_GROUP = "keisei.callbacks"
"""The entry-point group in which packages register callbacks: a name and a class."""


@dataclass(frozen=True)
class Progress:
    """How far the run has come."""

    timestep: int
    """Plies played and learned from, over all sessions of the run."""

    total_timesteps: int
    update: int
    """Updates of the network so far."""

    games: int
    """Games finished so far."""

    seconds: float
    """Seconds spent training, over all sessions of the run."""


@dataclass(frozen=True)
class TrainingStart:
    """The run begins, or goes on after a resume."""

    config: AppConfig
    run_directory: Path
    progress: Progress
    facts: Mapping[str, Any]
    """What is worth knowing: parameters, planes, device, precision, versions ..."""


@dataclass(frozen=True)
class GameEnd:
    """A game of self-play has ended."""

    outcome: Outcome
    plies: int


@dataclass(frozen=True)
class EpochEnd:
    """One pass over a rollout is done."""

    epoch: int
    progress: Progress


@dataclass(frozen=True)
class StepEnd:
    """One step of training is done: a rollout, and an update from it."""

    progress: Progress
    metrics: Mapping[str, float]
    """Metrics by their full name, such as ``losses/policy`` or ``charts/SPS``."""

    board: ShogiGame | None
    """A game under way, for the display."""


@dataclass(frozen=True)
class EvaluationEnd:
    """The network has been measured against its standard opponents."""

    progress: Progress
    scores: Mapping[str, Score]
    """By opponent."""

    games: tuple[GameRecord, ...] = field(default=())
    """Sample games to be written down."""


@dataclass(frozen=True)
class CheckpointSaved:
    """The run's state is safe on disk."""

    path: Path
    progress: Progress


@dataclass(frozen=True)
class TrainingEnd:
    """The run ends."""

    reason: str
    """In words: ``finished``, ``time limit``, ``interrupted``, or an error's message."""

    progress: Progress


class Callback:
    """Base of all callbacks: every event has a method, which does nothing unless overridden."""

    def on_training_start(self, event: TrainingStart) -> None:
        """The run begins."""

    def on_game_end(self, event: GameEnd) -> None:
        """A game of self-play has ended."""

    def on_epoch_end(self, event: EpochEnd) -> None:
        """One pass over a rollout is done."""

    def on_step_end(self, event: StepEnd) -> None:
        """A rollout and an update are done."""

    def on_evaluation(self, event: EvaluationEnd) -> None:
        """The network has been measured."""

    def on_checkpoint(self, event: CheckpointSaved) -> None:
        """The run's state has been saved."""

    def on_training_end(self, event: TrainingEnd) -> None:
        """The run ends."""


Event = TrainingStart | GameEnd | EpochEnd | StepEnd | EvaluationEnd | CheckpointSaved | TrainingEnd

_METHODS: dict[type, str] = {
    TrainingStart: "on_training_start",
    GameEnd: "on_game_end",
    EpochEnd: "on_epoch_end",
    StepEnd: "on_step_end",
    EvaluationEnd: "on_evaluation",
    CheckpointSaved: "on_checkpoint",
    TrainingEnd: "on_training_end",
}


class EventBus:
    """Hands each event to every callback, in the order in which they were added."""

    def __init__(self, callbacks: list[Callback] | None = None) -> None:
        self.callbacks = list(callbacks or [])

    def emit(self, event: Event) -> None:
        """Tell all callbacks. One that fails is logged; the others are told all the same."""
        method = _METHODS[type(event)]
        for callback in self.callbacks:
            try:
                getattr(callback, method)(event)
            except Exception:
                logger.exception("callback %s failed in %s", type(callback).__name__, method)


@runtime_checkable
class _MakesCallback(Protocol):
    def __call__(self) -> Callback: ...


def load_plugin(name: str) -> Callback:
    """The callback that an installed package registered under `name`."""
    found = {entry.name: entry for entry in entry_points(group=PLUGIN_GROUP)}
    if name not in found:
        known = ", ".join(sorted(found)) or "none is installed"
        raise KeiseiError(f"there is no callback {name!r}; there are: {known}")
    try:
        make = found[name].load()
        callback = make() if isinstance(make, _MakesCallback) else make
    except Exception as error:
        raise KeiseiError(f"plug-in {name!r} cannot be loaded: {error}") from error
    if not isinstance(callback, Callback):
        raise KeiseiError(f"plug-in {name!r} is no keisei.training.callbacks.Callback")
    return callback

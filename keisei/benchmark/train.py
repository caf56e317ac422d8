"""How fast a run trains, and how much of that time the network computes.

It is the trainer itself that is timed, step by step, not a copy of it.
"""

import copy
import io
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import numpy as np
import torch
from rich.console import Console

from keisei.benchmark.bare_loop import bare_update
from keisei.benchmark.machine import this_machine
from keisei.benchmark.timing import Rate, Work, side_by_side
from keisei.benchmark.train_report import BARE, HIDDEN, KEISEI, SHOWN, TrainReport
from keisei.config_schema import AppConfig
from keisei.models.measure import (
    COMPILED,
    LAID_OUT,
    ONE_THREAD,
    PathSpeed,
    measure_paths,
    reduced_paths,
    sample_batch,
)
from keisei.models.measure import Path as ComputePath
from keisei.models.probe import probe_precision
from keisei.ppo.minibatch import Minibatch, MinibatchMaker
from keisei.training import metrics
from keisei.training.display import LiveDisplay
from keisei.training.events import Callback, EventBus, StepEnd, TrainingEnd, TrainingStart
from keisei.training.trainer import Trainer

Progress = Callable[[str, int, int], None]
"""``on_progress(what, done, total)``."""

PACKAGES: Final = ("torch", "numpy", "numba")
PROMISED: Final = ("model.tower_depth=4", "model.tower_width=64", "env.num_games=256")
"""The settings that promises are about; the rest of them are the defaults."""

DEFAULT_SETTINGS: Final = (*PROMISED, "selfplay.rollout_plies=16")
"""Shorter rollouts than usual, so that there are more steps to compare in a minute."""

ACTING_BATCH: Final = 256
WORTH_MEASURING: Final = 0.5
"""Speedup of bfloat16 in the probe below which it is left out: emulated, it takes minutes."""


@dataclass(frozen=True)
class Effort:
    """How much is measured, and for how long."""

    steps: int
    """Steps of training with the display, and as many without."""

    repetitions: int
    """Turns of the measurements that are made in turns."""

    seconds: float
    """How long a turn lasts at least."""

    compiles: bool
    """Whether compiled networks are measured; to compile takes a minute."""


FULL: Final = Effort(steps=5, repetitions=4, seconds=1.0, compiles=True)
QUICK: Final = Effort(steps=2, repetitions=2, seconds=0.3, compiles=False)


def measure(
    config: AppConfig, effort: Effort, on_progress: Progress = lambda what, done, total: None
) -> TrainReport:
    """Measure the training that `config` asks for."""
    machine = this_machine(PACKAGES)
    with tempfile.TemporaryDirectory() as directory:
        on_progress("whole steps", 0, 3)
        recorder = StepRecorder()
        trainer = Trainer(config, Path(directory), EventBus([recorder]))
        steps = _measure_steps(trainer, recorder, effort)
        shares = {name.removeprefix("time/"): recorder.share(name) for name in metrics.TIMES}
        on_progress("updates", 1, 3)
        updates = _measure_updates(trainer, effort)
        on_progress("ways of running the network", 2, 3)
        paths = _measure_paths(trainer, effort)
        return TrainReport(
            machine=machine,
            settings=_settings(config, trainer),
            is_promised=_is_promised(config),
            steps=steps,
            shares=shares,
            network_share=recorder.network_share,
            updates=updates,
            paths=tuple(paths),
        )


class StepRecorder(Callback):
    """Keeps the metrics of the steps."""

    def __init__(self) -> None:
        self.steps: list[dict[str, float]] = []

    def on_step_end(self, event: StepEnd) -> None:
        """Keep what was measured in the step."""
        self.steps.append(dict(event.metrics))

    def share(self, name: str) -> float:
        """What part of the time of all steps went to `name`."""
        return self._total(name) / sum(self._total(time) for time in metrics.TIMES)

    @property
    def network_share(self) -> float:
        """What part of the time of all steps the network computed."""
        seconds = [sum(step.get(name, 0.0) for name in metrics.TIMES) for step in self.steps]
        shares = [step[metrics.NETWORK_SHARE] for step in self.steps]
        return float(np.average(shares, weights=seconds))

    def _total(self, name: str) -> float:
        return sum(step.get(name, 0.0) for step in self.steps)


def _measure_steps(trainer: Trainer, recorder: StepRecorder, effort: Effort) -> dict[str, Rate]:
    """Plies per second of steps with a live display and without, in turns."""
    samples: dict[str, list[float]] = {SHOWN: [], HIDDEN: []}
    trainer.train_step()  # the first step warms up
    recorder.steps.clear()
    trainer.timer.take()
    for _ in range(effort.steps):
        for name in (HIDDEN, SHOWN):
            with _display(trainer) if name == SHOWN else nullcontext():
                trainer.timer.take()
                trainer.agent.stopwatch.take()
                trainer.train_step()
            samples[name].append(recorder.steps[-1][metrics.SPS])
    return {name: Rate(tuple(taken)) for name, taken in samples.items()}


@contextmanager
def _display(trainer: Trainer) -> Iterator[None]:
    """The live display as on a terminal, which nobody sees."""
    console = Console(file=io.StringIO(), force_terminal=True, width=120, height=50)
    display = LiveDisplay(console)
    display.on_training_start(
        TrainingStart(trainer.config, trainer.run_directory, trainer.progress, {})
    )
    trainer.bus.callbacks.append(display)
    try:
        yield
    finally:
        trainer.bus.callbacks.remove(display)
        display.on_training_end(TrainingEnd("measured", trainer.progress))


def _measure_updates(trainer: Trainer, effort: Effort) -> dict[str, Rate]:
    """Samples per second of an update of the agent, and of a bare loop on the same samples."""
    agent, buffer = trainer.agent, trainer.buffer
    settings = agent.settings.model_copy(update={"epochs": 1, "target_kl": None})
    model = agent.compute.compiled(agent.compute.prepare(copy.deepcopy(agent.model)))
    optimizer = torch.optim.AdamW(model.parameters(), lr=settings.learning_rate)
    minibatches = _minibatches(trainer)
    agent.settings = settings
    contestants: dict[str, Work] = {
        KEISEI: lambda: (
            agent.learn(
                buffer, learning_rate=settings.learning_rate, entropy_weight=settings.entropy
            ).samples
        ),
        BARE: lambda: bare_update(model, optimizer, minibatches, settings, agent.compute),
    }
    return side_by_side(contestants, repetitions=effort.repetitions, seconds=effort.seconds)


def _minibatches(trainer: Trainer) -> list[Minibatch]:
    """All samples of the last rollout, ready on the device."""
    agent = trainer.agent
    order = trainer.buffer.sample_order(np.random.default_rng(0))
    parts = np.split(order, range(agent.minibatch_size, len(order), agent.minibatch_size))
    # A maker writes over its last minibatch, so each has one of its own.
    return [MinibatchMaker(agent.spec, agent.compute).make(trainer.buffer, part) for part in parts]


def _measure_paths(trainer: Trainer, effort: Effort) -> list[PathSpeed]:
    compute, model = trainer.agent.compute, trainer.agent.model
    paths: list[ComputePath] = [LAID_OUT, COMPILED]
    if compute.device.type == "cpu" and compute.threads > 1:
        paths.insert(1, ONE_THREAD)
    probe = probe_precision(compute.device.type, torch.bfloat16, compute.threads)
    if probe.survived and probe.speedup > WORTH_MEASURING:
        paths += reduced_paths(torch.bfloat16)
    return measure_paths(
        model,
        sample_batch(model, ACTING_BATCH),
        paths=[path for path in paths if effort.compiles or not path.is_compiled],
        repetitions=effort.repetitions,
        seconds=effort.seconds,
    )


def _settings(config: AppConfig, trainer: Trainer) -> dict[str, str]:
    model, compute = config.model, trainer.agent.compute
    return {
        "network": f"{model.type} {model.tower_depth}x{model.tower_width}",
        "planes": config.env.input_features,
        "games": str(config.env.num_games),
        "minibatch": str(trainer.agent.minibatch_size),
        "device": str(compute.device),
        "threads": str(compute.threads),
        "precision": "fp32" if compute.autocast_dtype is None else str(compute.autocast_dtype),
        "compiled": "yes" if trainer.agent.model.compiled is not None else "no",
    }


def _is_promised(config: AppConfig) -> bool:
    chosen = config.model_dump()
    for setting in PROMISED:
        path, value = setting.split("=")
        section, field = path.split(".")
        if str(chosen[section][field]) != value:
            return False
    return True

"""``keisei benchmark train``: training steps, and updates next to a bare PyTorch loop.

It shows plies per second with and without the live display, how the time of a step is spent, and
how fast the network acts and learns on each execution path.
"""

import copy
import io
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch
from rich.console import Console
from rich.table import Table
from rich.text import Text

from keisei import __version__
from keisei import metric_names as metrics
from keisei.benchmark.harness import (
    Machine,
    ProgressCallback,
    Rate,
    SpeedTarget,
    StepRecorder,
    Work,
    noise_text,
    print_header,
    rate_text,
    side_by_side,
    target_table,
    this_machine,
)
from keisei.benchmark.network_speed import (
    COMPILED,
    LAID_OUT,
    ONE_THREAD,
    ExecutionPath,
    PathSpeed,
    measure_paths,
    reduced_paths,
    sample_batch,
)
from keisei.callbacks import (
    EventBus,
    TrainingEnd,
    TrainingStart,
)
from keisei.config_schema import AppConfig, PPOConfig
from keisei.display.live import LiveDisplay
from keisei.errors import KeiseiError
from keisei.formats import network_name, new_table
from keisei.network.model_factory import network_type
from keisei.network.towers.device import Compute, probe_precision
from keisei.network.towers.model import ActorCritic
from keisei.ppo.agent import PPOAgent
from keisei.ppo.learner import LearnSettings
from keisei.ppo.losses import Minibatch, MinibatchMaker
from keisei.training.trainer import Trainer


def bare_update(
    model: ActorCritic,
    optimizer: torch.optim.Optimizer,
    minibatches: Sequence[Minibatch],
    settings: PPOConfig,
    compute: Compute,
) -> int:
    """Train on each minibatch once, in plain PyTorch; return the number of samples."""
    for batch in minibatches:
        with compute.autocast():
            output = model(batch.planes, batch.legal)
        places = torch.arange(batch.legal.shape[1], device=batch.legal.device)
        padding = places >= batch.counts[:, None]
        log_probs = output.logits.masked_fill(padding, -1e9).log_softmax(dim=1)
        ratio = (log_probs.gather(1, batch.legal_indices[:, None])[:, 0] - batch.log_probs).exp()
        advantages = batch.advantages - batch.advantages.mean()
        advantages = advantages / (advantages.std() + 1e-8)
        clipped = ratio.clamp(1 - settings.clip_range, 1 + settings.clip_range)
        policy_loss = -torch.minimum(ratio * advantages, clipped * advantages).mean()
        entropy = -(log_probs.exp() * log_probs).sum(dim=1).mean()
        value_loss = model.value_loss(output.value, batch.returns).mean()
        loss = policy_loss + settings.value_weight * value_loss - settings.entropy * entropy
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), settings.max_grad_norm)
        optimizer.step()
    return sum(len(batch.legal_indices) for batch in minibatches)


KEISEI: Final = "keisei"
BARE: Final = "bare loop"
SHOWN: Final = "display on"
HIDDEN: Final = "display off"


@dataclass(frozen=True)
class TrainReport:
    """Results of the benchmark."""

    machine: Machine
    settings: dict[str, str]
    """Network, games, minibatch, device and precision that were measured."""

    has_target_settings: bool
    """Whether these are the settings that the speed targets are about."""

    steps: dict[str, Rate]
    """Plies per second of whole steps, with the live display and without."""

    shares: dict[str, float]
    """Shares of a step's time by section (env, inference, learning, other); they sum to 1."""

    network_share: float
    """Share of a step's time that the network computed."""

    updates: dict[str, Rate]
    """Samples per second of Keisei's update and of the bare loop."""

    paths: tuple[PathSpeed, ...]
    """Speed of the network on each execution path."""

    @property
    def targets(self) -> tuple[SpeedTarget, ...]:
        """The promised speeds next to the measured ones."""
        return tuple(self._targets())

    def as_dict(self) -> dict[str, Any]:
        """Return the report as plain values, for JSON."""
        return {
            "keisei": __version__,
            "machine": self.machine.as_dict(),
            "settings": self.settings,
            "plies_per_second": {name: rate.as_dict() for name, rate in self.steps.items()},
            "time_shares": self.shares,
            "network_share": self.network_share,
            "samples_per_second": {name: rate.as_dict() for name, rate in self.updates.items()},
            "paths": [path.as_dict() for path in self.paths],
            "targets": [target.as_dict() for target in self.targets],
        }

    def _targets(self) -> Iterator[SpeedTarget]:
        share = self.network_share if self.has_target_settings else None
        yield SpeedTarget("time in the network, 4x64 tower, 256 games", 0.8, "", share)
        update = self.updates[KEISEI].best / self.updates[BARE].best
        yield SpeedTarget("samples/s of an update", 0.9, " x bare loop", update)
        display = self.steps[SHOWN].best / self.steps[HIDDEN].best
        yield SpeedTarget("plies/s with the live display", 0.98, " x without", display)


PACKAGES: Final = ("torch", "numpy", "numba")
TARGET_SETTINGS: Final = (
    "model.type=resnet",
    "model.tower_depth=4",
    "model.tower_width=64",
    "env.num_games=256",
)
"""The settings that the speed targets are about; all others have their defaults."""

DEFAULT_SETTINGS: Final = (*TARGET_SETTINGS, "selfplay.rollout_plies=16")
"""Shorter rollouts than usual give more steps to compare in a minute."""

ACTING_BATCH: Final = 256
MIN_PROBE_SPEEDUP: Final = 0.5
"""bfloat16 is skipped below this speedup in the probe: where it is emulated, it takes minutes."""


@dataclass(frozen=True)
class TrainEffort:
    """Number and length of the measurements."""

    steps: int
    """Training steps with the live display, and as many without."""

    repetitions: int
    """Turns of each contestant."""

    seconds: float
    """Minimum length of a turn."""

    compiles: bool
    """Whether compiled networks are measured; compiling takes a minute."""


FULL: Final = TrainEffort(steps=5, repetitions=4, seconds=1.0, compiles=True)
QUICK: Final = TrainEffort(steps=2, repetitions=2, seconds=0.3, compiles=False)


def measure_training(
    config: AppConfig,
    effort: TrainEffort,
    on_progress: ProgressCallback = lambda step, done, total: None,
) -> TrainReport:
    """Measure the training that `config` describes.

    Raises:
        KeiseiError: It trains a network that is not a tower.
    """
    if network_type(config.model.type).model is None:
        raise KeiseiError(
            "this benchmark compares towers with a bare PyTorch loop: set model.type=resnet"
        )
    machine = this_machine(PACKAGES)
    with tempfile.TemporaryDirectory() as directory:
        on_progress("whole steps", 0, 3)
        recorder = StepRecorder()
        trainer = Trainer(config, Path(directory), EventBus([recorder]))
        steps = _measure_steps(trainer, recorder, effort)
        shares = {name.removeprefix("time/"): recorder.share(name) for name in metrics.TIMES}
        on_progress("updates", 1, 3)
        updates = _measure_updates(trainer, effort)
        on_progress("execution paths", 2, 3)
        paths = _measure_paths(trainer, effort)
        return TrainReport(
            machine=machine,
            settings=_settings(config, trainer),
            has_target_settings=_has_target_settings(config),
            steps=steps,
            shares=shares,
            network_share=recorder.network_share,
            updates=updates,
            paths=tuple(paths),
        )


def _agent(trainer: Trainer) -> PPOAgent:
    """Return the learner of a tower, which is what is measured here."""
    assert isinstance(trainer.learner, PPOAgent)
    return trainer.learner


def _measure_steps(
    trainer: Trainer, recorder: StepRecorder, effort: TrainEffort
) -> dict[str, Rate]:
    """Return plies per second of steps with and without a live display, in turns."""
    samples: dict[str, list[float]] = {SHOWN: [], HIDDEN: []}
    trainer.train_step()  # the first step warms up
    recorder.steps.clear()
    trainer.timer.take()
    for _ in range(effort.steps):
        for name in (HIDDEN, SHOWN):
            with _display(trainer) if name == SHOWN else nullcontext():
                trainer.timer.take()
                _agent(trainer).stopwatch.take()
                trainer.train_step()
            samples[name].append(recorder.steps[-1][metrics.SPS])
    return {name: Rate(tuple(taken)) for name, taken in samples.items()}


@contextmanager
def _display(trainer: Trainer) -> Iterator[None]:
    """Attach a live display that draws into memory as it would on a terminal."""
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


def _measure_updates(trainer: Trainer, effort: TrainEffort) -> dict[str, Rate]:
    """Return samples per second of the agent's update and of a bare loop on the same samples."""
    agent, buffer = _agent(trainer), trainer.buffer
    settings = agent.settings.model_copy(update={"epochs": 1, "target_kl": None})
    model = agent.compute.compiled(agent.compute.prepare(copy.deepcopy(agent.model)))
    optimizer = torch.optim.AdamW(model.parameters(), lr=settings.learning_rate)
    minibatches = _minibatches(trainer)
    agent.settings = settings
    contestants: dict[str, Work] = {
        KEISEI: lambda: (
            agent.learn(buffer, LearnSettings(settings.learning_rate, settings.entropy)).samples
        ),
        BARE: lambda: bare_update(model, optimizer, minibatches, settings, agent.compute),
    }
    return side_by_side(contestants, repetitions=effort.repetitions, seconds=effort.seconds)


def _minibatches(trainer: Trainer) -> list[Minibatch]:
    """Return all samples of the last rollout as minibatches on the device."""
    agent = _agent(trainer)
    order = trainer.buffer.sample_order(np.random.default_rng(0), agent.settings.learn_share)
    parts = np.split(order, range(agent.minibatch_size, len(order), agent.minibatch_size))
    # A maker overwrites its previous minibatch, so each gets a maker of its own.
    advantages = trainer.buffer.advantages.reshape(-1)
    return [
        MinibatchMaker(agent.spec, agent.compute).make(trainer.buffer, part, advantages[part])
        for part in parts
    ]


def _measure_paths(trainer: Trainer, effort: TrainEffort) -> list[PathSpeed]:
    compute, model = _agent(trainer).compute, _agent(trainer).model
    paths: list[ExecutionPath] = [LAID_OUT, COMPILED]
    if compute.device.type == "cpu" and compute.threads > 1:
        paths.insert(1, ONE_THREAD)
    probe = probe_precision(compute.device.type, torch.bfloat16, compute.threads)
    if probe.survived and probe.speedup > MIN_PROBE_SPEEDUP:
        paths += reduced_paths(torch.bfloat16)
    return measure_paths(
        model,
        sample_batch(model, ACTING_BATCH),
        paths=[path for path in paths if effort.compiles or not path.is_compiled],
        repetitions=effort.repetitions,
        seconds=effort.seconds,
    )


def _settings(config: AppConfig, trainer: Trainer) -> dict[str, str]:
    compute = _agent(trainer).compute
    return {
        "network": network_name(config.model.model_dump()),
        "planes": config.env.input_features,
        "games": str(config.env.num_games),
        "minibatch": str(_agent(trainer).minibatch_size),
        "device": str(compute.device),
        "threads": str(compute.threads),
        "precision": "fp32" if compute.autocast_dtype is None else str(compute.autocast_dtype),
        "compiled": "yes" if _agent(trainer).model.compiled is not None else "no",
    }


def _has_target_settings(config: AppConfig) -> bool:
    chosen = config.model_dump()
    for setting in TARGET_SETTINGS:
        path, value = setting.split("=")
        section, field = path.split(".")
        if str(chosen[section][field]) != value:
            return False
    return True


FOOTNOTES = (
    "Rates are the best of several turns. noise: how far the median of the turns lies below it.",
    "network: forward and backward passes, losses and the optimizer's step.",
    "bare loop: PPO in plain PyTorch on the same samples, already arranged in minibatches.",
)


def print_train_report(report: TrainReport) -> None:
    """Print the report as tables."""
    console = Console()
    print_header(console, report.machine)
    console.print(Text(", ".join(f"{name} {value}" for name, value in report.settings.items())))
    console.print(_speed_table(report))
    console.print(_time_table(report))
    console.print(_path_table(report))
    for footnote in FOOTNOTES:
        console.print(footnote, style="dim", highlight=False)
    console.print(target_table(report.targets))


def _speed_table(report: TrainReport) -> Table:
    table = new_table("training, per second")
    table.add_column("", no_wrap=True)
    for heading in ("rate", "ratio", "noise"):
        table.add_column(heading, justify="right", no_wrap=True)
    for unit, rates, base, others in (
        ("plies, ", report.steps, HIDDEN, (SHOWN,)),
        ("samples of an update, ", report.updates, BARE, (KEISEI,)),
    ):
        for name in (base, *others):
            share = rates[name].best / rates[base].best
            noise = noise_text({name: rates[name]})
            table.add_row(unit + name, rate_text(rates[name], 1.0), f"{share:.2f}x", noise)
    return table


def _time_table(report: TrainReport) -> Table:
    table = new_table("time per section")
    for heading in ("", "share"):
        table.add_column(heading, justify="right" if heading else "left", no_wrap=True)
    for name, share in report.shares.items():
        table.add_row(name, f"{share:.1%}")
    table.add_row("of which in the network", f"{report.network_share:.1%}")
    return table


def _path_table(report: TrainReport) -> Table:
    table = new_table("execution paths of the network, positions/s")
    table.add_column("", no_wrap=True)
    for heading in ("acting", "ratio", "learning", "ratio", "noise"):
        table.add_column(heading, justify="right", no_wrap=True)
    for speed in report.paths:
        table.add_row(
            speed.path.name,
            rate_text(speed.acting, 1.0),
            f"{speed.acting_ratio:.2f}x",
            rate_text(speed.learning, 1.0),
            f"{speed.learning_ratio:.2f}x",
            noise_text({"acting": speed.acting, "learning": speed.learning}),
        )
    return table

"""What ``keisei benchmark train`` prints."""

import copy
import io
import tempfile
from collections.abc import Callable, Iterator, Sequence
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
    Bar,
    Machine,
    Rate,
    Work,
    bar_table,
    new_table,
    noise_text,
    print_header,
    rate_text,
    side_by_side,
    this_machine,
)
from keisei.benchmark.network_speed import (
    COMPILED,
    LAID_OUT,
    ONE_THREAD,
    PathSpeed,
    measure_paths,
    reduced_paths,
    sample_batch,
)
from keisei.benchmark.network_speed import Path as ComputePath
from keisei.config_schema import AppConfig, PPOConfig
from keisei.display.live import LiveDisplay
from keisei.network.towers.device import Compute, probe_precision
from keisei.network.towers.model import ActorCritic
from keisei.ppo.agent import PPOAgent
from keisei.ppo.learner import LearnSettings
from keisei.ppo.minibatch import Minibatch, MinibatchMaker
from keisei.training.callbacks import (
    Callback,
    EventBus,
    StepEnd,
    TrainingEnd,
    TrainingStart,
)
from keisei.training.trainer import Trainer


def bare_update(
    model: ActorCritic,
    optimizer: torch.optim.Optimizer,
    minibatches: Sequence[Minibatch],
    settings: PPOConfig,
    compute: Compute,
) -> int:
    """Learn from each minibatch once; returns the number of samples."""
    for batch in minibatches:
        with compute.autocast():
            output = model(batch.planes, batch.legal)
        columns = torch.arange(batch.legal.shape[1], device=batch.legal.device)
        padding = columns >= batch.counts[:, None]
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
    """All that was measured."""

    machine: Machine
    settings: dict[str, str]
    """What was trained, and how."""

    is_promised: bool
    """Whether these are the settings that the promises are about."""

    steps: dict[str, Rate]
    """Plies per second of whole steps, with the live display and without."""

    shares: dict[str, float]
    """Of the time of the steps: env, inference, learning, other; together 1."""

    network_share: float
    """Of the time of the steps, how much the network computed."""

    updates: dict[str, Rate]
    """Samples per second of an update, and of the bare loop."""

    paths: tuple[PathSpeed, ...]
    """The ways of running this network here."""

    @property
    def bars(self) -> tuple[Bar, ...]:
        """The promised speeds, and what was measured."""
        return tuple(self._bars())

    def as_dict(self) -> dict[str, Any]:
        """The report as plain values, for JSON."""
        return {
            "keisei": __version__,
            "machine": self.machine.as_dict(),
            "settings": self.settings,
            "plies_per_second": {name: rate.as_dict() for name, rate in self.steps.items()},
            "time_shares": self.shares,
            "network_share": self.network_share,
            "samples_per_second": {name: rate.as_dict() for name, rate in self.updates.items()},
            "paths": [path.as_dict() for path in self.paths],
            "bars": [bar.as_dict() for bar in self.bars],
        }

    def _bars(self) -> Iterator[Bar]:
        share = self.network_share if self.is_promised else None
        yield Bar("time in the network, 4x64 tower, 256 games", 0.8, "", share)
        update = self.updates[KEISEI].best / self.updates[BARE].best
        yield Bar("samples/s of an update", 0.9, " x bare loop", update)
        display = self.steps[SHOWN].best / self.steps[HIDDEN].best
        yield Bar("plies/s with the live display", 0.98, " x without", display)


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


def _agent(trainer: Trainer) -> PPOAgent:
    """The learner of a tower, which is what is measured here."""
    assert isinstance(trainer.learner, PPOAgent)
    return trainer.learner


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
                _agent(trainer).stopwatch.take()
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
    """All samples of the last rollout, ready on the device."""
    agent = _agent(trainer)
    order = trainer.buffer.sample_order(np.random.default_rng(0))
    parts = np.split(order, range(agent.minibatch_size, len(order), agent.minibatch_size))
    # A maker writes over its last minibatch, so each has one of its own.
    return [MinibatchMaker(agent.spec, agent.compute).make(trainer.buffer, part) for part in parts]


def _measure_paths(trainer: Trainer, effort: Effort) -> list[PathSpeed]:
    compute, model = _agent(trainer).compute, _agent(trainer).model
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
    model, compute = config.model, _agent(trainer).compute
    return {
        "network": f"{model.type} {model.tower_depth}x{model.tower_width}",
        "planes": config.env.input_features,
        "games": str(config.env.num_games),
        "minibatch": str(_agent(trainer).minibatch_size),
        "device": str(compute.device),
        "threads": str(compute.threads),
        "precision": "fp32" if compute.autocast_dtype is None else str(compute.autocast_dtype),
        "compiled": "yes" if _agent(trainer).model.compiled is not None else "no",
    }


def _is_promised(config: AppConfig) -> bool:
    chosen = config.model_dump()
    for setting in PROMISED:
        path, value = setting.split("=")
        section, field = path.split(".")
        if str(chosen[section][field]) != value:
            return False
    return True


FOOTNOTES = (
    "Rates are the best of several turns; noise: by how much their median lies below it.",
    "network: forward and backward passes, losses and the optimizer's step.",
    "bare loop: PPO in plain PyTorch on minibatches that are ready, the same samples.",
)


def print_train_report(report: TrainReport) -> None:
    """Tables for people."""
    console = Console()
    print_header(console, report.machine)
    console.print(Text(", ".join(f"{name} {value}" for name, value in report.settings.items())))
    console.print(_speed_table(report))
    console.print(_time_table(report))
    console.print(_path_table(report))
    for footnote in FOOTNOTES:
        console.print(footnote, style="dim", highlight=False)
    console.print(bar_table(report.bars))


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
    table = new_table("where the time goes")
    for heading in ("", "share"):
        table.add_column(heading, justify="right" if heading else "left", no_wrap=True)
    for name, share in report.shares.items():
        table.add_row(name, f"{share:.1%}")
    table.add_row("of all this, in the network", f"{report.network_share:.1%}")
    return table


def _path_table(report: TrainReport) -> Table:
    table = new_table("ways of running the network, positions/s")
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

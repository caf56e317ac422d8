"""``keisei benchmark train``: training and predictions of both network families, side by side.

Whole steps (self-play and learning) of a sparse network on one thread and on several, and of a
small tower if torch is installed; then predictions in batches and one by one. The details of
towers, such as precisions and compilation, are in ``keisei benchmark tower``.
"""

import tempfile
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final, NamedTuple

from rich.console import Console

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
from keisei.callbacks import EventBus
from keisei.config import load_config
from keisei.formats import new_table
from keisei.network.predictor import Network
from keisei.shogi.vector import VectorShogi
from keisei.system import usable_cpus
from keisei.training.trainer import Trainer

PACKAGES: Final = ("numba", "numpy", "torch")

SPARSE: Final = "sparse, 1 thread"
TOWER: Final = "resnet 2x64, 1 thread"
ONE_BY_ONE: Final = "one by one"
BATCH: Final = 64
IN_BATCHES: Final = f"in batches of {BATCH}"

COMMON: Final = (
    "device.device=cpu",
    "selfplay.mate_plies=3",
    "evaluation.interval=0",
    "logging.display=off",
)
SPARSE_SETTINGS: Final = ("model.type=sparse",)
TOWER_SETTINGS: Final = (
    "model.type=resnet",
    "model.tower_depth=2",
    "model.tower_width=64",
    "env.num_games=256",
    "ppo.minibatch_size=512",
)


@dataclass(frozen=True)
class FamilyEffort:
    """Number and length of the measurements."""

    repetitions: int
    seconds: float
    warm_up: int
    """Steps that a sparse network is trained for first: its games and policy become typical."""

    tower_plies: int
    """Plies per game of a tower's rollout: whole ones take a minute."""


FULL: Final = FamilyEffort(repetitions=4, seconds=2.0, warm_up=8, tower_plies=16)
QUICK: Final = FamilyEffort(repetitions=2, seconds=0.5, warm_up=2, tower_plies=4)


class Contestant(NamedTuple):
    """A network family with its settings."""

    name: str
    settings: tuple[str, ...]
    threads: int


@dataclass(frozen=True)
class FamilyReport:
    """Results of the benchmark."""

    machine: Machine
    steps: dict[str, Rate]
    """Plies per second of whole steps, by contestant."""

    shares: dict[str, dict[str, float]]
    """Shares of a step's time by section, for each contestant."""

    predictions: dict[str, dict[str, Rate]]
    """Predictions per second of each contestant with one thread, one by one and in batches."""

    @property
    def threaded(self) -> str | None:
        """Name of the sparse network on several threads; None with one processor."""
        return next((name for name in self.steps if name not in (SPARSE, TOWER)), None)

    @property
    def targets(self) -> tuple[SpeedTarget, ...]:
        """The promised speeds next to the measured ones."""
        return tuple(self._targets())

    def as_dict(self) -> dict[str, Any]:
        """Return the report as plain values, for JSON."""
        return {
            "keisei": __version__,
            "machine": self.machine.as_dict(),
            "plies_per_second": {name: rate.as_dict() for name, rate in self.steps.items()},
            "time_shares": self.shares,
            "predictions_per_second": {
                name: {manner: rate.as_dict() for manner, rate in rates.items()}
                for name, rates in self.predictions.items()
            },
            "targets": [target.as_dict() for target in self.targets],
        }

    def _targets(self) -> Iterator[SpeedTarget]:
        sparse = self.steps[SPARSE].best
        yield SpeedTarget("plies/s of training, sparse, one thread", 15_000, "", sparse)
        threaded = self.steps[self.threaded].best / sparse if self.threaded else None
        yield SpeedTarget("the same with two threads", 1.7, " x one", threaded)
        tower = sparse / self.steps[TOWER].best if TOWER in self.steps else None
        yield SpeedTarget("the same, sparse", 25, " x the 2x64 tower", tower)
        rates = self.predictions[SPARSE]
        yield SpeedTarget(
            f"predictions/s {IN_BATCHES}, one thread", 100_000, "", rates[IN_BATCHES].best
        )
        yield SpeedTarget(
            f"predictions/s {ONE_BY_ONE}, one thread", 15_000, "", rates[ONE_BY_ONE].best
        )


def measure_families(
    effort: FamilyEffort,
    settings: tuple[str, ...] = (),
    on_progress: ProgressCallback = lambda step, done, total: None,
) -> FamilyReport:
    """Measure training and predictions of both families.

    Args:
        effort: number and length of the measurements.
        settings: settings for all contestants, as on the command line.
        on_progress: called before each step.
    """
    machine = this_machine(PACKAGES)
    contestants = list(_contestants(effort))
    with tempfile.TemporaryDirectory() as directory:
        trainers: dict[str, Trainer] = {}
        recorders: dict[str, StepRecorder] = {}
        for number, contestant in enumerate(contestants):
            on_progress(f"warming up: {contestant.name}", number, len(contestants) + 2)
            threads = (
                f"device.threads={contestant.threads}",
                f"env.threads={contestant.threads}",
            )
            config = load_config(None, (*COMMON, *contestant.settings, *threads, *settings))
            recorder = recorders[contestant.name] = StepRecorder()
            trainer = Trainer(config, Path(directory), EventBus([recorder]))
            trainers[contestant.name] = trainer
            for _ in range(1 if contestant.name == TOWER else effort.warm_up):
                trainer.train_step()
            recorder.steps.clear()
        on_progress("whole steps", len(contestants), len(contestants) + 2)
        works: dict[str, Work] = {name: _step(trainer) for name, trainer in trainers.items()}
        steps = side_by_side(works, repetitions=effort.repetitions, seconds=effort.seconds)
        on_progress("predictions", len(contestants) + 1, len(contestants) + 2)
        predictions: dict[str, dict[str, Rate]] = {
            name: _measure_predictions(trainers[name].learner.network, effort)
            for name in (SPARSE, TOWER)
            if name in trainers
        }
    shares = {
        name: {time.removeprefix("time/"): recorder.share(time) for time in metrics.TIMES}
        for name, recorder in recorders.items()
    }
    return FamilyReport(machine, steps, shares, predictions)


def _contestants(effort: FamilyEffort) -> Iterator[Contestant]:
    yield Contestant(SPARSE, SPARSE_SETTINGS, 1)
    if usable_cpus() > 1:
        yield Contestant("sparse, 2 threads", SPARSE_SETTINGS, 2)
    if find_spec("torch") is not None:
        plies = f"selfplay.rollout_plies={effort.tower_plies}"
        yield Contestant(TOWER, (*TOWER_SETTINGS, plies), 1)


def _step(trainer: Trainer) -> Work:
    def work() -> int:
        before = trainer.timestep
        trainer.timer.take()
        trainer.learner.stopwatch.take()
        trainer.train_step()
        return trainer.timestep - before

    return work


def _measure_predictions(network: Network, effort: FamilyEffort) -> dict[str, Rate]:
    env = VectorShogi(BATCH, network.spec, seed=1, opening_plies=60)
    positions = env.observe()
    single = positions.take(slice(0, 1))

    def one_by_one() -> int:
        network.predict(single)
        return 1

    def in_batches() -> int:
        network.predict(positions)
        return BATCH

    return side_by_side(
        {ONE_BY_ONE: one_by_one, IN_BATCHES: in_batches},
        repetitions=effort.repetitions,
        seconds=effort.seconds / 2,
    )


FOOTNOTES: Final = (
    "A step plays a rollout and learns from it, mates in three by rule. Rates are the best of "
    "several turns; noise: how far the median of the turns lies below it.",
)


def print_family_report(report: FamilyReport) -> None:
    """Print the report as tables."""
    console = Console()
    print_header(console, report.machine)
    table = new_table("training, plies/s")
    table.add_column("", no_wrap=True)
    for heading in ("rate", "ratio", "noise", "env", "inference", "learning"):
        table.add_column(heading, justify="right", no_wrap=True)
    for name, rate in report.steps.items():
        ratio = f"{rate.best / report.steps[SPARSE].best:.3g}x"
        shares = report.shares[name]
        parts = (f"{shares[part]:.0%}" for part in ("env", "inference", "learning"))
        table.add_row(name, rate_text(rate, 1.0), ratio, noise_text({name: rate}), *parts)
    console.print(table)
    table = new_table("predictions/s, one thread")
    table.add_column("", no_wrap=True)
    for heading in (ONE_BY_ONE, IN_BATCHES, "noise"):
        table.add_column(heading, justify="right", no_wrap=True)
    for name, rates in report.predictions.items():
        cells = (rate_text(rates[manner], 1.0) for manner in (ONE_BY_ONE, IN_BATCHES))
        table.add_row(name, *cells, noise_text(rates))
    console.print(table)
    for footnote in FOOTNOTES:
        console.print(footnote, style="dim", highlight=False)
    console.print(target_table(report.targets))

"""The parts that all benchmarks share: the machine, rates side by side, speed targets, tables.

Contestants take turns, so that noise from outside hits all of them, and the best turn of each
counts.
"""

import gc
import os
import platform
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from statistics import median
from typing import Any, Final, TypeVar

import numpy as np
from rich.console import Console
from rich.table import Table
from rich.text import Text

from keisei import __version__
from keisei import metric_names as metrics
from keisei.callbacks import Callback, StepEnd
from keisei.formats import new_table
from keisei.system import usable_cpus


@dataclass(frozen=True)
class SpeedTarget:
    """A target speed on a quiet machine."""

    claim: str
    needed: float
    unit: str
    measured: float | None
    """None if it was not measured, for example because a library is not installed."""

    @property
    def passed(self) -> bool | None:
        """Whether the target is met on this machine; None if not measured."""
        return None if self.measured is None else self.measured >= self.needed

    def as_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        return {**vars(self), "passed": self.passed}


CPU_INFO = Path("/proc/cpuinfo")
"""The file in which Linux names the processor's model."""


@dataclass(frozen=True)
class Machine:
    """Processor, interpreter, library versions and load of the machine."""

    cpu: str
    """The processor's model name."""

    cpus: int
    """Number of processors this process may use."""

    load: float | None
    """Load average of the last minute; None where the system does not report it."""

    python: str
    versions: dict[str, str]
    """Version of each package involved, if installed."""

    @property
    def is_busy(self) -> bool:
        """Whether other processes are likely to disturb the benchmark."""
        return self.load is not None and self.load > self.cpus / 2

    def as_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        return {**asdict(self), "is_busy": self.is_busy}


def this_machine(packages: Iterable[str]) -> Machine:
    """Describe the machine as it is now, with the versions of some packages."""
    return Machine(
        cpu=_cpu_model(),
        cpus=usable_cpus(),
        load=_load_average(),
        python=f"{platform.python_implementation()} {platform.python_version()}",
        versions={name: found for name in packages if (found := installed_version(name))},
    )


def installed_version(package: str) -> str | None:
    """Return the version of a package; None if it is not installed."""
    try:
        return version(package)
    except PackageNotFoundError:
        return None


def _cpu_model() -> str:
    if CPU_INFO.exists():
        for line in CPU_INFO.read_text(encoding="utf-8").splitlines():
            key, _, value = line.partition(":")
            if key.strip() == "model name":
                return value.strip()
    return platform.processor() or platform.machine()


def _load_average() -> float | None:
    if not hasattr(os, "getloadavg"):  # Windows
        return None
    try:
        return os.getloadavg()[0]
    except OSError:
        return None


Name = TypeVar("Name")

ProgressCallback = Callable[[str, int, int], None]
"""``on_progress(step, done, total)``: called before each step of a benchmark."""

Work = Callable[[], int]
"""Does some work and returns the number of units done: nodes, steps ..."""


LEAD_IN = 0.25
"""Untimed work at the start of each turn, as a fraction of the turn."""


@dataclass(frozen=True)
class Rate:
    """Units of work per second, measured several times."""

    samples: tuple[float, ...]

    @property
    def best(self) -> float:
        """The sample that other processes disturbed least; all comparisons use it."""
        return max(self.samples)

    @property
    def spread(self) -> float:
        """Distance of the median below the best, as a fraction: 0 on a quiet machine."""
        return 1 - median(self.samples) / self.best

    def as_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        return {"best": self.best, "spread": self.spread, "samples": list(self.samples)}


def side_by_side(
    contestants: Mapping[Name, Work], *, repetitions: int, seconds: float
) -> dict[Name, Rate]:
    """Measure the rate of each contestant, in turns (A B C, A B C ...).

    A longer disturbance from outside thus hits all of them, not one. Each turn begins with an
    untimed lead-in that warms up caches and threads. A turn lasts `seconds`, or one call of `work`
    if that takes longer.
    """
    samples: dict[Name, list[float]] = {name: [] for name in contestants}
    with _garbage_collector_off():
        for _ in range(repetitions):
            for name, work in contestants.items():
                _units_per_second(work, LEAD_IN * seconds)
                samples[name].append(_units_per_second(work, seconds))
    return {name: Rate(tuple(taken)) for name, taken in samples.items()}


def _units_per_second(work: Work, seconds: float) -> float:
    units = 0
    start = time.perf_counter()
    while True:
        units += work()
        elapsed = time.perf_counter() - start
        if elapsed >= seconds:
            return units / elapsed


@contextmanager
def _garbage_collector_off() -> Iterator[None]:
    was_on = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()


NOT_MEASURED = "-"


def print_header(console: Console, machine: Machine) -> None:
    """Print versions, processor and load, with a warning if the machine is busy."""
    load = "unknown" if machine.load is None else f"{machine.load:.2f}"
    versions = ", ".join(f"{name} {number}" for name, number in machine.versions.items())
    console.print(Text(f"keisei {__version__}; {machine.python}, {versions}"))
    console.print(Text(f"{machine.cpu}, {machine.cpus} CPUs usable, load average {load}"))
    if machine.is_busy:
        warning = "The machine is busy: other processes distort these figures."
        console.print(Text(warning, style="yellow"))


def target_table(targets: tuple[SpeedTarget, ...]) -> Table:
    """Return the speed targets and whether they are met on this machine."""
    marks = {
        True: Text("pass", style="green"),
        False: Text("fail", style="bold red"),
        None: Text("not measured", style="dim"),
    }
    table = new_table("speed targets, for a quiet machine")
    for heading in ("", "at least", "measured", ""):
        table.add_column(heading)
    for target in targets:
        measured = NOT_MEASURED if target.measured is None else f"{target.measured:.2f}"
        table.add_row(
            target.claim, f"{target.needed:g}{target.unit}", measured, marks[target.passed]
        )
    return table


ROUNDED_FROM: Final = 100
"""From this value on, rates have no decimals."""


def rate_text(rate: Rate | None, unit: float) -> str:
    """Format the best of a rate in multiples of `unit`."""
    if rate is None:
        return NOT_MEASURED
    value = rate.best / unit
    return f"{value:.1f}" if value < ROUNDED_FROM else f"{value:,.0f}"


def noise_text(rates: dict[str, Rate]) -> str:
    """Format the largest spread among some rates."""
    return f"{max(rate.spread for rate in rates.values()):.0%}"


class StepRecorder(Callback):
    """A callback that collects the metrics of each step."""

    def __init__(self) -> None:
        self.steps: list[dict[str, float]] = []

    def on_step_end(self, event: StepEnd) -> None:
        """Append the metrics of the step."""
        self.steps.append(dict(event.metrics))

    def share(self, name: str) -> float:
        """Share of the time of all steps that was spent in the section `name`."""
        return self._total(name) / sum(self._total(time) for time in metrics.TIMES)

    @property
    def network_share(self) -> float:
        """Share of the time of all steps that the network computed."""
        seconds = [sum(step.get(name, 0.0) for name in metrics.TIMES) for step in self.steps]
        shares = [step[metrics.NETWORK_SHARE] for step in self.steps]
        return float(np.average(shares, weights=seconds))

    def _total(self, name: str) -> float:
        return sum(step.get(name, 0.0) for step in self.steps)

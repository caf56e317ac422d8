"""What the tables of all benchmarks have in common."""

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
from typing import Any, TypeVar

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from keisei import __version__
from keisei.system import usable_cpus


@dataclass(frozen=True)
class Bar:
    """A speed that Keisei promises on a quiet machine."""

    claim: str
    needed: float
    unit: str
    measured: float | None
    """None if what it compares with is not installed or was not measured."""

    @property
    def passed(self) -> bool | None:
        """Whether the promise holds here; None when not measured."""
        return None if self.measured is None else self.measured >= self.needed

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {**vars(self), "passed": self.passed}


CPU_INFO = Path("/proc/cpuinfo")
"""Where Linux tells the processor's model."""


@dataclass(frozen=True)
class Machine:
    """Processor, interpreter and libraries, and how busy it all was."""

    cpu: str
    """The processor's model name."""

    cpus: int
    """How many processors this process may use."""

    load: float | None
    """Processes that wanted to run during the last minute, on average; None where unknown."""

    python: str
    versions: dict[str, str]
    """Version of each package that takes part; those that are not installed are left out."""

    @property
    def is_busy(self) -> bool:
        """Whether other processes are likely to disturb the measurement."""
        return self.load is not None and self.load > self.cpus / 2

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {**asdict(self), "is_busy": self.is_busy}


def this_machine(packages: Iterable[str]) -> Machine:
    """Describe the machine as it is now; `packages` are those whose versions matter."""
    return Machine(
        cpu=_cpu_model(),
        cpus=usable_cpus(),
        load=_load_average(),
        python=f"{platform.python_implementation()} {platform.python_version()}",
        versions={name: found for name in packages if (found := installed_version(name))},
    )


def installed_version(package: str) -> str | None:
    """The version of an installed package; None if it isn't."""
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

Work = Callable[[], int]
"""Does some work and returns how many units of it: nodes, steps ..."""


LEAD_IN = 0.25
"""How long a contestant works before it is timed, as a part of its turn."""


@dataclass(frozen=True)
class Rate:
    """Units of work per second, measured several times."""

    samples: tuple[float, ...]

    @property
    def best(self) -> float:
        """The sample that other processes disturbed least: what all comparisons use."""
        return max(self.samples)

    @property
    def spread(self) -> float:
        """By which part of the best the median lies below it: 0 on a quiet machine."""
        return 1 - median(self.samples) / self.best

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {"best": self.best, "spread": self.spread, "samples": list(self.samples)}


def side_by_side(
    contestants: Mapping[Name, Work], *, repetitions: int, seconds: float
) -> dict[Name, Rate]:
    """Measure the rate of each contestant, in turns (A B C, A B C ...).

    A disturbance from outside that lasts a while so hits all of them, not one. Each turn begins
    with a lead-in that is not timed, so that caches and threads are as they are in long use. A turn
    lasts `seconds`, or one piece of work if that takes longer.
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
    """What it ran on, and whether something else ran too."""
    load = "unknown" if machine.load is None else f"{machine.load:.2f}"
    versions = ", ".join(f"{name} {number}" for name, number in machine.versions.items())
    console.print(Text(f"keisei {__version__}; {machine.python}, {versions}"))
    console.print(Text(f"{machine.cpu}, {machine.cpus} CPUs usable, load average {load}"))
    if machine.is_busy:
        warning = "The machine is busy: other processes take time from what is measured here."
        console.print(Text(warning, style="yellow"))


def bar_table(bars: tuple[Bar, ...]) -> Table:
    """The promises, and whether they hold here."""
    marks = {
        True: Text("pass", style="green"),
        False: Text("fail", style="bold red"),
        None: Text("not measured", style="dim"),
    }
    table = new_table("the bars, for a quiet machine")
    for heading in ("", "at least", "measured", ""):
        table.add_column(heading)
    for bar in bars:
        measured = NOT_MEASURED if bar.measured is None else f"{bar.measured:.2f}"
        table.add_row(bar.claim, f"{bar.needed:g}{bar.unit}", measured, marks[bar.passed])
    return table


def new_table(title: str) -> Table:
    """A table without columns yet, that fits into 80 columns of a terminal."""
    return Table(
        title=title,
        title_justify="left",
        box=box.SIMPLE_HEAD,
        collapse_padding=True,
        pad_edge=False,
    )


def rate_text(rate: Rate | None, unit: float) -> str:
    """The best of a rate in multiples of `unit`."""
    if rate is None:
        return NOT_MEASURED
    value = rate.best / unit
    return f"{value:.1f}" if value < 100 else f"{value:,.0f}"


def noise_text(rates: dict[str, Rate]) -> str:
    """The noise of the noisiest of some rates."""
    return f"{max(rate.spread for rate in rates.values()):.0%}"

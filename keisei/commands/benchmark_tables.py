"""What the tables of all benchmarks have in common."""

from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from keisei import __version__
from keisei.benchmark.bars import Bar
from keisei.benchmark.machine import Machine
from keisei.benchmark.timing import Rate

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

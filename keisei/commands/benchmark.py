"""``keisei benchmark``: show what `keisei.benchmark` measures."""

import json
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from rich.table import Table
    from rich.text import Text

    from keisei.benchmark.env_report import Bar, EnvReport
    from keisei.benchmark.timing import Rate

benchmark_app = typer.Typer(
    help="Measure the speed of Keisei, side by side with others.", no_args_is_help=True
)

NOT_MEASURED = "-"
FOOTNOTES = (
    "Each figure is the best of several turns. noise: by how much their median lies below it, in "
    "the worst column.",
    "ratio: keisei with one thread against the column to the left.",
    "legal list, packed + list: one measurement of keisei for both, as a step always writes both.",
    "plain, tuned: the cshogi loop as one writes it first, and as fast as we could make it.",
)


@benchmark_app.callback()
def benchmark() -> None:
    """Measure the speed of Keisei, side by side with others."""


@benchmark_app.command()
def env(
    quick: Annotated[bool, typer.Option("--quick", help="Seconds, not minutes; noisier.")] = False,
    threads: Annotated[
        int | None,
        typer.Option(min=1, help="Threads of the second column; by default 2, if there are CPUs."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for machines.")] = False,
) -> None:
    """The game core: perft and random play, next to Python loops over cshogi and rsshogi."""
    report = _measure_with_progress(quick, threads)
    if as_json:
        typer.echo(json.dumps(report.as_dict(), indent=2))
    else:
        _print_report(report)


def _measure_with_progress(quick: bool, threads: int | None) -> "EnvReport":
    from keisei.commands.progress import progress_bar

    with progress_bar() as progress:
        task = progress.add_task("compiling", total=None)

        from keisei.benchmark.env import FULL, QUICK, measure
        from keisei.doctor import usable_cpus

        return measure(
            QUICK if quick else FULL,
            threads=min(2, usable_cpus()) if threads is None else threads,
            on_progress=lambda step, done, total: progress.update(
                task, description=step, completed=done, total=total
            ),
        )


def _print_report(report: "EnvReport") -> None:
    from rich.console import Console

    console = Console()
    for line in _header(report):
        console.print(line)
    console.print(_perft_table(report))
    console.print(_step_table(report))
    for footnote in FOOTNOTES:
        console.print(footnote, style="dim", highlight=False)
    console.print(_bar_table(report.bars))


def _header(report: "EnvReport") -> "list[Text]":
    from rich.text import Text

    from keisei import __version__

    machine = report.machine
    load = "unknown" if machine.load is None else f"{machine.load:.2f}"
    versions = ", ".join(f"{name} {number}" for name, number in machine.versions.items())
    lines = [
        Text(f"keisei {__version__}; {machine.python}, {versions}"),
        Text(f"{machine.cpu}, {machine.cpus} CPUs usable, load average {load}"),
    ]
    if machine.is_busy:
        warning = "The machine is busy: other processes take time from what is measured here."
        lines.append(Text(warning, style="yellow"))
    if "cshogi" not in machine.versions:
        hint = "cshogi is not installed, so there is nothing to compare with: pip install cshogi"
        lines.append(Text(hint, style="yellow"))
    return lines


def _perft_table(report: "EnvReport") -> "Table":
    from keisei.benchmark.env_report import CSHOGI, KEISEI, RSSHOGI

    table = _new_table("perft, million nodes/s")
    table.add_column("position", no_wrap=True)
    table.add_column("depth", justify="right")
    table.add_column("last ply")
    for heading in ("keisei", "cshogi", "ratio", "rsshogi", "ratio", "noise"):
        table.add_column(heading, justify="right", no_wrap=True)
    for row in report.perft:
        table.add_row(
            row.position,
            str(row.depth),
            "played" if row.plays_leaves else "counted",
            _rate(row.rates.get(KEISEI), 1e6),
            _rate(row.rates.get(CSHOGI), 1e6),
            _ratio(row.rates, CSHOGI),
            _rate(row.rates.get(RSSHOGI), 1e6),
            _ratio(row.rates, RSSHOGI),
            _noise(row.rates),
        )
    return table


def _step_table(report: "EnvReport") -> "Table":
    from keisei.benchmark.env_report import CSHOGI, CSHOGI_TUNED, KEISEI, KEISEI_THREADS

    table = _new_table("random play, thousand steps/s")
    table.add_column("games", justify="right")
    table.add_column("output", no_wrap=True)
    second = f"{report.threads} threads" if report.threads > 1 else "threads"
    for heading in ("keisei\n1 thread", f"\n{second}", "cshogi\nplain", "\nratio"):
        table.add_column(heading, justify="right", no_wrap=True)
    for heading in ("cshogi\ntuned", "\nratio", "\nnoise"):
        table.add_column(heading, justify="right", no_wrap=True)
    previous = None
    for row in report.steps:
        if previous not in (None, row.games):
            table.add_section()
        table.add_row(
            "" if row.games == previous else f"{row.games:,}",
            row.output,
            _rate(row.rates.get(KEISEI), 1e3),
            _rate(row.rates.get(KEISEI_THREADS), 1e3),
            _rate(row.rates.get(CSHOGI), 1e3),
            _ratio(row.rates, CSHOGI),
            _rate(row.rates.get(CSHOGI_TUNED), 1e3),
            _ratio(row.rates, CSHOGI_TUNED),
            _noise(row.rates),
        )
        previous = row.games
    return table


def _bar_table(bars: "tuple[Bar, ...]") -> "Table":
    from rich.text import Text

    marks = {
        True: Text("pass", style="green"),
        False: Text("fail", style="bold red"),
        None: Text("not measured", style="dim"),
    }
    table = _new_table("the bars, for a quiet machine")
    for heading in ("", "at least", "measured", ""):
        table.add_column(heading)
    for bar in bars:
        measured = NOT_MEASURED if bar.measured is None else f"{bar.measured:.2f}"
        table.add_row(bar.claim, f"{bar.needed:g}{bar.unit}", measured, marks[bar.passed])
    return table


def _new_table(title: str) -> "Table":
    from rich import box
    from rich.table import Table

    return Table(
        title=title,
        title_justify="left",
        box=box.SIMPLE_HEAD,
        collapse_padding=True,
        pad_edge=False,  # so that it fits into 80 columns
    )


def _rate(rate: "Rate | None", unit: float) -> str:
    if rate is None:
        return NOT_MEASURED
    value = rate.best / unit
    return f"{value:.1f}" if value < 100 else f"{value:,.0f}"


def _ratio(rates: "dict[str, Rate]", other: str) -> str:
    from keisei.benchmark.env_report import KEISEI, ratio

    value = ratio(rates, KEISEI, other)
    return NOT_MEASURED if value is None else f"{value:.1f}x"


def _noise(rates: "dict[str, Rate]") -> str:
    return f"{max(rate.spread for rate in rates.values()):.0%}"

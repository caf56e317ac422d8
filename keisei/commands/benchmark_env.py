"""What ``keisei benchmark env`` prints."""

from rich.console import Console
from rich.table import Table
from rich.text import Text

from keisei.benchmark.env_report import (
    CSHOGI,
    CSHOGI_TUNED,
    KEISEI,
    KEISEI_THREADS,
    RSSHOGI,
    EnvReport,
    ratio,
)
from keisei.benchmark.timing import Rate
from keisei.commands.benchmark_tables import (
    NOT_MEASURED,
    bar_table,
    new_table,
    noise_text,
    print_header,
    rate_text,
)

FOOTNOTES = (
    "Each figure is the best of several turns. noise: by how much their median lies below it, in "
    "the worst column.",
    "ratio: keisei with one thread against the column to the left.",
    "legal list, packed + list: one measurement of keisei for both, as a step always writes both.",
    "plain, tuned: the cshogi loop as one writes it first, and as fast as we could make it.",
)


def print_env_report(report: EnvReport) -> None:
    """Tables for people."""
    console = Console()
    print_header(console, report.machine)
    if "cshogi" not in report.machine.versions:
        hint = "cshogi is not installed, so there is nothing to compare with: pip install cshogi"
        console.print(Text(hint, style="yellow"))
    console.print(_perft_table(report))
    console.print(_step_table(report))
    for footnote in FOOTNOTES:
        console.print(footnote, style="dim", highlight=False)
    console.print(bar_table(report.bars))


def _perft_table(report: EnvReport) -> Table:
    table = new_table("perft, million nodes/s")
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
            rate_text(row.rates.get(KEISEI), 1e6),
            rate_text(row.rates.get(CSHOGI), 1e6),
            _ratio(row.rates, CSHOGI),
            rate_text(row.rates.get(RSSHOGI), 1e6),
            _ratio(row.rates, RSSHOGI),
            noise_text(row.rates),
        )
    return table


def _step_table(report: EnvReport) -> Table:
    table = new_table("random play, thousand steps/s")
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
            rate_text(row.rates.get(KEISEI), 1e3),
            rate_text(row.rates.get(KEISEI_THREADS), 1e3),
            rate_text(row.rates.get(CSHOGI), 1e3),
            _ratio(row.rates, CSHOGI),
            rate_text(row.rates.get(CSHOGI_TUNED), 1e3),
            _ratio(row.rates, CSHOGI_TUNED),
            noise_text(row.rates),
        )
        previous = row.games
    return table


def _ratio(rates: dict[str, Rate], other: str) -> str:
    value = ratio(rates, KEISEI, other)
    return NOT_MEASURED if value is None else f"{value:.1f}x"

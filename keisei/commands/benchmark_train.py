"""What ``keisei benchmark train`` prints."""

from rich.console import Console
from rich.table import Table
from rich.text import Text

from keisei.benchmark.train_report import BARE, HIDDEN, KEISEI, SHOWN, TrainReport
from keisei.commands.benchmark_tables import (
    bar_table,
    new_table,
    noise_text,
    print_header,
    rate_text,
)

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

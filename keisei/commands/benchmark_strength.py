"""What ``keisei benchmark strength`` prints."""

from collections.abc import Mapping

from rich.console import Console
from rich.text import Text

from keisei.benchmark.strength import Figure, StrengthReport
from keisei.commands.benchmark_tables import NOT_MEASURED, new_table, print_header
from keisei.evaluation.standards import YARDSTICK


def print_strength_report(report: StrengthReport, old: Mapping[str, float] | None) -> None:
    """The table, next to the figures of an earlier report if there are any."""
    console = Console()
    print_header(console, report.machine)
    recipe = ", ".join(f"{name} {value}" for name, value in report.recipe.items())
    console.print(Text(f"{report.run}: {recipe}"))
    table = new_table("the recipe as a whole")
    table.add_column("", no_wrap=True)
    table.add_column("now" if old is not None else "measured", justify="right", no_wrap=True)
    if old is not None:
        for heading in ("before", "change"):
            table.add_column(heading, justify="right", no_wrap=True)
    for figure in report.figures():
        row = [Text(figure.name), Text(_text(figure, figure.value))]
        if old is not None:
            row += _comparison(figure, old.get(figure.name))
        table.add_row(*row)
    console.print(table)
    low, high = report.interval
    console.print(
        f"Elo against {YARDSTICK}: 95 % {low:+.0f} to {high:+.0f}", style="dim", highlight=False
    )


def _comparison(figure: Figure, before: float | None) -> list[Text]:
    if before is None:
        return [Text(NOT_MEASURED), Text(NOT_MEASURED)]
    is_difference = figure.unit in (" %", "")  # of shares and ratings, ratios say nothing
    change = (
        f"{figure.value - before:+.1f}"
        if is_difference
        else f"{figure.value / before:.2f}x"
        if before
        else NOT_MEASURED
    )
    is_better = (figure.value > before) == figure.more_is_better
    style = "" if figure.value == before else "green" if is_better else "red"
    return [Text(_text(figure, before)), Text(change, style=style)]


def _text(figure: Figure, value: float) -> str:
    digits = 0 if figure.unit in (" MB", "") else 1
    return f"{value:,.{digits}f}{figure.unit}"

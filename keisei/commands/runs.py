"""``keisei runs``: a list of runs with their strength."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from keisei.commands.options import AsJson
from keisei.run_files import RUNS

if TYPE_CHECKING:
    from rich.console import Console
    from rich.table import Table

    from keisei.runs.listing import RunOverview

STATE_STYLES = {
    "finished": "green",
    "running": "cyan",
    "interrupted": "yellow",
    "failed": "bold red",
    "broken": "red",
}


def runs(
    root: Annotated[Path, typer.Argument(help="Directory that holds the runs.")] = Path(RUNS),
    show_all: Annotated[
        bool, typer.Option("--all", help="List archived runs, too.", show_default=False)
    ] = False,
    as_json: AsJson = False,
) -> None:
    """List runs: state, plies, time, games, Elo, model."""
    from keisei.runs.listing import list_runs

    listed = list_runs(root)
    found = [run for run in listed if show_all or not run.notes.is_archived]
    if as_json:
        typer.echo(json.dumps([run.as_dict() for run in found], indent=2))
        return
    if not found:
        typer.echo(f"There are no runs in {root}.")
        return

    from rich.console import Console

    console = Console()
    console.print(_table(found, console))
    for run in found:
        if about := run.note or run.activity:
            console.print(f"{run.name}: {about}", style="dim", markup=False, highlight=False)
    if hidden := len(listed) - len(found):
        plural = "" if hidden == 1 else "s"
        console.print(f"{hidden} archived run{plural}: --all", style="dim", highlight=False)


LEAST_IMPORTANT = ("model", "games", "time")
"""Columns that are left out, in this order, while the table is wider than the terminal."""


def _table(found: "list[RunOverview]", console: "Console") -> "Table":
    """Return the table with as many columns as the terminal has room for."""
    headings = ["name", "state", "plies", "time", "games", "Elo", "model"]
    for left_out in (*LEAST_IMPORTANT, ""):
        table = _table_of(found, headings)
        unlimited = console.options.update_width(1000)
        if console.measure(table, options=unlimited).maximum <= console.width:
            break
        headings = [heading for heading in headings if heading != left_out]
    return table


def _table_of(found: "list[RunOverview]", headings: "list[str]") -> "Table":
    from rich.text import Text

    from keisei.formats import (
        NOTHING,
        count,
        duration,
        new_table,
        short_count,
    )

    table = new_table("runs")
    for heading in headings:
        is_text = heading in ("name", "state", "model")
        # A name is broken if nothing else is left to give; all other cells stay on one line.
        table.add_column(
            heading,
            justify="left" if is_text else "right",
            no_wrap=heading != "name",
            overflow="fold",
        )
    for run in found:
        state = Text(run.state, style=STATE_STYLES[run.state])
        if run.state == "broken":
            table.add_row(Text(run.name), state)
            continue
        size = "" if run.parameters is None else f", {short_count(run.parameters)}"
        cells: dict[str, str | Text] = {
            "name": Text(run.name),
            "state": state,
            "plies": short_count(run.timestep),
            "time": duration(run.seconds),
            "games": count(run.games),
            "Elo": NOTHING if run.elo is None else run.elo.short_text,
            "model": Text(run.model + size),
        }
        table.add_row(*(cells[heading] for heading in headings))
    return table

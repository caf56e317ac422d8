"""``keisei runs``: a list of runs with their strength."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from keisei.commands.options import AsJson
from keisei.run_files import RUNS

if TYPE_CHECKING:
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
    as_json: AsJson = False,
) -> None:
    """List runs: state, plies, time, games, Elo, model."""
    from keisei.runs.listing import list_runs

    found = list_runs(root)
    if as_json:
        typer.echo(json.dumps([run.as_dict() for run in found], indent=2))
        return
    if not found:
        typer.echo(f"There are no runs in {root}.")
        return

    from rich.console import Console

    console = Console()
    console.print(_table(found))
    for run in found:
        if about := run.note or run.activity:
            console.print(f"{run.name}: {about}", style="dim", markup=False, highlight=False)


def _table(found: "list[RunOverview]") -> "Table":
    from rich.table import Table
    from rich.text import Text

    from keisei.formats import (
        NOTHING,
        count,
        duration,
        short_count,
    )

    table = Table(title="runs", title_justify="left")
    table.add_column("name", overflow="fold")
    table.add_column("state")
    for heading in ("plies", "time", "games", "Elo"):
        table.add_column(heading, justify="right")
    table.add_column("model")
    for run in found:
        state = Text(run.state, style=STATE_STYLES[run.state])
        if run.state == "broken":
            table.add_row(Text(run.name), state)
            continue
        elo = NOTHING if run.elo is None else f"{run.elo.elo:.0f} ±{run.elo.margin:.0f}"
        size = "" if run.parameters is None else f", {short_count(run.parameters)}"
        table.add_row(
            Text(run.name),
            state,
            short_count(run.timestep),
            duration(run.seconds),
            count(run.games),
            elo,
            Text(run.model + size),
        )
    return table

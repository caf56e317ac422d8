"""``keisei models``: the networks that can be played: in the package, and of your runs."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from keisei.commands.options import AsJson
from keisei.run_files import CHECKPOINTS, RUNS

if TYPE_CHECKING:
    from keisei.runs.journal import EloEstimate


def models(
    root: Annotated[Path, typer.Argument(help="Directory that holds the runs.")] = Path(RUNS),
    as_json: AsJson = False,
) -> None:
    """List the networks that play: the one in the package, and those of your runs."""
    from importlib import resources

    from keisei.constants import BUILTIN
    from keisei.runs.listing import list_runs

    package = resources.files("keisei.network")
    card = json.loads(package.joinpath(f"{BUILTIN}.json").read_text("utf-8"))
    size = len(package.joinpath(f"{BUILTIN}.keisei").read_bytes())
    found = [{"name": BUILTIN, "bytes": size, **card}]
    found += [
        {
            "name": run.name,
            "model": run.model,
            "plies": run.timestep,
            "minutes": run.seconds / 60.0,
            "games": run.games,
            **_rating(run.elo),
        }
        for run in (list_runs(root) if root.is_dir() else ())
        if any((root / run.name / CHECKPOINTS).glob("*/"))
    ]
    if as_json:
        typer.echo(json.dumps(found, indent=2))
        return
    _print(found)


def _rating(elo: "EloEstimate | None") -> dict[str, Any]:
    return {"elo": None} if elo is None else elo._asdict()


def _print(found: list[dict[str, Any]]) -> None:
    from rich.console import Console
    from rich.text import Text

    from keisei.evaluation.rating_text import bound_text
    from keisei.formats import NOTHING, count, duration, new_table, short_count

    table = new_table("networks")
    for heading in ("name", "plies", "games", "trained for", "Elo by policy"):
        table.add_column(heading, justify="left" if heading == "name" else "right")
    for entry in found:
        elo, bound = entry.get("elo"), ""
        if "position" in entry:
            bound = bound_text(entry["low"], entry["high"], entry["position"])
        table.add_row(
            Text(entry["name"]),
            short_count(entry["plies"]),
            count(entry["games"]),
            duration(60.0 * entry["minutes"]),
            NOTHING if elo is None else bound or f"{elo:.0f}",
        )
    console = Console()
    console.print(table)
    console.print("keisei play NAME --level 5    keisei usi NAME    keisei bench NAME", style="dim")

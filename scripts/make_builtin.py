"""Put a trained run into the package as its player: ``keisei play``, ``keisei usi``, ``builtin``.

    keisei train --config laptop --name builtin --set run.max_minutes=120
    keisei benchmark curve builtin --json > curve.json
    python scripts/make_builtin.py runs/builtin curve.json --command "keisei train ..."

writes the weights as int8, and a card that says how they were trained: command, seed, time, plies,
games, and the strength at each milestone. Then ``scripts/levels.py`` tunes and rates the levels.
"""

import json
import sys
from pathlib import Path
from typing import Annotated, Final

import typer

from keisei.benchmark.strength_curve import CurvePoint, read_curve
from keisei.constants import BUILTIN, WeightType
from keisei.errors import KeiseiError
from keisei.network.loading import read_network
from keisei.network.network_file import export_network_file
from keisei.runs.history import History
from keisei.system import write_atomically

PACKAGE: Final = Path(__file__).parents[1] / "keisei" / "network"
MAX_BYTES: Final = 5_000_000
"""Size that the file of the player may have."""


def curve_entry(point: CurvePoint) -> dict[str, float]:
    """Return a milestone as the card has it."""
    scores = {f"against {name}": round(score.score, 4) for name, score in point.scores.items()}
    return {
        "minutes": round(point.minutes, 1),
        "plies": point.timestep,
        "elo": round(point.placement.rating),
        "low": round(point.placement.low),
        "high": round(point.placement.high),
        **scores,
    }


def main(
    run: Annotated[Path, typer.Argument(help="The trained run.")],
    curve: Annotated[Path, typer.Argument(help="Its report of keisei benchmark curve.")],
    command: Annotated[str, typer.Option(help="The command that trained it.")],
    directory: Annotated[Path, typer.Option(help="Where the files go.")] = PACKAGE,
) -> None:
    """Write the network and its card."""
    stored = read_network(run)
    data = export_network_file(stored, dtype=WeightType.INT8)
    if len(data) > MAX_BYTES:
        raise KeiseiError(f"the file would have {len(data):,} bytes, more than {MAX_BYTES:,}")
    points = sorted(read_curve(curve).points, key=lambda point: point.timestep)
    last = History.read(run).steps[-1]
    card = {
        "command": command,
        "seed": stored.config.run.seed,
        "threads": stored.config.device.threads or 2,
        "minutes": round(last.seconds / 60.0, 1),
        "plies": stored.timestep,
        "games": last.games,
        "elo": round(points[-1].placement.rating) if points else None,
        "weights": str(WeightType.INT8),
        "curve": [curve_entry(point) for point in points],
    }
    write_atomically(directory / f"{BUILTIN}.keisei", data)
    write_atomically(directory / f"{BUILTIN}.json", (json.dumps(card, indent=2) + "\n").encode())
    typer.echo(f"{directory / BUILTIN}.keisei: {len(data) / 1e6:.2f} MB")


if __name__ == "__main__":
    try:
        typer.run(main)
    except KeiseiError as error:
        sys.exit(f"error: {error}")

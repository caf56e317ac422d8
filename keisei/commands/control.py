"""``keisei control``: pause, resume or reset a run that is training."""

from pathlib import Path
from typing import Annotated

import typer

from keisei.run_files import find_run
from keisei.runs.control import RunCommand, control_run


def control(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Run, by its path or name.")],
    action: Annotated[
        RunCommand, typer.Argument(help="pause, resume, or reset: abandon all games in progress.")
    ],
) -> None:
    """Pause a run that is training, resume it, or let it begin new games."""
    typer.echo(control_run(find_run(run), action))

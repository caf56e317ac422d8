"""``keisei control``: pause, resume or reset a run that is training."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from keisei.run_files import find_run


class Action(StrEnum):
    """What to do with a run."""

    PAUSE = "pause"
    RESUME = "resume"
    RESET = "reset"


def control(
    run: Annotated[Path, typer.Argument(metavar="RUN", help="Run, by its path or name.")],
    action: Annotated[
        Action, typer.Argument(help="pause, resume, or reset: abandon all games in progress.")
    ],
) -> None:
    """Pause a run that is training, resume it, or let it begin new games."""
    from keisei.runs.control import control_run

    typer.echo(control_run(find_run(run), action.value))

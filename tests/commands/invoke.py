"""Commands as a user runs them, in this process."""

from collections.abc import Callable

import typer
from typer.testing import CliRunner, Result


def invoke(command: Callable[..., None], *arguments: str) -> Result:
    """Run a command on a terminal of 120 columns; its errors are raised."""
    app = typer.Typer()
    app.command()(command)
    return CliRunner().invoke(app, arguments, catch_exceptions=False, env={"COLUMNS": "120"})

"""The ``keisei`` command: one thin subcommand per module of `keisei.commands`.

A subcommand is a plain function, registered below. It imports what it needs when it is called:
``keisei --help`` has to answer at once, and numba and torch take seconds to import.
"""

import io
import sys
from typing import Annotated

import typer

from keisei import __version__
from keisei.commands.convert import convert
from keisei.commands.doctor import doctor
from keisei.commands.perft import perft
from keisei.commands.show import show
from keisei.errors import KeiseiError

USER_ERROR = 2
"""Exit code when the user's input or set-up is at fault."""

app = typer.Typer(
    help="A Shogi player that teaches itself, from nothing, by self-play.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
for _command in (doctor, perft, show, convert):
    app.command()(_command)


def _print_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"keisei {__version__}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_print_version, is_eager=True, help="Print the version and exit."
        ),
    ] = False,
) -> None:
    """The options that come before a subcommand."""


def main() -> None:
    """Run the command line; errors that the user can cause end in one red line and exit code 2."""
    _write_utf8()
    try:
        app()
    except KeiseiError as error:
        from rich.console import Console

        Console(stderr=True).print(f"error: {error}", style="red", markup=False, highlight=False)
        sys.exit(USER_ERROR)


def _write_utf8() -> None:
    """Kanji survive redirection also where the locale's encoding has none, as on Windows."""
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8")

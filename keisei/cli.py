"""The ``keisei`` command: one thin subcommand per module of `keisei.commands`.

A subcommand is a plain function, registered below. It imports the library when it is called:
``keisei --help`` must be quick, and numba and torch take seconds to import.
"""

import errno
import io
import multiprocessing
import os
import sys
from contextlib import suppress
from typing import Annotated, NoReturn

import typer

from keisei import __version__
from keisei.commands.annotate import annotate
from keisei.commands.bench import bench
from keisei.commands.benchmark import benchmark_app
from keisei.commands.control import control
from keisei.commands.convert import convert
from keisei.commands.dashboard import dashboard
from keisei.commands.describe import describe
from keisei.commands.doctor import doctor
from keisei.commands.evaluate import evaluate
from keisei.commands.export import export
from keisei.commands.ladder import ladder
from keisei.commands.match import match
from keisei.commands.models import models
from keisei.commands.options import TrainCommand
from keisei.commands.perft import perft
from keisei.commands.play import play
from keisei.commands.runs import runs
from keisei.commands.show import show
from keisei.commands.sweep import sweep
from keisei.commands.train import train
from keisei.commands.tsume import tsume
from keisei.commands.usi import usi
from keisei.errors import KeiseiError
from keisei.system import MAX_NAME_SHOWN

USER_ERROR = 2
"""Exit code for errors in the user's input or set-up."""

_NO_MEMORY = "there is not enough memory for this; smaller sizes or fewer games at a time need less"

app = typer.Typer(
    help="Train a Shogi player by self-play, measure it and play against it.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
)
app.command(cls=TrainCommand)(train)
for _command in (
    control, play, usi, models, dashboard, runs, sweep, match, ladder, evaluate, export, describe,
    doctor, perft, bench, show, convert, annotate, tsume,
):  # fmt: skip
    app.command()(_command)
app.add_typer(benchmark_app, name="benchmark")


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
    """Options before the subcommand."""


def main() -> None:
    """Run the command line; user errors end with one red line and exit code 2."""
    multiprocessing.freeze_support()  # a frozen program starts itself for each worker
    _write_utf8()
    try:
        app()
    except KeiseiError as error:
        _exit_with(str(error))
    except OSError as error:
        if error.errno == errno.ENAMETOOLONG:
            _exit_with(f"{str(error.filename)[:MAX_NAME_SHOWN]}...: {error.strerror}")
        # Errors of opening a file have a file name, those of writing to an open stream have none.
        if error.filename is not None or error.errno not in (
            errno.ENOSPC,
            errno.EIO,
            _closed_pipe(),
        ):
            raise
        _discard_output()
        _exit_with(f"cannot write the output: {error.strerror}")
    except (MemoryError, RuntimeError) as error:
        if not _is_out_of_memory(error):
            raise
        _exit_with(_NO_MEMORY)


def _closed_pipe() -> int:
    """Return the error of writing to a program that has ended."""
    return errno.EINVAL if sys.platform == "win32" else errno.EPIPE


def _is_out_of_memory(error: Exception) -> bool:
    """Return whether memory ran out, here or on a device; torch is not imported for that."""
    if isinstance(error, MemoryError):
        return True
    if "torch" not in sys.modules:
        return False
    from keisei.network.towers.compilation import is_out_of_memory

    return is_out_of_memory(error)


def _write_utf8() -> None:
    """Write UTF-8 even if the locale's encoding lacks kanji, as on Windows.

    Bytes of file names that are not valid text are escaped.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(encoding="utf-8", errors="backslashreplace")


def _exit_with(message: str) -> NoReturn:
    from rich.console import Console

    with suppress(OSError):  # the terminal is closed
        Console(stderr=True).print(
            f"error: {message}", style="red", markup=False, highlight=False, soft_wrap=True
        )
    sys.exit(USER_ERROR)


def _discard_output() -> None:
    """Discard buffered output, which Python would try to write again at exit."""
    with suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())

"""``keisei dashboard``: all runs of a directory in the browser, live."""

from pathlib import Path
from typing import Annotated

import typer

from keisei.commands.options import LOOPBACK, Browser, Host, Port, Token
from keisei.run_files import RUNS


def dashboard(
    runs: Annotated[Path, typer.Argument(help="Directory that holds the runs.")] = Path(RUNS),
    store: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE",
            show_default=False,
            help="Results for the ladder page; default: ladder.sqlite3 in the runs directory.",
        ),
    ] = None,
    host: Host = LOOPBACK,
    port: Port = None,
    token: Token = None,
    control: Annotated[
        bool | None,
        typer.Option(
            "--control/--no-control",
            show_default=False,
            help="Buttons that pause, resume and reset runs; default: on loopback addresses only.",
        ),
    ] = None,
    browser: Browser = True,
) -> None:
    """Watch runs in the browser while they train: strength, losses, speed, games, the ladder."""
    from keisei.web import require_installed

    require_installed()

    from keisei.web import serve_dashboard

    serve_dashboard(
        runs,
        store=store,
        host=host,
        port=port,
        token=token,
        control=control,
        open_browser=browser,
    )

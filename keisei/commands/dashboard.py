"""``keisei dashboard``: all runs of a directory in the browser, live."""

from pathlib import Path
from typing import Annotated

import typer

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
    host: Annotated[
        str, typer.Option(help="Address to listen on; addresses other than loopback need a token.")
    ] = "127.0.0.1",
    port: Annotated[
        int | None,
        typer.Option(show_default=False, help="Port; default: the first free one from 8360 on."),
    ] = None,
    token: Annotated[
        str | None,
        typer.Option(
            envvar="KEISEI_TOKEN",
            show_default=False,
            help="Access token for visitors; generated where one is needed.",
        ),
    ] = None,
    control: Annotated[
        bool | None,
        typer.Option(
            "--control/--no-control",
            show_default=False,
            help="Buttons that pause, resume and reset runs; default: on loopback addresses only.",
        ),
    ] = None,
    browser: Annotated[bool, typer.Option(help="Open the page in the browser.")] = True,
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

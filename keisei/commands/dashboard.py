"""``keisei dashboard``: all runs of a folder in the browser, live."""

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
            help="Results that the ladder is made of; ladder.sqlite3 among the runs if not given.",
        ),
    ] = None,
    host: Annotated[
        str, typer.Option(help="What to listen on; others than loopback need a token.")
    ] = "127.0.0.1",
    port: Annotated[
        int | None, typer.Option(show_default=False, help="Where; the first free one from 8360 on.")
    ] = None,
    token: Annotated[
        str | None,
        typer.Option(
            envvar="KEISEI_TOKEN",
            show_default=False,
            help="What visitors must bring; made up where one is needed.",
        ),
    ] = None,
    browser: Annotated[bool, typer.Option(help="Open the page in the browser.")] = True,
) -> None:
    """Watch runs in the browser while they train: strength, losses, speed, games, the ladder."""
    from keisei.web import require_installed

    require_installed()

    from keisei.web import serve_dashboard

    serve_dashboard(runs, store=store, host=host, port=port, token=token, open_browser=browser)

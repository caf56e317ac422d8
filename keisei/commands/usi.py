"""``keisei usi``: a USI engine for Shogi GUIs and match runners."""

from pathlib import Path
from typing import Annotated

import typer


def usi(
    model: Annotated[
        Path,
        typer.Argument(
            help="A run, by path or name, a checkpoint, an exported file, or builtin: the player "
            "in the package."
        ),
    ] = Path("builtin"),
    options: Annotated[
        list[str] | None,
        typer.Option("--set", metavar="NAME=VALUE", help="Default of a USI option; repeatable."),
    ] = None,
    log: Annotated[
        Path | None, typer.Option(help="Write the conversation with the GUI to this file.")
    ] = None,
) -> None:
    """Run a network as a USI engine on standard input and output, for Shogi GUIs."""
    import logging
    import sys
    from contextlib import redirect_stdout

    from keisei.errors import KeiseiError
    from keisei.system import leave
    from keisei.usi.options import Settings

    settings = Settings()
    for text in options or []:
        name, equals, value = text.partition("=")
        if not equals:
            raise KeiseiError(f"--set {text}: expected NAME=VALUE, such as Simulations=64")
        settings = settings.with_option(name.strip(), value.strip())
    if log is not None:
        try:
            logging.basicConfig(
                filename=log,
                encoding="utf-8",
                level=logging.DEBUG,
                format="%(asctime)s.%(msecs)03d %(name)s %(message)s",
                datefmt="%H:%M:%S",
            )
        except OSError as error:
            raise KeiseiError(f"--log: cannot write {log}: {error.strerror}") from None
        for chatty in ("numba", "matplotlib", "torch"):
            logging.getLogger(chatty).setLevel(logging.WARNING)

    from keisei.network.loading import is_builtin, open_network
    from keisei.usi.engine import Engine
    from keisei.usi.usi_io import UsiWriter, read_lines

    stdout = sys.stdout
    with redirect_stdout(sys.stderr):  # prints of libraries must not reach the GUI
        engine = Engine(
            open_network(model),  # before the first command: then GUIs expect quick replies
            UsiWriter(stdout),
            name="" if is_builtin(model) else model.stem,
            settings=settings,
            shutdown_timeout=0.0,
        )
        engine.run(read_lines(sys.stdin.fileno()))
    leave(0)  # GUIs kill engines that linger

"""``keisei play``: a game against a trained network, in the browser or in the terminal."""

from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from keisei.commands.options import LOOPBACK, Browser, Host, Port, Token
from keisei.commands.show import Style
from keisei.constants import BUILTIN
from keisei.errors import KeiseiError
from keisei.run_files import RUNS

if TYPE_CHECKING:
    from rich.console import Console


class Side(StrEnum):
    """Colour of the human player."""

    BLACK = "black"
    WHITE = "white"


def play(
    model: Annotated[
        str | None,
        typer.Argument(
            help="Opponent: a run, checkpoint, .keisei or .onnx file, builtin, greedy, "
            "usi:COMMAND ... If left out, the player in the package, or whom you choose on the "
            "page.",
        ),
    ] = None,
    terminal: Annotated[
        bool, typer.Option("--terminal", help="Play in the terminal; type moves in USI notation.")
    ] = False,
    color: Annotated[Side, typer.Option(help="Your colour; Black moves first.")] = Side.BLACK,
    against: Annotated[
        list[str] | None,
        typer.Option(
            help="Another player, in the same form as MODEL: watch the two play. Repeatable, to "
            "offer more players on the page; USI engines are started only if named here."
        ),
    ] = None,
    level: Annotated[
        int | None,
        typer.Option(min=1, max=10, help="Strength of a network: 1 for beginners, 10 all it has."),
    ] = None,
    temperature: Annotated[
        float | None,
        typer.Option(
            min=0.0,
            help="0: the network's best moves; 1: varied, weaker play. Default: as in its run.",
        ),
    ] = None,
    style: Annotated[Style, typer.Option(help="Pieces as kanji or as letters.")] = Style.KANJI,
    sfen: Annotated[str, typer.Option(help="Start position.")] = "startpos",
    seed: Annotated[int | None, typer.Option(help="Seed of the players' random choices.")] = None,
    runs: Annotated[Path, typer.Option(help="Directory that holds the runs.")] = Path(RUNS),
    games: Annotated[
        Path | None,
        typer.Option(help="Directory in which your games are kept. Default: with the user's data."),
    ] = None,
    host: Host = LOOPBACK,
    port: Port = None,
    token: Token = None,
    browser: Browser = True,
) -> None:
    """Play against a trained network: on a board in the browser, or in the terminal."""
    from rich.console import Console

    from keisei.levels import DEFAULT_LEVEL
    from keisei.web import is_installed, require_installed

    console = Console()
    if level is not None:
        if temperature is not None:
            raise KeiseiError("a level has its own temperature: give --level or --temperature")
        model = f"{model or BUILTIN}:level={level}"
    if temperature is not None:
        model = f"{model or BUILTIN},temperature={temperature:g}"
    if not terminal and not is_installed():
        if against:
            require_installed()
        console.print(
            "The board in the browser needs: python -m pip install 'keisei\\[web]'\n"
            "Playing in the terminal instead, as with --terminal.",
            style="dim",
        )
        terminal = True
    if terminal:
        opponent = model or f"{BUILTIN}:level={DEFAULT_LEVEL}"
        _play_in_terminal(opponent, color, style, sfen, seed, console)
        return

    from keisei.shogi.types import Color
    from keisei.system import require_possible
    from keisei.web import PlaySettings, serve_play

    for directory in (runs, games):
        if directory is not None:
            require_possible(directory)
    serve_play(
        PlaySettings(
            model=model,
            others=tuple(against or ()),
            watch=bool(against) and model is not None,
            color=Color.BLACK if color is Side.BLACK else Color.WHITE,
            lettering=style.value,
            start=sfen,
            runs=runs,
            seed=seed,
            games=games,
        ),
        host=host,
        port=port,
        token=token,
        open_browser=browser,
        console=console,
    )


def _play_in_terminal(
    model: str, color: Side, style: Style, sfen: str, seed: int | None, console: "Console"
) -> None:
    from keisei.commands.tables import progress_bar

    with progress_bar() as progress:
        progress.add_task("loading", total=None)

        from contextlib import closing

        from keisei.play.opponent import Opponent
        from keisei.play.terminal import TerminalGame
        from keisei.shogi.game import ShogiGame
        from keisei.shogi.types import Color

        start = ShogiGame(sfen)
        opponent = Opponent.from_spec(model, seed=seed)
        game = TerminalGame(
            opponent,
            console,
            color=Color.BLACK if color is Side.BLACK else Color.WHITE,
            lettering=style.value,
            game=start,
        )
    with closing(opponent):
        game.play(input)

"""``keisei play``: a game against a trained network."""

from enum import StrEnum
from pathlib import Path
from typing import Annotated

import typer

from keisei.commands.show import Style


class Side(StrEnum):
    """Which colour the person plays."""

    BLACK = "black"
    WHITE = "white"


def play(
    network: Annotated[
        Path, typer.Argument(help="A run, by path or name, a checkpoint, or .onnx.")
    ],
    color: Annotated[Side, typer.Option(help="Your colour; Black moves first.")] = Side.BLACK,
    temperature: Annotated[
        float, typer.Option(min=0.0, help="0: the network's best moves; 1: varied, weaker play.")
    ] = 0.0,
    style: Annotated[Style, typer.Option(help="Pieces as kanji or as letters.")] = Style.KANJI,
    sfen: Annotated[str, typer.Option(help="Where to start from.")] = "startpos",
    seed: Annotated[int | None, typer.Option(help="Seed of the network's chance.")] = None,
) -> None:
    """Play against a trained network in the terminal; moves are typed as in USI."""
    from rich.console import Console

    from keisei.commands.progress import progress_bar

    with progress_bar() as progress:
        progress.add_task("loading", total=None)

        from keisei.evaluation.judges import load_judge
        from keisei.play.opponent import NetworkOpponent
        from keisei.play.terminal import TerminalGame
        from keisei.shogi.game import ShogiGame
        from keisei.shogi.pieces import Color

        opponent = NetworkOpponent(load_judge(network))
        game = TerminalGame(
            opponent,
            Console(),
            color=Color.BLACK if color is Side.BLACK else Color.WHITE,
            temperature=temperature,
            seed=seed,
            lettering=style.value,
            game=ShogiGame(sfen),
        )
    game.play(input)

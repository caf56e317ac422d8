"""``keisei convert``: a game record from one format into another."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from keisei.commands.options import AsJson

if TYPE_CHECKING:
    from keisei.shogi.notation.files import Loss


def convert(
    source: Annotated[
        Path, typer.Argument(help="Game file: .csa .kif .kifu .ki2 .ki2u .sfen .usi")
    ],
    target: Annotated[Path, typer.Argument(help="File to write; its suffix names the format.")],
    encoding: Annotated[
        str | None,
        typer.Option(help="utf-8 or shift_jis; default: as usual for the target's format."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Convert game records between formats; every move is checked by the rules.

    Anything that the target format cannot hold is left out and named.
    """
    from keisei.commands.tables import progress_bar
    from keisei.shogi.notation.files import (
        format_name,
        left_out,
        load_games,
        save_games,
    )

    with progress_bar() as progress:
        progress.add_task("reading", total=None)
        games = load_games(source)
        save_games(games, target, encoding)
    moves = sum(len(game.moves) for game in games)
    losses = left_out(games, target)
    if as_json:
        answer = {
            "games": len(games),
            "moves": moves,
            "target": str(target),
            "left_out": [str(loss) for loss in losses],
        }
        typer.echo(json.dumps(answer))
        return
    number = f"{len(games)} game{'' if len(games) == 1 else 's'}"
    typer.echo(f"{number}, {moves} moves: {source} -> {target}")
    if losses:
        typer.echo(_sentence(losses, format_name(target)))


def _sentence(losses: "list[Loss]", format_name: str) -> str:
    *others, last = (str(loss) for loss in losses)
    subject = f"{', '.join(others)} and {last}" if others else last
    verb = "has" if len(losses) == 1 and losses[0].number == 1 else "have"
    return f"{subject} {verb} no place in {format_name}"

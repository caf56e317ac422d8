"""``keisei convert``: a game record from one format into another."""

import json
from pathlib import Path
from typing import Annotated

import typer


def convert(
    source: Annotated[Path, typer.Argument(help="Game file: .csa .kif .kifu .ki2 .ki2u")],
    target: Annotated[Path, typer.Argument(help="File to write; its suffix names the format.")],
    encoding: Annotated[
        str | None,
        typer.Option(help="utf-8 or shift_jis; by default the custom of the target's format."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for machines.")] = False,
) -> None:
    """Convert game records. Every move is checked by the rules on the way."""
    from keisei.commands.progress import progress_bar
    from keisei.shogi.notation.files import load_games, save_games

    with progress_bar() as progress:
        progress.add_task(f"reading {source}", total=None)
        games = load_games(source)
        save_games(games, target, encoding)
    moves = sum(len(game.moves) for game in games)
    if as_json:
        typer.echo(json.dumps({"games": len(games), "moves": moves, "target": str(target)}))
    else:
        number = f"{len(games)} game{'' if len(games) == 1 else 's'}"
        typer.echo(f"{number}, {moves} moves: {source} -> {target}")

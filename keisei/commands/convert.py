"""``keisei convert``: game records in another format, or as pictures."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from keisei.commands.options import AsJson

if TYPE_CHECKING:
    from keisei.shogi.notation.files import Loss


def convert(
    source: Annotated[
        Path, typer.Argument(help="Game file: .csa .kif .kifu .ki2 .ki2u .sfen .usi .psn .txt")
    ],
    target: Annotated[
        Path,
        typer.Argument(
            help="File to write; its suffix names the format. Of a position: .png .svg; "
            "of the whole game, animated: .gif .apng"
        ),
    ],
    encoding: Annotated[
        str | None,
        typer.Option(help="utf-8 or shift_jis; default: as usual for the target's format."),
    ] = None,
    ply: Annotated[
        int | None,
        typer.Option(help=".png .svg: moves played in the position; default: all.", min=0),
    ] = None,
    seconds: Annotated[
        float, typer.Option(help=".gif .apng: how long each position is shown.")
    ] = 1.0,
    size: Annotated[int, typer.Option(help="Pictures: height in pixels.")] = 480,
    labels: Annotated[
        Literal["japanese", "western", "letters"],
        typer.Option(help="Pictures: kanji on pieces and ranks, or on pieces only, or letters."),
    ] = "japanese",
    flip: Annotated[bool, typer.Option("--flip", help="Pictures: White at the bottom.")] = False,
    as_json: AsJson = False,
) -> None:
    """Convert game records between formats, or to pictures; moves are checked by the rules.

    Anything that the target format cannot hold is left out and named.
    """
    from keisei.commands.tables import progress_bar
    from keisei.errors import KeiseiError
    from keisei.shogi.notation.files import format_name, left_out, load_games, save_games
    from keisei.shogi.render.animation import (
        ANIMATION_SUFFIXES,
        animation_bytes,
        is_picture,
        picture_bytes,
    )
    from keisei.system import write_atomically

    with progress_bar() as progress:
        progress.add_task("converting", total=None)
        games = load_games(source)
        if is_picture(target):
            if len(games) > 1:
                raise KeiseiError(f"{source} holds {len(games)} games; a picture shows one")
            suffix, game, losses = target.suffix.lower(), games[0], []
            if suffix not in ANIMATION_SUFFIXES:
                picture = picture_bytes(
                    game, suffix[1:], ply=ply, size=size, labels=labels, flip=flip
                )
            elif ply is None:
                picture = animation_bytes(
                    game, suffix[1:], seconds=seconds, size=size, labels=labels, flip=flip
                )
            else:
                raise KeiseiError("--ply is for pictures of one position, .png and .svg")
            write_atomically(target, picture)
        else:
            save_games(games, target, encoding)
            losses = left_out(games, target)
    moves = sum(len(game.moves) for game in games)
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

"""``keisei show``: a position as text or SVG."""

import json
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from keisei.commands.options import AsJson

if TYPE_CHECKING:
    from keisei.shogi.game import ShogiGame


class Style(StrEnum):
    """Labels of the pieces."""

    KANJI = "kanji"
    LETTERS = "letters"


def show(
    sfen: Annotated[
        list[str] | None,
        typer.Argument(help="SFEN or USI position, moves allowed; the start position if left out."),
    ] = None,
    style: Annotated[Style, typer.Option(help="Pieces as kanji or as letters.")] = Style.KANJI,
    svg: Annotated[
        Path | None,
        typer.Option(readable=False, help="Also write the position as SVG to this file."),
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Show a position: board, hands, side to move, check, legal moves, outcome."""
    from keisei.commands.tables import progress_bar
    from keisei.shogi.game import ShogiGame
    from keisei.shogi.render.svg import board_svg
    from keisei.shogi.render.text import board_text
    from keisei.system import write_atomically

    with progress_bar() as progress:
        progress.add_task("compiling", total=None)
        game = ShogiGame(" ".join(sfen or ["startpos"]))
        facts = _facts(game)
    if svg is not None:
        picture = board_svg(
            game.diagram,
            last_move=game.last_move,
            labels="japanese" if style is Style.KANJI else "letters",
            check_square=game.checked_king,
        )
        write_atomically(svg, picture.encode())
    if as_json:
        typer.echo(json.dumps(facts))
        return
    typer.echo(board_text(game.diagram, style=style.value, last_move=game.last_move))
    typer.echo(_summary(facts))


def _facts(game: "ShogiGame") -> dict[str, object]:
    outcome = game.outcome()
    winner = outcome.winner if outcome else None
    return {
        "sfen": game.sfen(),
        "turn": game.turn.name.lower(),
        "in_check": game.in_check,
        "can_declare": game.can_declare,
        "legal_moves": [move.usi for move in game.legal_moves],
        "termination": outcome.termination.name.lower() if outcome else None,
        "winner": None if winner is None else winner.name.lower(),
    }


def _summary(facts: dict[str, object]) -> str:
    moves = facts["legal_moves"]
    assert isinstance(moves, list)
    parts = [f"{len(moves)} legal move{'' if len(moves) == 1 else 's'}"]
    if facts["in_check"]:
        parts.append("check")
    if facts["can_declare"]:
        parts.append("a win may be declared")
    if facts["termination"]:
        ending = str(facts["termination"]).replace("_", " ")
        winner = facts["winner"]
        parts.append(f"{ending}: draw" if winner is None else f"{ending}: {winner} wins")
    return f"{', '.join(parts)}\n{facts['sfen']}"

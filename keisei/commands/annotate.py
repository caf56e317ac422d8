"""``keisei annotate``: a game analysed by a network."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from keisei.commands.options import AsJson, Device, Threads

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from keisei.analysis import GameAnalysis

MAX_TURNING_POINTS: Final = 8
"""Maximum number of moves listed."""

MIN_LOSS: Final = 0.05
"""Minimum loss of winning chances for a move to be listed."""


def annotate(
    game: Annotated[
        Path, typer.Argument(help="Game file: .kif .kifu .csa .ki2 .ki2u, or .sfen .usi .psn .txt")
    ],
    model: Annotated[
        Path,
        typer.Option(
            metavar="MODEL", help="A run, by path or name, a checkpoint, or an exported file."
        ),
    ],
    simulations: Annotated[
        int,
        typer.Option(
            min=0, help="Simulations of a tree search at each position; 0: the network alone."
        ),
    ] = 0,
    output: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Write the game with comments to FILE: .kif .kifu .csa ..."
        ),
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Plot the winning chances to FILE: .png or .svg"),
    ] = None,
    blunder: Annotated[
        float,
        typer.Option(
            min=1.0, max=100.0, help="Loss of winning chances, in %, that counts as a blunder."
        ),
    ] = 20.0,
    device: Device = "auto",
    threads: Threads = 0,
    as_json: AsJson = False,
) -> None:
    """Analyse every position of a game: winning chances, best moves, blunders."""
    from keisei.commands.tables import progress_bar

    with progress_bar() as progress:
        progress.add_task("analysing", total=None)

        from keisei.analysis import analyze_game, annotated
        from keisei.errors import KeiseiError
        from keisei.network.loading import load_network
        from keisei.shogi.notation.files import format_name, load_games, save_game
        from keisei.system import write_atomically

        if output is not None:
            format_name(output)  # refuses other suffixes before the analysis starts
        draw = None if plot is None else _picture_writer(plot)
        records = load_games(game)
        if len(records) > 1:
            raise KeiseiError(f"{game} holds {len(records)} games; only one can be annotated")
        network = load_network(model, device=device, threads=threads)
        analysis = analyze_game(
            records[0],
            network.predictor,
            name=network.name,
            simulations=simulations,
            ply_limit=network.ply_limit,
        )
        if output is not None:
            save_game(annotated(analysis, blunder=blunder / 100), output)
        if plot is not None and draw is not None:
            from keisei.analysis.game_plot import draw_game

            write_atomically(plot, draw(draw_game(analysis, blunder=blunder / 100)))
    if as_json:
        typer.echo(json.dumps(_facts(analysis, blunder / 100), indent=2))
    else:
        _print(analysis, blunder / 100, [path for path in (output, plot) if path is not None])


def _picture_writer(path: Path) -> "Callable[[Figure], bytes]":
    from keisei import plotting
    from keisei.errors import KeiseiError

    writers = {".png": plotting.png, ".svg": plotting.svg}
    if path.suffix.lower() not in writers:
        raise KeiseiError(f"{path}: a plot ends in .png or .svg, not in {path.suffix!r}")
    return writers[path.suffix.lower()]


def _facts(analysis: "GameAnalysis", blunder: float) -> dict[str, object]:
    from keisei.shogi.types import Color

    return {
        "network": analysis.network,
        "simulations": analysis.simulations,
        "black": analysis.record.black,
        "white": analysis.record.white,
        "start": {"black_chances": analysis.positions[0].chances(Color.BLACK)},
        "moves": [
            {
                "ply": move.ply,
                "color": move.color.name.lower(),
                "move": move.move.usi,
                "best": move.best.move.usi,
                "best_line": [best.usi for best in move.before.best_line],
                "loss": move.loss,
                "is_blunder": move.loss >= blunder,
                "black_chances": move.after.chances(Color.BLACK),
            }
            for move in analysis.moves
        ],
    }


def _print(analysis: "GameAnalysis", blunder: float, written: list[Path]) -> None:
    from rich.console import Console
    from rich.text import Text

    from keisei.analysis.annotation import candidate_text, percent
    from keisei.formats import new_table
    from keisei.shogi.types import Color

    console = Console()
    turning_points = analysis.turning_points(MAX_TURNING_POINTS, min_loss=min(MIN_LOSS, blunder))
    table = new_table("turning points")
    for heading, justify in (
        ("", "right"), ("", "left"), ("played", "left"), ("chances", "right"), ("best", "left"),
        ("", "left"),
    ):  # fmt: skip
        table.add_column(heading, justify=justify)  # type: ignore[arg-type]
    for move in turning_points:
        before, after = (
            percent(position.chances(move.color)) for position in (move.before, move.after)
        )
        table.add_row(
            str(move.ply),
            move.color.name.title(),
            move.move.usi,
            f"{before} -> {after}",
            candidate_text(move.best, analysis.simulations),
            Text("blunder", style="red") if move.loss >= blunder else "",
        )
    if turning_points:
        console.print(table)
    for color in Color:
        moves = [move for move in analysis.moves if move.color is color]
        if not moves:
            continue
        name = (analysis.record.black, analysis.record.white)[color]
        blunders = sum(move.loss >= blunder for move in moves)
        agreed = sum(move.is_best for move in moves)
        loss = sum(move.loss for move in moves) / len(moves)
        console.print(
            Text(
                f"{color.name.title()}{f' ({name})' if name else ''}: {len(moves)} moves, "
                f"{agreed} as {analysis.network} would play, {100 * loss:.1f} % lost by a move on "
                f"average, {blunders} blunder{'' if blunders == 1 else 's'}"
            )
        )
    for path in written:
        console.print(Text(f"written: {path}"))

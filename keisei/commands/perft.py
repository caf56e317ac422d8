"""``keisei perft``: count the positions that legal moves lead to."""

import json
import time
from typing import Annotated

import typer


def perft(
    depth: Annotated[int, typer.Option(min=0, max=20, help="How many plies deep to count.")] = 4,
    sfen: Annotated[str, typer.Option(help="Where to start, as SFEN.")] = "startpos",
    divide: Annotated[bool, typer.Option("--divide", help="Show the count of each move.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print JSON for machines.")] = False,
) -> None:
    """Count the leaves of the tree of legal moves, the classic test of a move generator."""
    from keisei.commands.progress import progress_bar
    from keisei.shogi.game import ShogiGame
    from keisei.shogi.perft import perft as count_leaves

    game = ShogiGame(sfen)
    with progress_bar() as progress:
        task = progress.add_task("compiling", total=None)
        count_leaves(game.position, 1)
        progress.update(task, description=f"perft {depth}", total=len(game.legal_moves))
        start = time.perf_counter()
        counts = {}
        # One move at a time, so that progress is seen and Ctrl-C is heard.
        for move in game.legal_moves if depth > 0 else []:
            game.push(move)
            counts[move.usi] = count_leaves(game.position, depth - 1)
            game.pop()
            progress.advance(task)
        seconds = time.perf_counter() - start
    nodes = sum(counts.values()) if depth > 0 else 1
    if as_json:
        result = {"nodes": nodes, "seconds": seconds}
        typer.echo(json.dumps({**result, "moves": counts} if divide else result))
        return
    if divide:
        for usi, count in counts.items():
            typer.echo(f"{usi}: {count}")
    typer.echo(nodes)
    if seconds > 0 and nodes > 1:
        typer.echo(f"{seconds:.2f} s, {nodes / seconds / 1e6:.1f} M nodes/s", err=True)

"""``keisei perft``: count the leaves of the move tree."""

import json
import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Annotated

import typer

from keisei.commands.options import AsJson

if TYPE_CHECKING:
    from keisei.shogi.position import Record

LEAVES_PER_CALL = 20_000_000
"""Approximate maximum that one kernel call counts, which takes a fraction of a second."""

ESTIMATED_DEPTH = 4
"""Depth whose leaves are estimated: two plies give the number of moves of each side."""


def perft(
    depth: Annotated[int, typer.Option(min=0, max=20, help="Depth in plies.")] = 4,
    sfen: Annotated[str, typer.Option(help="Start position, as SFEN.")] = "startpos",
    divide: Annotated[
        bool, typer.Option("--divide", help="Show the count of each root move.")
    ] = False,
    as_json: AsJson = False,
) -> None:
    """Count the leaves of the tree of legal moves: the classic test of a move generator."""
    from keisei.commands.tables import progress_bar
    from keisei.shogi.game import ShogiGame
    from keisei.shogi.perft import perft as count_leaves

    game = ShogiGame(sfen)
    with progress_bar() as progress:
        task = progress.add_task("compiling", total=None)
        count_leaves(game.position, 1)
        progress.update(task, description=f"perft {depth}", total=len(game.legal_moves))
        start = time.perf_counter()
        counts = {}
        for move in game.legal_moves if depth > 0 else []:
            game.push(move)
            counts[move.usi] = _count_in_steps(
                game.position, depth - 1, lambda share: progress.advance(task, share)
            )
            game.pop()
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


def _count_in_steps(position: "Record", depth: int, advance: Callable[[float], object]) -> int:
    """Count in short kernel calls, between which Ctrl-C and progress are handled.

    `advance` is called after each with its share of the whole.
    """
    import numpy as np

    from keisei.constants import MOVE_BUFFER
    from keisei.shogi.movegen import legal_moves
    from keisei.shogi.perft import perft as count_leaves
    from keisei.shogi.position import play, undo

    def count(depth: int, share: float) -> int:
        if depth < ESTIMATED_DEPTH or (
            depth == ESTIMATED_DEPTH and count_leaves(position, 2) ** 2 <= LEAVES_PER_CALL
        ):
            leaves = count_leaves(position, depth)
            advance(share)
            return leaves
        moves = np.empty(MOVE_BUFFER, dtype=np.uint16)
        number, _ = legal_moves(position, moves)
        leaves = 0
        for move in moves[:number].tolist():
            captured = play(position, move)
            leaves += count(depth - 1, share / number)
            undo(position, move, captured)
        return leaves

    return count(depth, 1.0)

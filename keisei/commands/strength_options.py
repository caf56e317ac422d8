"""The options that the commands about strength share."""

from pathlib import Path
from typing import Annotated, Final

import typer

from keisei.constants import MAX_PLY_LIMIT
from keisei.run_files import LADDER

MAX_SEED: Final = 1 << 53
"""So large that it still is the same number in everybody's JSON."""

DEFAULT_STORE: Final = Path(LADDER)

PLAYER_HELP: Final = (
    "random, greedy, alphabeta:DEPTH, a run, checkpoint or ONNX file, RUN:search=N, or usi:COMMAND."
)

Games = Annotated[int, typer.Option(min=1, help="Games of each two players.")]
OpeningPlies = Annotated[
    int, typer.Option(min=0, max=MAX_PLY_LIMIT, help="Random plies at the start of each game.")
]
PlyLimit = Annotated[
    int, typer.Option(min=1, max=MAX_PLY_LIMIT, help="Ply at which a game is a draw.")
]
Seed = Annotated[
    int, typer.Option(min=0, max=MAX_SEED, help="First seed; those of stored games are skipped.")
]
Store = Annotated[Path, typer.Option(metavar="FILE", help="Where results are kept.")]
Device = Annotated[str, typer.Option(help="Where networks compute: auto, cpu, cuda, cuda:1, mps.")]
Threads = Annotated[
    int, typer.Option(min=0, help="Of networks, searches and engines; 0: one for each core.")
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON for machines.")]

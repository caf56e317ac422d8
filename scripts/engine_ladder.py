"""Place a network among real Shogi engines, at several strengths of each.

    python scripts/engine_ladder.py RUN [--games N] [--search N] [--store FILE] [--plot FILE.png]

Plays with whichever of these are installed (Debian: ``apt install fairy-stockfish gnushogi
gpsshogi``), between the bots of Keisei, which need nothing; results are kept, so that a second
call only plays what is missing. Neighbours play each other, the network plays everybody.
"""

import shutil
import sys
from pathlib import Path
from typing import Annotated, Final

import typer

from keisei.commands.progress import progress_bar
from keisei.commands.strength_tables import print_ladder, show_progress
from keisei.errors import KeiseiError
from keisei.evaluation.ladder import play_missing, read_ladder
from keisei.evaluation.match import MatchSettings
from keisei.evaluation.player import Player
from keisei.evaluation.players import open_players
from keisei.evaluation.results import Conditions, ResultStore
from keisei.evaluation.strength_plots import draw_ladder
from keisei.files import write_atomically
from keisei.plotting import png
from keisei.run_files import LADDER

DEBIANS_GAMES: Final = Path("/usr/games")
"""Where Debian puts them; not on everybody's PATH."""

BRIDGE: Final = Path(__file__).with_name("gnushogi_usi.py")
NEIGHBOURS: Final = 2
"""How many rungs up each player meets: games between the very unequal tell little."""

RUNGS: Final = (
    ("", "random"),
    ("", "greedy,random=0.5"),
    ("fairy-stockfish", "Skill Level=-20,depth=1"),
    ("", "greedy"),
    ("fairy-stockfish", "Skill Level=-5,depth=1"),
    ("", "alphabeta:2"),
    ("fairy-stockfish", "Skill Level=0,depth=1"),
    ("fairy-stockfish", "Skill Level=5,depth=1"),
    ("fairy-stockfish", "depth=1"),
    ("gnushogi", "depth=1"),
    ("fairy-stockfish", "depth=3"),
    ("fairy-stockfish", "nodes=1000"),
    ("fairy-stockfish", "nodes=10000"),
    ("gpsusi", "LimitDepth=4,BookDepth=0,Thread=1,byoyomi=10000"),
)
"""Program and settings, the weakest first; without a program it is a bot of Keisei."""


def find_program(name: str) -> str | None:
    """Where an engine is; None if it is not installed."""
    return shutil.which(name) or shutil.which(name, path=str(DEBIANS_GAMES))


def player_words() -> tuple[list[str], list[str]]:
    """(words of the rungs that are there, names of the programs that are not)."""
    words, missing = [], []
    for program, settings in RUNGS:
        if not program:
            words.append(settings)
        elif (found := find_program(program)) is None:
            missing.append(program)
        else:
            words.append(f"usi:{_command(program, found)},{settings}")
    return words, list(dict.fromkeys(missing))


def _command(program: str, found: str) -> str:
    if program == "gnushogi":
        return f'"{sys.executable}" "{BRIDGE}" "{found}"'
    if program == "gpsusi":
        return f'"{found}" -N 1 --memory-use-percent 10'
    return f'"{found}"'


def pairs_of(network: Player, rungs: list[Player]) -> list[tuple[Player, Player]]:
    """Who meets whom."""
    neighbours = [
        (rung, other)
        for place, rung in enumerate(rungs)
        for other in rungs[place + 1 : place + 1 + NEIGHBOURS]
    ]
    return [*neighbours, *((network, rung) for rung in rungs)]


def engine_ladder(
    run: Annotated[str, typer.Argument(help="A run or checkpoint.")],
    games: Annotated[int, typer.Option(min=2, help="Games of each two players.")] = 20,
    search: Annotated[int, typer.Option(min=0, help="Simulations a move; 0: policy only.")] = 0,
    store: Annotated[Path, typer.Option(help="Where results are kept.")] = Path(LADDER),
    plot: Annotated[Path | None, typer.Option(help="Draw the ladder, as PNG.")] = None,
) -> None:
    """Place a network among the Shogi engines that are installed."""
    words, missing = player_words()
    for program in missing:
        typer.echo(f"{program} is not installed: its rungs are left out", err=True)
    settings = MatchSettings(games=games)
    word = f"{run}:search={search}" if search else run
    with (
        ResultStore(store, create=True) as results,
        open_players([word, *words]) as (network, *rungs),
        progress_bar() as bar,
    ):
        task = bar.add_task("playing", total=None)
        play_missing(
            results,
            pairs_of(network, rungs),
            settings,
            on_games=lambda now: show_progress(bar, task, now),
        )
        shown = [network.identity, *(rung.identity for rung in rungs)]
        ladder = read_ladder(results, Conditions.of(settings), shown)
    print_ladder(ladder)
    if plot is not None:
        write_atomically(plot, png(draw_ladder(ladder)))


if __name__ == "__main__":
    try:
        typer.run(engine_ladder)
    except KeiseiError as error:
        sys.exit(f"error: {error}")

"""Place players among real Shogi engines, at several strengths of each.

    python scripts/engine_ladder.py PLAYER... [--games N] [--store FILE] [--plot FILE.png]

Plays with whichever of these are installed (Debian: ``apt install fairy-stockfish gnushogi
gpsshogi``), between the bots of Keisei, which need nothing. Neighbours play each other, and the
players climb from the weakest rung upwards. Each two play a few games at first, and more only where
the result is open. Results are kept: a second call only plays what is missing.

An engine that breaks down is named and left out; the others play on.
"""

import shutil
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Final, NamedTuple

import typer

from keisei.commands.tables import print_ladder, progress_bar, show_progress
from keisei.errors import KeiseiError
from keisei.evaluation.ladder import (
    LadderProgress,
    Pair,
    play_missing,
    read_ladder,
)
from keisei.evaluation.match import MatchSettings
from keisei.evaluation.ratings import connected, rate
from keisei.evaluation.results import Conditions, ResultStore
from keisei.evaluation.score import elo_difference
from keisei.evaluation.strength_plots import draw_ladder
from keisei.players.player import Player
from keisei.players.spec import make_player, open_players
from keisei.plotting import png
from keisei.run_files import LADDER
from keisei.system import write_atomically
from keisei.usi.client import UsiEngineError

DEBIANS_GAMES: Final = Path("/usr/games")
"""Where Debian puts them; not on everybody's PATH."""

BRIDGE: Final = Path(__file__).with_name("gnushogi_usi.py")
NEIGHBOURS: Final = 2
"""How many rungs up each player meets: games between the very unequal tell little."""

SOUNDING_GAMES: Final = 6
"""Games of each two before it is clear whether more are worth playing."""

CLEAR_SCORE: Final = 0.97
"""What a player must be expected to score for no more games to be played."""

MORE_GAMES_OF_BOTS: Final = 10
"""How many times as many games the bots play among each other: those take no time."""

NODES: Final = 1_000_000
"""Ends what a limit by depth alone does not: captures and checks that follow each other without
end where both hands are full. Fairy-Stockfish 11.1 was seen to think for a minute at depth 1. It is
not exact: told 1,000, the engine was seen to look at 5,183. What goes on nevertheless is ended by
the time that every engine has for a move, and that game is lost."""


class Rung(NamedTuple):
    """Somebody to measure by."""

    name: str
    """In tables; of a bot also the spec."""

    program: str = ""
    """Of an engine; a bot has none."""

    settings: str = ""


def _stockfish(limit: str, *options: str) -> Rung:
    bounded = limit if limit.startswith("nodes=") else f"{limit},nodes={NODES}"
    return Rung(
        " ".join(("Fairy-Stockfish", *options, limit)).replace("=", " "),
        "fairy-stockfish",
        ",".join((*options, bounded)),
    )


RUNGS: Final = (
    Rung("random"),
    Rung("greedy,random=0.8"),
    Rung("greedy,random=0.5"),
    _stockfish("depth=1", "Skill Level=-20"),
    Rung("greedy,random=0.25"),
    Rung("greedy"),
    Rung("alphabeta:2,random=0.5"),
    Rung("alphabeta:2,random=0.25"),
    Rung("alphabeta:2"),
    _stockfish("depth=1", "Skill Level=-3"),
    _stockfish("depth=1", "Skill Level=-2"),
    _stockfish("depth=1", "Skill Level=0"),
    _stockfish("depth=1", "Skill Level=5"),
    _stockfish("depth=1"),
    _stockfish("depth=2"),
    Rung("GNU Shogi depth 1", "gnushogi", "depth=1"),
    _stockfish("depth=3"),
    _stockfish("depth=4"),
    _stockfish("nodes=1000"),
    _stockfish("nodes=3000"),
    _stockfish("depth=6"),
    _stockfish("nodes=10000"),
    _stockfish("nodes=30000"),
    Rung("gpsusi depth 4", "gpsusi", "LimitDepth=4,BookDepth=0,Thread=1,byoyomi=10000"),
)
"""The weakest first. The careless bots are there as links between those who are far apart."""

BOTS: Final = frozenset(rung.name for rung in RUNGS if not rung.program)


def find_program(name: str) -> str | None:
    """Where an engine is; None if it is not installed."""
    return shutil.which(name) or shutil.which(name, path=str(DEBIANS_GAMES))


def spec_of(rung: Rung) -> str | None:
    """The spec of a rung's player; None if its program is not installed."""
    if not rung.program:
        return rung.name
    found = find_program(rung.program)
    return found and f"usi:{_command(rung.program, found)},name={rung.name},{rung.settings}"


def _command(program: str, found: str) -> str:
    if program == "gnushogi":
        return f'"{sys.executable}" "{BRIDGE}" "{found}"'
    if program == "gpsusi":
        return f'"{found}" -N 1 --memory-use-percent 10'
    return f'"{found}"'


def open_rungs(stack: ExitStack, processes: int = 0) -> list[Player]:
    """The players of all rungs that are there and work; what is not is named.

    Engines get so many processes each, or one for each core.
    """
    players = []
    for rung in RUNGS:
        if (spec := spec_of(rung)) is None:
            typer.echo(f"left out: {rung.name}, {rung.program} is not installed", err=True)
            continue
        try:
            players.append(stack.enter_context(closing(make_player(spec, threads=processes))))
        except UsiEngineError as error:
            typer.echo(f"left out: {rung.name}, {error}", err=True)
    return players


def pairs_of(players: Sequence[Player], rungs: Sequence[Player]) -> list[Pair]:
    """Who may meet whom: neighbours, then each player those before it and the rungs, weakest first.

    Once a player is rated by those before it, the rungs far below are none to play with.
    """
    neighbours = [
        (rung, other)
        for place, rung in enumerate(rungs)
        for other in rungs[place + 1 : place + 1 + NEIGHBOURS]
    ]
    climbs = [
        (player, other)
        for place, player in enumerate(players)
        for other in (*players[:place], *rungs)
    ]
    return [(one, other) for one, other in (*neighbours, *climbs) if one.identity != other.identity]


def is_open(store: ResultStore, pair: Pair, conditions: Conditions) -> bool:
    """Whether games of two are worth playing: not where one is known to win nearly all.

    Those who have not met yet are only kept apart where the ratings are rather sure of it.
    """
    one, other = (player.identity for player in pair)
    results = store.results(conditions)
    if other not in (reached := connected(results, one)):
        return True
    ratings = rate((result for result in results if result.black in reached), anchor=one)
    difference, deviation = ratings.difference(one, other)
    doubt = 0.0 if store.games_between(*pair, conditions) else deviation
    return abs(difference) - doubt < elo_difference(CLEAR_SCORE)


def play_open(
    store: ResultStore,
    pairs: Sequence[Pair],
    settings: MatchSettings,
    *,
    on_games: Callable[[LadderProgress], None],
) -> None:
    """A few games of each two, then all where the result is open. A breakdown ends only its pair.

    Who has not met anybody yet meets the first of its pairs in any case.
    """
    conditions = Conditions.of(settings)
    broken: set[Pair] = set()
    for most in (min(SOUNDING_GAMES, settings.games), settings.games):
        for pair in pairs:
            if pair in broken or not is_open(store, pair, conditions):
                continue
            are_bots = all(player.name in BOTS for player in pair)
            games = most * MORE_GAMES_OF_BOTS if are_bots else most
            try:
                play_missing(store, [pair], replace(settings, games=games), on_games=on_games)
            except UsiEngineError as error:
                broken.add(pair)
                one, other = pair
                typer.echo(f"broken off: {one.name} against {other.name}, {error}", err=True)


def engine_ladder(
    players: Annotated[
        list[str], typer.Argument(help="Runs or checkpoints, with :search=N or without.")
    ],
    games: Annotated[int, typer.Option(min=2, help="Games of each two players.")] = 24,
    store: Annotated[Path, typer.Option(help="Where results are kept.")] = Path(LADDER),
    processes: Annotated[
        int, typer.Option(min=0, help="Of each engine, side by side; 0: one for each core.")
    ] = 0,
    plot: Annotated[Path | None, typer.Option(help="Draw the ladder, as PNG.")] = None,
) -> None:
    """Place players among the Shogi engines that are installed."""
    settings = MatchSettings(games=games)
    with ResultStore(store, create=True) as results, ExitStack() as stack:
        placed = stack.enter_context(open_players(players))
        rungs = open_rungs(stack, processes)
        with progress_bar() as bar:
            task = bar.add_task("playing", total=None)
            try:
                play_open(
                    results,
                    pairs_of(placed, rungs),
                    settings,
                    on_games=lambda now: show_progress(bar, task, now),
                )
            except KeyboardInterrupt:
                typer.echo("interrupted; this is what was played:", err=True)
        conditions = Conditions.of(settings)
        shown = {player.identity for player in (*rungs, *placed)}
        met = [player.identity for player in results.players(conditions)]
        ladder = read_ladder(results, conditions, [who for who in met if who in shown])
    print_ladder(ladder)
    if plot is not None:
        write_atomically(plot, png(draw_ladder(ladder)))


if __name__ == "__main__":
    try:
        typer.run(engine_ladder)
    except KeiseiError as error:
        sys.exit(f"error: {error}")

"""Place players among real Shogi engines, at several strengths of each.

    python scripts/engine_ladder.py PLAYER... [--games N] [--store FILE] [--plot FILE.png]

The ladder consists of the engines that are installed (Debian: ``apt install fairy-stockfish
gnushogi gpsshogi``) and of Keisei's bots, which are always there. Neighbours play each other, and
the given players climb from the weakest rung upwards. Each pair plays a few games first, and more
only if the result is open. Results are stored: a second call only plays missing games.

An engine that fails is named and left out; the others continue.
"""

import shutil
import sys
from collections.abc import Callable, Sequence
from contextlib import ExitStack, closing
from dataclasses import replace
from pathlib import Path
from typing import Annotated, Final, NamedTuple

import typer

from keisei.commands.tables import print_ladder, progress_bar, show_ladder_progress
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

DEBIAN_GAMES: Final = Path("/usr/games")
"""Directory of Debian's packages, which may not be on the PATH."""

BRIDGE: Final = Path(__file__).with_name("gnushogi_usi.py")
NEIGHBOURS: Final = 2
"""Number of rungs above that each rung plays: games between very unequal players tell little."""

PROBE_GAMES: Final = 6
"""Games per pair before it is decided whether more are worth playing."""

CLEAR_SCORE: Final = 0.97
"""Expected score from which on no more games are played."""

BOT_GAMES_FACTOR: Final = 10
"""Factor on the number of games that the bots play among each other: they take no time."""

NODES: Final = 1_000_000
"""Node limit next to a depth limit, which alone does not end long sequences of captures and checks:
Fairy-Stockfish 11.1 was seen to think for a minute at depth 1. The engine does not keep it exactly
(5,183 nodes were seen at a limit of 1,000). If it fails too, the move timeout ends the search, and
the game is lost."""


class Rung(NamedTuple):
    """A bot or engine of the ladder."""

    name: str
    """Name in tables; also the spec of a bot."""

    program: str = ""
    """Program of an engine; empty for a bot."""

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
"""The rungs, the weakest first. Bots with random moves link rungs that are far apart."""

BOTS: Final = frozenset(rung.name for rung in RUNGS if not rung.program)


def find_program(name: str) -> str | None:
    """Return the path of an engine; None if it is not installed."""
    return shutil.which(name) or shutil.which(name, path=str(DEBIAN_GAMES))


def spec_of(rung: Rung) -> str | None:
    """Return the spec of a rung's player; None if its program is not installed."""
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
    """Return the players of all rungs that are installed and work; the others are named.

    Each engine gets `processes` processes; 0: one per core.
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
    """Return the pairs: neighbouring rungs, then each player with earlier players and all rungs.

    Pairs that turn out to be too unequal are skipped later.
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
    """Return whether a pair is worth playing: not if one is known to win nearly all games.

    A pair that has not met is only skipped if the ratings are rather certain.
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
    """Play a few games of each pair, then the rest where the result is open.

    A player without games plays the first of its pairs in any case. A failure ends only its pair.
    """
    conditions = Conditions.of(settings)
    broken: set[Pair] = set()
    for limit in (min(PROBE_GAMES, settings.games), settings.games):
        for pair in pairs:
            if pair in broken or not is_open(store, pair, conditions):
                continue
            are_bots = all(player.name in BOTS for player in pair)
            games = limit * BOT_GAMES_FACTOR if are_bots else limit
            try:
                play_missing(store, [pair], replace(settings, games=games), on_games=on_games)
            except UsiEngineError as error:
                broken.add(pair)
                one, other = pair
                typer.echo(f"aborted: {one.name} against {other.name}, {error}", err=True)


def engine_ladder(
    players: Annotated[
        list[str], typer.Argument(help="Runs or checkpoints, with :search=N or without.")
    ],
    games: Annotated[int, typer.Option(min=2, help="Games per pair of players.")] = 24,
    store: Annotated[Path, typer.Option(help="Result store.")] = Path(LADDER),
    processes: Annotated[
        int, typer.Option(min=0, help="Processes per engine; 0: one per core.")
    ] = 0,
    plot: Annotated[Path | None, typer.Option(help="Plot the ladder, as PNG.")] = None,
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
                    on_games=lambda now: show_ladder_progress(bar, task, now),
                )
            except KeyboardInterrupt:
                typer.echo("interrupted; results so far:", err=True)
        conditions = Conditions.of(settings)
        shown = {player.identity for player in (*rungs, *placed)}
        met = [player.identity for player in results.players(conditions)]
        ladder = read_ladder(
            results, conditions, [identity for identity in met if identity in shown]
        )
    print_ladder(ladder)
    if plot is not None:
        write_atomically(plot, png(draw_ladder(ladder)))


if __name__ == "__main__":
    try:
        typer.run(engine_ladder)
    except KeiseiError as error:
        sys.exit(f"error: {error}")

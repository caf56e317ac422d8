"""Find levels of strength that are evenly spaced, and measure those of the player in the package.

    python scripts/levels.py tune [NETWORK]
    python scripts/levels.py measure

``tune`` has a network play itself at a ladder of settings, from a policy that is nearly flat to
searches, and prints settings for `keisei.levels.LEVELS` that are equally far apart. ``measure``
plays each level of the player in the package against the one below, places it on the rating scale
and writes the ratings to the package, from where the board takes them.
"""

import json
import sys
from contextlib import ExitStack, closing
from itertools import pairwise
from pathlib import Path
from typing import Annotated, Final, NamedTuple

import numpy as np
import typer
from rich.console import Console
from rich.progress import Progress

from keisei.commands.tables import progress_bar
from keisei.constants import BUILTIN
from keisei.errors import KeiseiError
from keisei.evaluation.match import MatchSettings, play_match
from keisei.evaluation.placing import PlacingSettings, place_player
from keisei.evaluation.scale import current_scale
from keisei.evaluation.score import Score, elo_difference
from keisei.formats import new_table
from keisei.levels import LEVELS, MAX_LEVEL, Level
from keisei.network.loading import open_network
from keisei.players.player import Player
from keisei.players.spec import level_player, make_player
from keisei.system import usable_cpus, write_atomically

SPREADS: Final = (0.6, 0.8, 1.0, 1.2, 1.4, 1.7, 2.0, 2.4, 2.9, 3.5, 4.5, 6.0, 9.0, 15.0)
"""Policies of the ladder, from nearly flat to nearly the likeliest move only."""

SEARCHES: Final = (6, 12, 24, 48, 96)
"""Simulations of the searches on top of it."""

WEAKEST: Final = "greedy"
WEAKEST_SCORE: Final = 0.2
"""Score of level 1 against the beginner's bot."""

TOP_MATES: Final = 3
"""Plies of the mates that the strongest policy and the searches play by rule; others overlook them:
a beginner does not expect to be mated in three by a player who loses pieces."""

HALFWAY: Final = 0.5
UNSURE: Final = 2.0
"""Times the wished error that a rating may have to be written."""

GAMES: Final = 400
RATINGS: Final = Path(__file__).parents[1] / "keisei" / "evaluation" / "data" / "levels.json"

app = typer.Typer(add_completion=False)
console = Console()


class Rung(NamedTuple):
    """A setting of the ladder, and its distance to the beginner's bot."""

    level: Level
    elo: float


def ladder_levels() -> list[Level]:
    """Return the settings of the ladder, the weakest first."""
    policies = [Level(0, spread, 0) for spread in SPREADS]
    return [
        *policies,
        Level(0, SPREADS[-1], TOP_MATES),
        *(Level(n, 0.0, TOP_MATES) for n in SEARCHES),
    ]


def evenly_spaced(rungs: list[Rung], start: float, number: int, step: float) -> list[Level]:
    """Return settings that are `step` points apart, from `start` on, interpolated between rungs.

    Policies are interpolated by the logarithm of their spread, searches by that of their
    simulations; between the two kinds, and where mates begin, the nearer rung is taken.
    """
    found = []
    for place in range(number):
        elo = start + place * step
        above = next((i for i, rung in enumerate(rungs) if rung.elo >= elo), len(rungs) - 1)
        low, high = rungs[max(above - 1, 0)], rungs[above]
        share = np.clip((elo - low.elo) / max(high.elo - low.elo, 1.0), 0.0, 1.0)
        is_search = high.level.simulations > 0
        if (
            is_search != (low.level.simulations > 0)
            or low.level.mate_plies != high.level.mate_plies
        ):
            found.append(high.level if share >= HALFWAY else low.level)
        elif is_search:
            ends = np.log([low.level.simulations, high.level.simulations])
            simulations = round(float(np.exp(np.interp(share, (0, 1), ends))))
            found.append(high.level._replace(simulations=simulations))
        else:
            ends = np.log([low.level.spread, high.level.spread])
            spread = float(f"{np.exp(np.interp(share, (0, 1), ends)):.3g}")
            found.append(high.level._replace(spread=spread))
    return found


@app.command()
def tune(
    network: Annotated[Path, typer.Argument(help="Run, file or builtin.")] = Path(BUILTIN),
    games: Annotated[int, typer.Option(min=2, help="Games of each pair.")] = GAMES,
    step: Annotated[float, typer.Option(min=1.0, help="Points between two levels.")] = 260.0,
) -> None:
    """Play the ladder and print settings for nine levels."""
    loaded = open_network(network)(usable_cpus())
    levels = ladder_levels()
    with progress_bar() as bar, closing(make_player(WEAKEST)) as weakest:
        players = [level_player(loaded, level, name=str(level)) for level in levels]
        # Each against the next, and the one that is nearest to the bot against it.
        steps = [0.0, *(_elo(bar, high, low, games) for low, high in pairwise(players))]
        offsets = np.cumsum(steps)
        against = [_score(bar, player, weakest, games).score for player in players[:8]]
    nearest = int(np.argmin(np.abs(np.array(against) - 0.5)))
    elos = offsets - offsets[nearest] + elo_difference(float(np.clip(against[nearest], 0.01, 0.99)))
    rungs = [Rung(level, float(elo)) for level, elo in zip(levels, elos, strict=True)]
    for rung in rungs:
        console.print(f"{rung.elo:+6.0f} {rung.level}")
    console.print("")
    start = elo_difference(WEAKEST_SCORE)
    for number, level in enumerate(evenly_spaced(rungs, start, MAX_LEVEL - 1, step), start=1):
        console.print(
            f"    {number}: Level({level.simulations}, {level.spread:g}, {level.mate_plies}),"
        )


@app.command()
def measure(
    games: Annotated[int, typer.Option(min=2, help="Games against the level below.")] = GAMES,
    within: Annotated[float, typer.Option(min=1.0, help="Half of the interval of ratings.")] = 40.0,
    top_games: Annotated[int, typer.Option(min=2, help="Games of the highest level.")] = 60,
    only: Annotated[
        list[int] | None,
        typer.Option(
            min=1, max=MAX_LEVEL, help="This level; the others stay as the file has them."
        ),
    ] = None,
    output: Annotated[Path, typer.Option(help="File of the ratings.")] = RATINGS,
) -> None:
    """Rate the levels of the player in the package and write their ratings."""
    scale = current_scale()
    table = new_table("levels")
    for heading in ("level", "Elo, 95 %", "games", "score against the one below"):
        table.add_column(heading, justify="right")
    network = open_network(Path(BUILTIN))(usable_cpus()).identity
    known = json.loads(output.read_text("utf-8")) if only and output.exists() else {}
    if only and (known.get("scale"), known.get("network")) != (scale.version, network):
        raise KeiseiError(f"{output} has ratings of another network or scale: measure all levels")
    ratings: dict[str, int] = known.get("ratings", {})
    bounds: dict[str, int] = known.get("bounds", {})
    scores: dict[str, float] = known.get("against_below", {})
    with ExitStack() as stack, progress_bar() as bar:
        for level in only or LEVELS:
            weaker = f"{BUILTIN}:level={level - 1}" if level - 1 in LEVELS else WEAKEST
            below = stack.enter_context(closing(make_player(weaker)))
            player = stack.enter_context(closing(make_player(f"{BUILTIN}:level={level}")))
            limit = top_games if level == MAX_LEVEL else games
            score = _score(bar, player, below, limit)
            settings = PlacingSettings(within=within, max_games=4 * limit)
            task = bar.add_task(f"placing level {level}", total=None)
            placement = place_player(player, scale, settings).placement
            bar.remove_task(task)
            table.add_row(str(level), str(placement), f"{placement.games:,}", str(score))
            scores[str(level)] = round(score.score, 4)
            for old in (ratings, bounds):
                old.pop(str(level), None)
            is_sure = placement.error <= UNSURE * within
            is_beyond = placement.low > scale.references[-1].rating
            # Beyond the last references a rating says little, and its lower bound what is known.
            if placement.position == "above" or (is_beyond and not is_sure):
                bounds[str(level)] = round(placement.low)
            elif placement.position == "on" and is_sure:
                ratings[str(level)] = round(placement.rating)
    content = {
        "scale": scale.version,
        "network": network,
        "against_below": scores,
        "ratings": ratings,
        "bounds": bounds,
    }
    write_atomically(output, (json.dumps(content, indent=1) + "\n").encode())
    console.print(table)
    console.print(f"written: {output}")


def _elo(bar: Progress, player: Player, opponent: Player, games: int) -> float:
    """Return by how much a player is stronger; one who wins all games, as if half were drawn."""
    share = 0.5 / games
    return elo_difference(
        float(np.clip(_score(bar, player, opponent, games).score, share, 1 - share))
    )


def _score(bar: Progress, player: Player, opponent: Player, games: int) -> Score:
    task = bar.add_task(f"{player.name} - {opponent.name}", total=games)
    result = play_match(
        player,
        opponent,
        MatchSettings(games=games),
        on_games=lambda now: bar.update(task, completed=len(now.games)),
    )
    bar.remove_task(task)
    return result.score


if __name__ == "__main__":
    try:
        app()
    except KeiseiError as error:
        sys.exit(f"error: {error}")

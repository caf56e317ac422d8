"""``keisei ladder``: Elo ratings of players."""

import json
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from keisei.commands import options
from keisei.evaluation import (
    DEFAULT_GAMES,
    DEFAULT_MAX_GAMES,
    DEFAULT_OPENING_PLIES,
    DEFAULT_PLY_LIMIT,
    DEFAULT_WITHIN,
)
from keisei.interrupts import like_ctrl_c

if TYPE_CHECKING:
    from keisei.evaluation.match import MatchSettings
    from keisei.evaluation.placing import PlacingSettings
    from keisei.evaluation.results import ResultStore


@like_ctrl_c()
def ladder(
    players: Annotated[
        list[str] | None,
        typer.Argument(
            metavar="[PLAYER]...",
            show_default=False,
            help=f"{options.PLAYER_HELP} If left out, only show stored results.",
        ),
    ] = None,
    games: options.Games = DEFAULT_GAMES,
    within: options.Within = DEFAULT_WITHIN,
    max_games: options.MaxGames = DEFAULT_MAX_GAMES,
    store: options.Store = options.DEFAULT_STORE,
    opening_plies: options.OpeningPlies = DEFAULT_OPENING_PLIES,
    ply_limit: options.PlyLimit = DEFAULT_PLY_LIMIT,
    seed: options.Seed = 0,
    plot: Annotated[
        Path | None, typer.Option(metavar="FILE.png", help="Also plot the ladder.")
    ] = None,
    scale: Annotated[
        bool,
        typer.Option(
            "--scale",
            help="Only show the Elo scale: its references, and the engines rated among them.",
            show_default=False,
        ),
    ] = False,
    device: options.Device = "auto",
    threads: options.Threads = 0,
    as_json: options.AsJson = False,
) -> None:
    """Rate players on the Elo scale: missing games are played, and all stored games count.

    Each player meets references of the scale until its rating is known, and all meet each other.
    Without players, show the ladder of all stored results.
    """
    from keisei.evaluation.ladder import read_ladder
    from keisei.evaluation.match import MatchSettings
    from keisei.evaluation.placing import PlacingSettings
    from keisei.evaluation.results import Conditions, ResultStore

    if scale:
        _show_scale(players, as_json=as_json)
        return
    placing = PlacingSettings(within=within, max_games=max_games)
    settings = MatchSettings(
        games=games, seed=seed, ply_limit=ply_limit, opening_plies=opening_plies
    )
    with ResultStore(store, create=bool(players)) as results:
        shown = _play(players, settings, placing, results, device, threads) if players else None
        found = read_ladder(results, Conditions.of(settings), shown)
    if plot is not None:
        from keisei.evaluation.strength_plots import draw_ladder
        from keisei.plotting import png
        from keisei.system import write_atomically

        write_atomically(plot, png(draw_ladder(found)))
    if as_json:
        typer.echo(json.dumps(found.as_dict(), indent=2))
    else:
        from keisei.commands.tables import print_ladder

        print_ladder(found)


def _show_scale(players: list[str] | None, *, as_json: bool) -> None:
    from keisei.commands.tables import print_scale
    from keisei.errors import KeiseiError
    from keisei.evaluation.scale import current_scale

    if players:
        raise KeiseiError("--scale shows the players of the scale, and plays no games with others")
    if as_json:
        typer.echo(json.dumps(current_scale().as_dict(), indent=2))
    else:
        print_scale(current_scale())


def _play(
    specs: list[str],
    settings: "MatchSettings",
    placing: "PlacingSettings",
    results: "ResultStore",
    device: str,
    threads: int,
) -> list[str]:
    """Play the missing games; return the identities of the players."""
    from keisei.commands.tables import progress_bar, show_ladder_progress, show_placing
    from keisei.errors import KeiseiError
    from keisei.evaluation.ladder import distinct, play_missing, round_robin
    from keisei.evaluation.placing import place_player
    from keisei.evaluation.results import Conditions
    from keisei.evaluation.scale import current_scale
    from keisei.players.spec import open_players

    scale = current_scale()
    with progress_bar() as bar:
        task = bar.add_task("loading", total=None)
        with open_players(specs, device=device, threads=threads) as opened:
            players = distinct(opened)
            pairs = round_robin(players)
            is_on_scale = Conditions.of(settings) == scale.conditions
            if not pairs and not is_on_scale:
                raise KeiseiError(
                    "a ladder with conditions other than those of the scale needs at least two "
                    "different players"
                )
            play_missing(
                results, pairs, settings, on_games=lambda now: show_ladder_progress(bar, task, now)
            )
            unrated = [player for player in players if player.identity not in scale.ratings]
            for player in unrated if is_on_scale else ():
                place_player(
                    player,
                    scale,
                    placing,
                    seed=settings.seed,
                    threads=threads,
                    store=results,
                    on_games=partial(show_placing, bar, task, player.name),
                )
            return [player.identity for player in players]

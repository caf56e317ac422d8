"""``keisei match``: games between two players, and the Elo difference they show."""

import json
from contextlib import ExitStack
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from keisei.commands import options
from keisei.evaluation import (
    DEFAULT_GAMES,
    DEFAULT_MAX_GAMES,
    DEFAULT_OPENING_PLIES,
    DEFAULT_PLY_LIMIT,
)
from keisei.interrupts import INTERRUPTED, like_ctrl_c

if TYPE_CHECKING:
    from keisei.evaluation.match import MatchResult

DEFAULT_KEPT_GAMES: Final = 20
"""Games that --games-dir writes unless --keep says otherwise."""


class Declaration(StrEnum):
    """Rule by which an entered king can declare a win."""

    POINTS_27 = "27"
    POINTS_24 = "24"
    OFF = "off"


@like_ctrl_c()
def match(
    player: Annotated[str, typer.Argument(help=options.PLAYER_HELP)],
    opponent: Annotated[str, typer.Argument(help="The opponent, in the same form.")],
    games: Annotated[
        int, typer.Option(min=1, help="Number of games, half with each colour.")
    ] = DEFAULT_GAMES,
    seed: Annotated[
        int | None,
        typer.Option(
            min=0,
            max=options.MAX_SEED,
            show_default="0; with --store the first unused one",
            help="Seed of openings and players.",
        ),
    ] = None,
    opening_plies: options.OpeningPlies = DEFAULT_OPENING_PLIES,
    openings: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="Start positions: one SFEN per line, # begins a comment."
        ),
    ] = None,
    ply_limit: options.PlyLimit = DEFAULT_PLY_LIMIT,
    declaration: Annotated[
        Declaration, typer.Option(help="Entering-king rule: points needed to declare a win.")
    ] = Declaration.POINTS_27,
    games_dir: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Write games to DIR, as KIF and CSA.")
    ] = None,
    keep: Annotated[
        int, typer.Option(min=1, help="Number of games to write: those that end first.")
    ] = DEFAULT_KEPT_GAMES,
    sprt: Annotated[
        tuple[float, float] | None,
        typer.Option(
            metavar="ELO0 ELO1",
            help="Stop as soon as a sequential test decides between two Elo differences.",
        ),
    ] = None,
    store: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Store the results in FILE for the ladder.")
    ] = None,
    within: Annotated[
        float | None,
        typer.Option(
            min=options.MIN_WITHIN,
            show_default="no placing",
            help="Then place the players on the Elo scale, by games against its references, within "
            "this many points. With --store these games are kept, too.",
        ),
    ] = None,
    max_games: options.MaxGames = DEFAULT_MAX_GAMES,
    device: options.Device = "auto",
    threads: options.Threads = 0,
    as_json: options.AsJson = False,
) -> None:
    """Play a match: wins, draws and losses by colour, score and Elo difference with intervals.

    With --within, both players then get a rating on the Elo scale.
    """
    from keisei.commands.tables import (
        print_match,
        progress_bar,
        show_match_progress,
        show_placing,
    )

    with progress_bar() as bar, ExitStack() as stack:
        task = bar.add_task("loading", total=None)

        from keisei.evaluation.match import MatchSettings, read_openings, write_games
        from keisei.evaluation.match_report import place_both, run_match
        from keisei.evaluation.placing import PlacingSettings
        from keisei.evaluation.results import ResultStore
        from keisei.evaluation.score import Sprt
        from keisei.players.spec import open_players
        from keisei.shogi.notation.sfen import STARTPOS_SFEN
        from keisei.shogi.rules import DeclarationRule
        from keisei.system import make_directory

        if games_dir is not None:
            make_directory(games_dir)  # fails before the games, not after
        test = None if sprt is None else Sprt(*sprt)
        settings = MatchSettings(
            games=games,
            opening_plies=opening_plies,
            openings=(STARTPOS_SFEN,) if openings is None else read_openings(openings),
            ply_limit=ply_limit,
            declaration=DeclarationRule.named(declaration),
            keep_games=0 if games_dir is None else keep,
        )
        results = None
        if store is not None:
            results = stack.enter_context(ResultStore(store, create=True))
        specs = (player, opponent)
        one, other = stack.enter_context(open_players(specs, device=device, threads=threads))

        def show(result: "MatchResult") -> None:
            show_match_progress(bar, task, result, games)

        report = run_match(one, other, settings, seed=seed, test=test, store=results, on_games=show)
        if within is not None and not report.is_interrupted:
            report = place_both(
                report,
                (one, other),
                PlacingSettings(within=within, max_games=max_games),
                threads=threads,
                store=results,
                on_games=lambda player, now: show_placing(bar, task, player.name, now),
            )
    if games_dir is not None:
        prefix = f"match-{report.settings.seed}"
        write_games(report.result.records, games_dir, prefix=prefix, event="match")
    if as_json:
        typer.echo(json.dumps(report.as_dict(), indent=2))
    else:
        print_match(report, games_dir=games_dir, store=store)
    if report.is_interrupted:
        raise typer.Exit(INTERRUPTED)

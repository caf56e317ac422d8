"""``keisei match``: two players, some games, and what they say about the difference."""

import json
from contextlib import ExitStack
from dataclasses import replace
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from keisei.commands import strength_options as options
from keisei.commands.train import INTERRUPTED
from keisei.evaluation import standards

if TYPE_CHECKING:
    from rich.progress import Progress as Bar
    from rich.progress import TaskID

    from keisei.evaluation.ladder import Pair
    from keisei.evaluation.match import MatchResult, MatchSettings
    from keisei.evaluation.results import ResultStore
    from keisei.evaluation.sprt import Sprt

KEPT_GAMES: Final = 20
"""Games that are written where a directory is given, and nothing is said of how many."""


class Declaration(StrEnum):
    """By which rule a win may be declared."""

    POINTS_27 = "27"
    POINTS_24 = "24"
    OFF = "off"


def match(
    player: Annotated[str, typer.Argument(help=options.PLAYER_HELP)],
    opponent: Annotated[str, typer.Argument(help="The same.")],
    games: Annotated[
        int, typer.Option(min=1, help="How many games, half with each colour.")
    ] = standards.GAMES,
    seed: Annotated[
        int | None,
        typer.Option(
            min=0,
            max=options.MAX_SEED,
            show_default="0; with --store the first that is new there",
            help="Seed of openings and players.",
        ),
    ] = None,
    opening_plies: options.OpeningPlies = standards.OPENING_PLIES,
    openings: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Positions to begin at: an SFEN per line, # comments."),
    ] = None,
    ply_limit: options.PlyLimit = standards.PLY_LIMIT,
    declaration: Annotated[
        Declaration, typer.Option(help="The entering-king rule.")
    ] = Declaration.POINTS_27,
    games_dir: Annotated[
        Path | None, typer.Option(metavar="DIR", help="Write games there, as KIF and CSA.")
    ] = None,
    keep: Annotated[
        int, typer.Option(min=1, help="How many games are written: those that end first.")
    ] = KEPT_GAMES,
    sprt: Annotated[
        tuple[float, float] | None,
        typer.Option(
            metavar="ELO0 ELO1", help="End as soon as one of two differences is decided for."
        ),
    ] = None,
    store: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Keep the result there for the ladder.")
    ] = None,
    device: options.Device = "auto",
    threads: options.Threads = 0,
    as_json: options.AsJson = False,
) -> None:
    """Play a match: wins, draws and losses by colour, score and Elo difference with intervals."""
    from keisei.commands.progress import progress_bar

    with progress_bar() as bar, ExitStack() as stack:
        task = bar.add_task("loading", total=None)

        from keisei.commands.match_report import MatchReport, print_match
        from keisei.evaluation.game_files import write_games
        from keisei.evaluation.ladder import CHUNK_GAMES
        from keisei.evaluation.match import MatchSettings
        from keisei.evaluation.openings import read_openings
        from keisei.evaluation.players import open_players
        from keisei.evaluation.results import ResultStore
        from keisei.evaluation.sprt import ROUND_GAMES, Sprt
        from keisei.files import make_directory
        from keisei.shogi.rules import DeclarationRule

        if games_dir is not None:
            make_directory(games_dir)  # now, not when all games have been played
        test = None if sprt is None else Sprt(*sprt)
        settings = MatchSettings(
            games=games,
            seed=seed or 0,
            opening_plies=opening_plies,
            ply_limit=ply_limit,
            declaration=DeclarationRule.named(declaration),
            keep_games=0 if games_dir is None else keep,
        )
        if openings is not None:
            settings = replace(settings, openings=read_openings(openings))
        if test is not None:
            settings = replace(settings, round_games=ROUND_GAMES)
        results = None
        if store is not None:
            results = stack.enter_context(ResultStore(store, create=True))
        words = (player, opponent)
        one, other = stack.enter_context(open_players(words, device=device, threads=threads))
        keeper = None
        if results is not None:
            settings = replace(
                settings,
                seed=_new_seed(results, (one, other), seed),
                round_games=min(settings.round_games, CHUNK_GAMES),
            )
            keeper = _Keeper(results, (one, other), settings)
        result, is_interrupted = _play((one, other), settings, test, keeper, bar, task)
        report = MatchReport(
            identities=(one.identity, other.identity),
            settings=settings,
            result=result,
            test=test,
            is_interrupted=is_interrupted,
            stored=0 if keeper is None else keeper.stored,
        )
    if games_dir is not None:
        write_games(result.records, games_dir, prefix=f"match-{settings.seed}", event="match")
    if as_json:
        typer.echo(json.dumps(report.as_dict(), indent=2))
    else:
        print_match(report, games_dir=games_dir, store=store)
    if is_interrupted:
        raise typer.Exit(INTERRUPTED)


def _new_seed(results: "ResultStore", pair: "Pair", wanted: int | None) -> int:
    """A seed with which the two have not played yet."""
    from keisei.errors import KeiseiError
    from keisei.evaluation.ladder import unused_seed

    one, other = pair
    if one.identity == other.identity:
        raise KeiseiError(f"{one.name} against itself says nothing about its strength: no --store")
    seed = unused_seed(results, pair, first=wanted or 0)
    if wanted not in (None, seed):
        raise KeiseiError(
            f"{results.path} holds games of these two with seed {wanted}; {seed} would be new"
        )
    return seed


class _Keeper:
    """Stores the games of a match as it goes on, so that a killed process loses only a round.

    Whole rounds: of one that was cut short, only short games are known.
    """

    def __init__(self, results: "ResultStore", pair: "Pair", settings: "MatchSettings") -> None:
        from keisei.evaluation.results import Conditions

        self.stored = 0
        self._results, self._pair, self._seed = results, pair, settings.seed
        self._conditions = Conditions.of(settings)

    def keep(self, result: "MatchResult") -> None:
        """Store what has been played since the last time."""
        if self._results.add(
            *self._pair,
            result.games[self.stored :],
            conditions=self._conditions,
            seed=self._seed,
            after=self.stored,
        ):
            self.stored = len(result.games)


def _play(
    pair: "Pair",
    settings: "MatchSettings",
    test: "Sprt | None",
    keeper: _Keeper | None,
    bar: "Bar",
    task: "TaskID",
) -> "tuple[MatchResult, bool]":
    """(the result, whether the user ended the match early)."""
    from rich.markup import escape

    from keisei.commands.strength_tables import tally_text
    from keisei.evaluation.match import MatchResult, play_match
    from keisei.evaluation.score import Score
    from keisei.evaluation.sprt import Verdict

    one, other = pair
    so_far = MatchResult(one.name, other.name)

    def show(result: MatchResult) -> None:
        nonlocal so_far
        so_far = result
        text = escape(f"{one.name} - {other.name}: {tally_text(result.score)}")
        bar.update(task, description=text, completed=len(result.games), total=settings.games)

    def is_decided(score: Score) -> bool:
        return test is not None and test.verdict(score) is not Verdict.UNDECIDED

    on_round = None if keeper is None else keeper.keep
    try:
        result = play_match(
            one, other, settings, on_games=show, on_round=on_round, is_decided=is_decided
        )
        return result, False
    except KeyboardInterrupt:
        return so_far, True

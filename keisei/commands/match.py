"""``keisei match``: two players, some games, and what they say about the difference."""

import json
import math
from contextlib import ExitStack
from dataclasses import asdict, dataclass, replace
from enum import StrEnum
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer
from rich.console import Console
from rich.table import Table

from keisei.commands import options
from keisei.commands.tables import elo_text, interval_text, print_line
from keisei.commands.train import INTERRUPTED
from keisei.evaluation import standards
from keisei.evaluation.match import MatchResult, MatchSettings
from keisei.evaluation.results import Conditions
from keisei.evaluation.score import (
    ERROR_RATE,
    LOWER,
    UPPER,
    Score,
    Sprt,
    Verdict,
)
from keisei.formats import NOTHING, new_table, percent

if TYPE_CHECKING:
    from rich.progress import Progress as Bar
    from rich.progress import TaskID

    from keisei.evaluation.ladder import Pair
    from keisei.evaluation.match import MatchResult, MatchSettings
    from keisei.evaluation.results import ResultStore
    from keisei.evaluation.score import Sprt


@dataclass(frozen=True)
class MatchReport:
    """A match, and what it says."""

    identities: tuple[str, str]
    settings: MatchSettings
    result: MatchResult
    test: Sprt | None
    is_interrupted: bool
    stored: int
    """Games that were kept for the ladder."""

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON; null for what is infinite or not known."""
        score = self.result.score
        plies = self.result.plies
        return {
            "player": self.result.player,
            "opponent": self.result.opponent,
            "identities": list(self.identities),
            "conditions": asdict(Conditions.of(self.settings)),
            "seed": self.settings.seed,
            "games": score.games,
            "interrupted": self.is_interrupted,
            "black": _tally(score.black),
            "white": _tally(score.white),
            **(_estimates(score) if score.games else {}),
            "plies": {"min": plies[0], "median": median(plies), "max": plies[-1]}
            if plies
            else None,
            "endings": dict(self.result.endings.most_common()),
            "sprt": self._sprt(score),
            "stored": self.stored,
        }

    def _sprt(self, score: Score) -> dict[str, Any] | None:
        if self.test is None:
            return None
        return {
            "elo0": self.test.elo0,
            "elo1": self.test.elo1,
            "log_likelihood_ratio": self.test.log_likelihood_ratio(score),
            "verdict": self.test.verdict(score).value,
        }


def print_match(report: MatchReport, *, games_dir: Path | None, store: Path | None) -> None:
    """The result, for people."""
    console = Console()
    result, score = report.result, report.result.score
    if score.games == 0:
        console.print("No game has ended.")
        return
    print_line(console, f"{result.player} against {result.opponent}: {score.games} games")
    console.print(_table(score))
    low, high = score.interval
    lines = [
        f"score {percent(score.score, 1)}, 95 %: {percent(low, 1)} to {percent(high, 1)}",
        f"Elo difference {elo_text(score.elo)}, 95 %: {interval_text(*score.elo_interval)}",
        _lengths(result.plies),
        "ended by " + ", ".join(f"{name} {n}" for name, n in result.endings.most_common()),
        f"{Conditions.of(report.settings)}, seed {report.settings.seed}",
    ]
    if report.test is not None:
        lines.append(_sprt_line(report.test, score))
    if games_dir is not None:
        lines.append(f"games written: {len(result.records)}, in {games_dir}")
    if store is not None:
        lines.append(f"games stored: {report.stored}, in {store}")
    for line in lines:
        print_line(console, line)
    if report.is_interrupted:
        print_line(
            console,
            "Interrupted: games that end first are not like the others, take the score with care.",
            style="yellow",
        )


def _table(score: Score) -> Table:
    table = new_table("")
    for heading in ("", "won", "drawn", "lost", "score"):
        table.add_column(heading, justify="left" if not heading else "right")
    for name, (wins, draws, losses) in (
        ("as Black", score.black),
        ("as White", score.white),
        ("together", score.total),
    ):
        games = wins + draws + losses
        share = percent((wins + draws / 2) / games, 1) if games else NOTHING
        table.add_row(name, str(wins), str(draws), str(losses), share)
    return table


def _lengths(plies: list[int]) -> str:
    return f"length {median(plies):g} plies in the median, from {plies[0]} to {plies[-1]}"


def _sprt_line(test: Sprt, score: Score) -> str:
    verdict = {
        Verdict.H0: f"it is {test.elo0:g} Elo or less rather than {test.elo1:g}",
        Verdict.H1: f"it is {test.elo1:g} Elo or more rather than {test.elo0:g}",
        Verdict.UNDECIDED: "undecided",
    }[test.verdict(score)]
    return (
        f"SPRT of {test.elo0:g} against {test.elo1:g} Elo: {verdict} (log-likelihood ratio "
        f"{test.log_likelihood_ratio(score):.2f}, bounds {LOWER:.2f} and {UPPER:.2f}, "
        f"errors {percent(ERROR_RATE)})"
    )


def _tally(counts: tuple[int, int, int]) -> dict[str, int]:
    return dict(zip(("wins", "draws", "losses"), counts, strict=True))


def _estimates(score: Score) -> dict[str, float | list[float | None] | None]:
    return {
        "score": score.score,
        "score_interval": list(score.interval),
        "elo": _finite(score.elo),
        "elo_interval": [_finite(end) for end in score.elo_interval],
    }


def _finite(number: float) -> float | None:
    """JSON knows no infinity."""
    return number if math.isfinite(number) else None


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
    from keisei.commands.tables import progress_bar

    with progress_bar() as bar, ExitStack() as stack:
        task = bar.add_task("loading", total=None)

        from keisei.evaluation.ladder import CHUNK_GAMES
        from keisei.evaluation.match import MatchSettings, read_openings, write_games
        from keisei.evaluation.results import ResultStore
        from keisei.evaluation.score import ROUND_GAMES, Sprt
        from keisei.players.spec import open_players
        from keisei.shogi.rules import DeclarationRule
        from keisei.system import make_directory

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
        specs = (player, opponent)
        one, other = stack.enter_context(open_players(specs, device=device, threads=threads))
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

    from keisei.commands.tables import tally_text
    from keisei.evaluation.match import MatchResult, play_match
    from keisei.evaluation.score import Score, Verdict

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

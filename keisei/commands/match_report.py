"""What ``keisei match`` prints."""

import math
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

from rich.console import Console
from rich.table import Table

from keisei.commands.benchmark_tables import new_table
from keisei.commands.strength_tables import elo_text, interval_text, print_line
from keisei.evaluation.match import MatchResult, MatchSettings
from keisei.evaluation.results import Conditions
from keisei.evaluation.score import Score
from keisei.evaluation.sprt import ERROR_RATE, LOWER, UPPER, Sprt, Verdict
from keisei.training.formats import NOTHING, percent


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

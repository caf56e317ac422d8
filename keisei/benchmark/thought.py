"""``keisei benchmark thought``: how much stronger a network becomes by longer searches.

The network's policy plays a search of a few simulations, that one a search of more, and so on: each
player meets the one before it. Strength over thought is the sum of these steps.
"""

import json
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any, Final, NamedTuple

from matplotlib.figure import Figure
from rich.console import Console

from keisei.errors import KeiseiError
from keisei.evaluation.match import MatchSettings, play_match
from keisei.evaluation.score import Score
from keisei.formats import new_table
from keisei.players.spec import open_players
from keisei.plotting import COLORS, HEIGHT, INK, new_figure
from keisei.system import read_bytes

SIMULATIONS: Final = (4, 16, 64, 256, 1_024, 4_096, 16_384)
"""Simulations per move of the searches; the policy comes before them."""

POLICY: Final = 1
"""Simulations that the policy counts as: one evaluation of the network."""

GAMES: Final = 400
MIN_GAMES: Final = 60
SIMULATION_BUDGET: Final = 200_000
"""Games times simulations per move of a match: long searches play fewer games, but `MIN_GAMES` at
least."""


@dataclass(frozen=True)
class ThoughtStep:
    """A search against the one before it."""

    simulations: int
    """Simulations per move."""

    before: int
    """Those of its opponent, `POLICY` for the policy alone."""

    score: Score


class ThoughtPoint(NamedTuple):
    """Strength of a search compared with the policy, in Elo points."""

    simulations: int
    elo: float
    low: float
    """Lower end of the 95 % interval."""

    high: float


@dataclass(frozen=True)
class ThoughtReport:
    """Matches of a network with more and more thought."""

    network: str
    steps: tuple[ThoughtStep, ...]

    def points(self) -> Iterator[ThoughtPoint]:
        """Yield the strength of each search over the policy: the sum of the steps up to it.

        Their errors are independent, so the squares of the intervals' halves add up.
        """
        elo = below = above = 0.0
        yield ThoughtPoint(POLICY, 0.0, 0.0, 0.0)
        for step in self.steps:
            low, high = step.score.elo_interval
            elo += step.score.elo
            below, above = (
                math.hypot(below, step.score.elo - low),
                math.hypot(above, high - step.score.elo),
            )
            yield ThoughtPoint(step.simulations, elo, elo - below, elo + above)

    def as_dict(self) -> dict[str, Any]:
        """Return the report as plain values, for JSON."""
        return {
            "network": self.network,
            "steps": [
                {
                    "simulations": step.simulations,
                    "before": step.before,
                    "black": list(step.score.black),
                    "white": list(step.score.white),
                }
                for step in self.steps
            ],
        }


def measure_thought(
    network: str,
    *,
    simulations: Sequence[int] = SIMULATIONS,
    games: int = GAMES,
    seed: int = 0,
    on_progress: Callable[[str, int, int], None] = lambda step, done, total: None,
) -> ThoughtReport:
    """Play the matches.

    Args:
        network: player spec of the network, without a search: a run, a file or ``builtin``.
        simulations: simulations per move of the searches, in ascending order.
        games: games of each match; long searches play fewer (`games_of`).
        seed: seed of the openings.
        on_progress: called with what is played, the games done and their number.
    """
    if list(simulations) != sorted(set(simulations)) or not simulations or simulations[0] < 1:
        raise KeiseiError(
            "numbers of simulations are positive and each is larger than the one before it, not "
            f"{', '.join(map(str, simulations)) or 'none'}"
        )
    total = sum(games_of(number, games) for number in simulations)
    steps: list[ThoughtStep] = []
    done, before = 0, POLICY
    for number in simulations:
        opponent, shown = f"{network}:search={before}", f"{before:,}"
        if not steps:
            opponent, shown = f"{network}:policy", "the policy"
        score = _play(
            f"{network}:search={number}",
            opponent,
            MatchSettings(games=games_of(number, games), seed=seed),
            partial(_report_games, on_progress, f"{number:,} against {shown}", done, total),
        )
        steps.append(ThoughtStep(number, before, score))
        done, before = done + score.games, number
    return ThoughtReport(network, tuple(steps))


def _report_games(
    on_progress: Callable[[str, int, int], None], label: str, before: int, total: int, games: int
) -> None:
    on_progress(label, before + games, total)


def _play(
    spec: str, opponent_spec: str, settings: MatchSettings, on_games: Callable[[int], None]
) -> Score:
    """Play a match of two player specs; `on_games` gets the number of games that have ended."""
    with open_players((spec, opponent_spec)) as (player, opponent):
        on_games(0)
        result = play_match(
            player, opponent, settings, on_games=lambda now: on_games(len(now.games))
        )
    return result.score


def games_of(simulations: int, games: int) -> int:
    """Return how many games a search plays: fewer if it is long, an even number."""
    affordable = max(MIN_GAMES, SIMULATION_BUDGET // simulations)
    return max(2, min(games, affordable) // 2 * 2)


_NO_REPORT: Final = (
    *(OSError, ValueError, KeyError, TypeError, AttributeError, OverflowError),
    RecursionError,  # of JSON that is nested too deeply
)
"""What a file that is no report raises."""


def read_thought(path: Path) -> ThoughtReport:
    """Read a report that ``--json`` printed."""
    try:
        content = json.loads(read_bytes(path))
        steps = tuple(
            ThoughtStep(
                int(step["simulations"]),
                int(step["before"]),
                Score(tuple(step["black"]), tuple(step["white"])),
            )
            for step in content["steps"]
        )
        return ThoughtReport(str(content["network"]), steps)
    except _NO_REPORT as error:
        raise KeiseiError(f"{path} is not a report of keisei benchmark thought: {error}") from error


def draw_thought(report: ThoughtReport) -> Figure:
    """Plot Elo over simulations per move, logarithmically, with 95 % intervals."""
    figure, (axes,) = new_figure(height=1.1 * HEIGHT)
    points = [point for point in report.points() if math.isfinite(point.elo)]
    numbers = [point.simulations for point in points]
    axes.plot(numbers, [point.elo for point in points], color=COLORS[0], linewidth=1.8)
    for point in points:
        axes.plot([point.simulations] * 2, [point.low, point.high], color=COLORS[0], alpha=0.5)
        axes.plot(point.simulations, point.elo, "o", markersize=4, color=COLORS[0])
    axes.set_xscale("log", base=2)
    axes.set_xticks(numbers, ["policy", *(f"{number:,}" for number in numbers[1:])])
    axes.minorticks_off()
    axes.set_xlabel("simulations per move", fontsize=9, color=INK)
    axes.set_title(
        f"{report.network}: Elo over its policy, 95 %", fontsize=10, color=INK, loc="left"
    )
    return figure


def print_thought_report(report: ThoughtReport) -> None:
    """Print the matches as a table."""
    table = new_table(f"{report.network}: strength over thought")
    for heading in ("simulations", "against", "games", "score", "Elo", "over the policy"):
        table.add_column(heading, justify="right", no_wrap=True)
    points = list(report.points())[1:]
    for step, point in zip(report.steps, points, strict=True):
        low, high = step.score.elo_interval
        table.add_row(
            f"{step.simulations:,}",
            "policy" if step.before == POLICY else f"{step.before:,}",
            str(step.score.games),
            f"{step.score.score:.1%}",
            f"{step.score.elo:.0f} ({low:.0f} to {high:.0f})",
            f"{point.elo:.0f} ({point.low:.0f} to {point.high:.0f})",
        )
    Console().print(table)

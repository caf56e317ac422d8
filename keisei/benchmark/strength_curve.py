"""``keisei benchmark curve``: strength of a run's milestones over the minutes of its training.

Runs keep a network at each of ``checkpoint.milestones`` minutes. Each is placed on the Elo scale
and plays the same opponents, by its policy; several runs of one recipe are one line, with the
median and all their points.
"""

import json
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Final, NamedTuple

from matplotlib.figure import Figure
from rich.console import Console

from keisei.checkpoints.rotation import list_checkpoints
from keisei.checkpoints.store import load_checkpoint
from keisei.config_schema import DeviceConfig
from keisei.errors import KeiseiError
from keisei.evaluation import DEFAULT_WITHIN
from keisei.evaluation.measure import measure
from keisei.evaluation.placing import Placement, Placing
from keisei.evaluation.rating_text import bound_text
from keisei.evaluation.scale import current_scale
from keisei.evaluation.score import Score
from keisei.formats import new_table
from keisei.network.loading import read_network
from keisei.plotting import COLORS, HEIGHT, INK, new_figure
from keisei.run_files import MILESTONES, find_run
from keisei.system import read_bytes

OPPONENTS: Final = ("greedy", "alphabeta:2", "alphabeta:3")
TICK_RATIO: Final = 1.7
"""Ratio of two minutes on the logarithmic axis whose labels do not touch."""

ProgressCallback = Callable[[str, int, int], None]


@dataclass(frozen=True)
class CurvePoint:
    """A network of a run, and how it scored."""

    run: str
    recipe: str
    """Runs with the same recipe are one line of the plot."""

    minutes: float
    timestep: int
    placement: Placement
    scores: dict[str, Score]
    met: dict[str, Score]
    """Score against each reference of the scale that it met, by identity: the rating follows from
    them, also when the scale has been calibrated again."""

    def as_dict(self) -> dict[str, Any]:
        """Return the point as plain values, for JSON."""
        scores = {
            name: {"score": score.score, "low": score.interval[0], "high": score.interval[1],
                   **_counts(score)}
            for name, score in self.scores.items()
        }  # fmt: skip
        return {
            "run": self.run,
            "recipe": self.recipe,
            "minutes": self.minutes,
            "timestep": self.timestep,
            "rating": asdict(self.placement),
            "scores": scores,
            "met": {name: _counts(score) for name, score in self.met.items()},
        }


@dataclass(frozen=True)
class CurveReport:
    """Points of all runs, in the order of time."""

    points: tuple[CurvePoint, ...]

    def as_dict(self) -> dict[str, Any]:
        """Return the report as plain values, for JSON."""
        return {"points": [point.as_dict() for point in self.points]}


def measure_curve(
    runs: Sequence[Path],
    *,
    opponents: Sequence[str] = OPPONENTS,
    games: int,
    within: float = DEFAULT_WITHIN,
    rate: float | None = None,
    on_progress: ProgressCallback = lambda step, done, total: None,
) -> CurveReport:
    """Rate all milestones of `runs`, and play each opponent.

    Args:
        runs: trained runs with milestones.
        opponents: specs of the players that each milestone meets.
        games: games against each opponent.
        within: half of the interval of the ratings.
        rate: plies per second by which plies are turned into minutes; None: by the run's clock.
        on_progress: called with what is measured, the networks done and their number.

    Raises:
        KeiseiError: A run has no milestones.
    """
    found = [(run, path) for run in map(find_run, runs) for path in _milestones(run)]
    points = []
    for number, (run, path) in enumerate(found):
        on_progress(f"{run.name} {path.name}", number, len(found))
        stored = read_network(path)
        evaluation = stored.config.evaluation.model_copy(update={"opponents": tuple(opponents)})
        config = stored.config.model_copy(update={"evaluation": evaluation})
        network = stored.network(DeviceConfig(device="cpu"))
        if rate is None:
            seconds = float(load_checkpoint(path).state["seconds"])
        else:
            seconds = stored.timestep / rate
        found_strength = measure(network, config, games=games, within=within, seed=stored.timestep)
        assert found_strength.placement is not None
        points.append(
            CurvePoint(
                run.name,
                _recipe(run.name),
                seconds / 60.0,
                stored.timestep,
                found_strength.placement,
                found_strength.scores,
                found_strength.met,
            )
        )
    return CurveReport(tuple(sorted(points, key=lambda point: (point.recipe, point.minutes))))


_NO_REPORT: Final = (
    *(OSError, ValueError, KeyError, TypeError, AttributeError, OverflowError),
    RecursionError,  # of JSON that is nested too deeply
)
"""What a file that is no report raises."""


def read_curve(path: Path) -> CurveReport:
    """Read a report that ``--json`` printed.

    Ratings are on the present scale if the report has the games that they follow from.
    """
    try:
        points = json.loads(read_bytes(path))["points"]
        return CurveReport(tuple(_point(entry) for entry in points))
    except _NO_REPORT as error:
        raise KeiseiError(f"{path} is not a report of keisei benchmark curve: {error}") from error


def _point(entry: Mapping[str, Any]) -> CurvePoint:
    # Earlier reports have the rating alone.
    met = _scores(entry["met"]) if "met" in entry else {}
    return CurvePoint(
        entry["run"],
        entry["recipe"],
        entry["minutes"],
        entry["timestep"],
        _placement(met) if met else Placement(**entry["rating"]),
        _scores(entry["scores"]),
        met,
    )


def _placement(met: Mapping[str, Score]) -> Placement:
    """Return the rating that follows from scores against references."""
    placing = Placing(current_scale())
    for reference in placing.references:
        if reference.identity in met:
            placing.add(reference, met[reference.identity])
    return placing.placement


def _counts(score: Score) -> dict[str, list[int]]:
    return {"black": list(score.black), "white": list(score.white)}


def _scores(entries: Mapping[str, Any]) -> dict[str, Score]:
    return {
        name: Score(tuple(entry["black"]), tuple(entry["white"])) for name, entry in entries.items()
    }


def _milestones(run: Path) -> list[Path]:
    found = list_checkpoints(run / MILESTONES) if (run / MILESTONES).is_dir() else []
    if not found:
        raise KeiseiError(
            f"{run} has no milestones: train it with --set checkpoint.milestones=[1,2,5,10,30,60]"
        )
    return found


def _recipe(run: str) -> str:
    """Name of a run without the number at its end: ``laptop-2`` -> ``laptop``."""
    return run.rstrip("0123456789").rstrip("-_") or run


class _Panel(NamedTuple):
    """One plot of the picture."""

    title: str
    value: Callable[[CurvePoint], tuple[float, float, float]]
    """(value, low, high) of a point."""


def draw_curve(report: CurveReport) -> Figure:
    """Plot the rating and the score against each opponent over minutes, logarithmically."""
    recipes = list(dict.fromkeys(point.recipe for point in report.points))
    panels = [_Panel("Elo", _rating), *(_score_panel(name) for name in _opponents(report))]
    figure, all_axes = new_figure(columns=len(panels), height=1.1 * HEIGHT)
    for axes, panel in zip(all_axes, panels, strict=True):
        for color, recipe in zip(COLORS, recipes, strict=False):
            points = [point for point in report.points if point.recipe == recipe]
            for point in points:
                value, low, high = panel.value(point)
                axes.plot([point.minutes] * 2, [low, high], color=color, alpha=0.35)
                axes.plot(point.minutes, value, ".", color=color, alpha=0.6)
            groups = _by_minute(points).values()
            minutes = [statistics.median(point.minutes for point in group) for group in groups]
            medians = [
                statistics.median(panel.value(point)[0] for point in group) for group in groups
            ]
            axes.plot(minutes, medians, color=color, linewidth=1.8, label=recipe)
        axes.set_xscale("log")
        marks = _tick_marks({round(point.minutes) for point in report.points})
        axes.set_xticks(marks, [str(mark) for mark in marks])
        axes.minorticks_off()
        axes.set_title(panel.title, fontsize=10, color=INK, loc="left")
        axes.set_xlabel("minutes of training", fontsize=9, color=INK)
    for axes in all_axes[1:]:
        axes.set_ylim(0, 101)
    all_axes[0].legend(frameon=False, fontsize=9)
    return figure


def _tick_marks(minutes: set[int]) -> list[int]:
    """Return the minutes to label, from the last one back, without those that would overlap."""
    marks: list[int] = []
    for minute in sorted(minutes, reverse=True):
        if not marks or minute * TICK_RATIO <= marks[-1]:
            marks.append(minute)
    return marks[::-1]


def _rating(point: CurvePoint) -> tuple[float, float, float]:
    return point.placement.rating, point.placement.low, point.placement.high


def _score_panel(opponent: str) -> _Panel:
    def score(point: CurvePoint) -> tuple[float, float, float]:
        found = point.scores[opponent]
        low, high = found.interval
        return 100 * found.score, 100 * low, 100 * high

    return _Panel(f"against {opponent}, %", score)


def _opponents(report: CurveReport) -> list[str]:
    return list(dict.fromkeys(name for point in report.points for name in point.scores))


def _by_minute(points: Sequence[CurvePoint]) -> dict[float, list[CurvePoint]]:
    """Group the points of several runs by their milestone."""
    groups: dict[float, list[CurvePoint]] = {}
    for point in points:
        groups.setdefault(float(round(point.minutes)) or point.minutes, []).append(point)
    return dict(sorted(groups.items()))


def print_curve_report(report: CurveReport) -> None:
    """Print the points as a table."""
    opponents = _opponents(report)
    table = new_table("strength over minutes of training")
    for heading in ("run", "minutes", "plies", "Elo", *opponents):
        table.add_column(heading, justify="left" if heading == "run" else "right", no_wrap=True)
    for point in report.points:
        rating = point.placement
        bound = bound_text(rating.low, rating.high, rating.position)
        cells = [bound or f"{rating.rating:.0f} ({rating.low:.0f}-{rating.high:.0f})"]
        for opponent in opponents:
            score = point.scores[opponent]
            low, high = score.interval
            cells.append(f"{score.score:.1%} ({100 * low:.0f}-{100 * high:.0f})")
        table.add_row(point.run, f"{point.minutes:.1f}", f"{point.timestep:,}", *cells)
    Console().print(table)

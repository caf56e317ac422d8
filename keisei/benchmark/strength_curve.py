"""``keisei benchmark curve``: scores of a run's milestones over the minutes of its training.

Runs keep a network at each of ``checkpoint.milestones`` minutes. Each plays the same opponents by
its policy; several runs of one recipe are one line, with the median and all their points.
"""

import json
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from matplotlib.figure import Figure
from rich.console import Console

from keisei.checkpoints.rotation import list_checkpoints
from keisei.checkpoints.store import load_checkpoint
from keisei.config_schema import DeviceConfig
from keisei.errors import KeiseiError
from keisei.evaluation.measure import measure
from keisei.evaluation.score import Score
from keisei.formats import new_table
from keisei.network.loading import read_network
from keisei.plotting import COLORS, HEIGHT, INK, new_figure
from keisei.run_files import MILESTONES, find_run

OPPONENTS: Final = ("greedy", "alphabeta:2", "alphabeta:3")
ProgressCallback = Callable[[str, int, int], None]


@dataclass(frozen=True)
class CurvePoint:
    """A network of a run, and how it scored."""

    run: str
    recipe: str
    """Runs with the same recipe are one line of the plot."""

    minutes: float
    timestep: int
    scores: dict[str, Score]

    def as_dict(self) -> dict[str, Any]:
        """Return the point as plain values, for JSON."""
        scores = {
            name: {"score": score.score, "low": score.interval[0], "high": score.interval[1],
                   "black": list(score.black), "white": list(score.white)}
            for name, score in self.scores.items()
        }  # fmt: skip
        return {
            "run": self.run,
            "recipe": self.recipe,
            "minutes": self.minutes,
            "timestep": self.timestep,
            "scores": scores,
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
    on_progress: ProgressCallback = lambda step, done, total: None,
) -> CurveReport:
    """Play all milestones of `runs` against each opponent.

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
        seconds = float(load_checkpoint(path).state["seconds"])
        scores = measure(network, config, games=games, seed=stored.timestep).scores
        points.append(
            CurvePoint(run.name, _recipe(run.name), seconds / 60.0, stored.timestep, scores)
        )
    return CurveReport(tuple(sorted(points, key=lambda point: (point.recipe, point.minutes))))


def read_curve(path: Path) -> CurveReport:
    """Read a report that ``--json`` printed."""
    try:
        points = json.loads(path.read_text("utf-8"))["points"]
        return CurveReport(tuple(_point(entry) for entry in points))
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise KeiseiError(f"{path} is not a report of keisei benchmark curve: {error}") from error


def _point(entry: Mapping[str, Any]) -> CurvePoint:
    scores = {
        name: Score(tuple(score["black"]), tuple(score["white"]))
        for name, score in entry["scores"].items()
    }
    return CurvePoint(entry["run"], entry["recipe"], entry["minutes"], entry["timestep"], scores)


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


def draw_curve(report: CurveReport) -> Figure:
    """Plot the score against each opponent over minutes, on a logarithmic scale."""
    opponents = list(dict.fromkeys(name for point in report.points for name in point.scores))
    recipes = list(dict.fromkeys(point.recipe for point in report.points))
    figure, all_axes = new_figure(columns=len(opponents), height=1.1 * HEIGHT)
    for axes, opponent in zip(all_axes, opponents, strict=True):
        for color, recipe in zip(COLORS, recipes, strict=False):
            points = [p for p in report.points if p.recipe == recipe and opponent in p.scores]
            for point in points:
                low, high = point.scores[opponent].interval
                axes.plot([point.minutes] * 2, [100 * low, 100 * high], color=color, alpha=0.35)
                axes.plot(
                    point.minutes, 100 * point.scores[opponent].score, ".", color=color, alpha=0.6
                )
            groups = _by_minute(points)
            medians = [
                100 * statistics.median(p.scores[opponent].score for p in group)
                for group in groups.values()
            ]
            axes.plot(list(groups), medians, color=color, linewidth=1.8, label=recipe)
        axes.set_xscale("log")
        marks = sorted({round(point.minutes) for point in report.points})
        axes.set_xticks(marks, [str(mark) for mark in marks])
        axes.minorticks_off()
        axes.set_ylim(0, 101)
        axes.set_title(f"score against {opponent}, %", fontsize=10, color=INK, loc="left")
        axes.set_xlabel("minutes of training", fontsize=9, color=INK)
    all_axes[0].legend(frameon=False, fontsize=9)
    return figure


def _by_minute(points: Sequence[CurvePoint]) -> dict[float, list[CurvePoint]]:
    """Group the points of several runs by their milestone."""
    groups: dict[float, list[CurvePoint]] = {}
    for point in points:
        groups.setdefault(float(round(point.minutes)) or point.minutes, []).append(point)
    return dict(sorted(groups.items()))


def print_curve_report(report: CurveReport) -> None:
    """Print the points as a table."""
    opponents = list(dict.fromkeys(name for point in report.points for name in point.scores))
    table = new_table("score over minutes of training")
    for heading in ("run", "minutes", "plies", *opponents):
        table.add_column(heading, justify="left" if heading == "run" else "right", no_wrap=True)
    for point in report.points:
        cells = []
        for opponent in opponents:
            score = point.scores[opponent]
            low, high = score.interval
            cells.append(f"{score.score:.1%} ({100 * low:.0f}-{100 * high:.0f})")
        table.add_row(point.run, f"{point.minutes:.1f}", f"{point.timestep:,}", *cells)
    Console().print(table)

"""The plots of a report, drawn from a run's history."""

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
from matplotlib.figure import Figure
from matplotlib.ticker import PercentFormatter

from keisei import metric_names as names
from keisei import plotting
from keisei.plotting import COLORS, FAINT, HEIGHT, INK
from keisei.runs.curves import smooth
from keisei.runs.history import History
from keisei.runs.journal import elo_estimate, score_estimates

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from keisei.evaluation.calibration import Calibration

_BLACK_WINS, _WHITE_WINS, _DRAWS, _PLY_LIMIT = "#2b2a27", "#d8cdb4", "#e69f00", "#d55e00"
_TIME_COLORS: Final = ("#009e73", "#56b4e9", "#cc79a7", "#f0e442", "#b9b4a7")

_MAX_MARKED: Final = 20
"""Maximum number of points that are marked: a line alone would hide a single point."""


class Plot(NamedTuple):
    """A plot of the report."""

    name: str
    """Name of its file without the suffix."""

    title: str
    caption: str
    """Explains what it shows and how to read it."""

    draw: Callable[[History], Figure | None]
    """Draws it; returns None while there is nothing to show."""


def png(figure: Figure) -> bytes:
    """Return a figure as a PNG file, its x axis starting at 0."""
    for axes in figure.axes:
        axes.set_xlim(left=0)  # after all plotting, since it stops autoscaling
    return plotting.png(figure)


def draw_elo(history: History) -> Figure | None:
    """Draw the rating with its 95 % interval as a band."""
    found = [(entry.timestep, elo_estimate(entry.metrics)) for entry in history.evaluations]
    points = [(timestep, rating) for timestep, rating in found if rating is not None]
    if not points:
        return None
    figure, (axes,) = _figure(1, 1)
    plotting.draw_ratings(
        axes, [timestep for timestep, _ in points], [rating for _, rating in points]
    )
    axes.set_ylabel("Elo")
    return figure


def draw_calibration(calibration: "Calibration") -> Figure:
    """Draw results over expected scores, with the number of positions below."""
    figure, (axes,) = plotting.new_figure(height=HEIGHT)
    expected = [entry.expected for entry in calibration.bins]
    scored = [entry.scored for entry in calibration.bins]
    shares = [entry.positions / calibration.positions for entry in calibration.bins]
    axes.bar(expected, shares, width=0.06, color=FAINT, label="share of the positions")
    axes.plot([0.0, 1.0], [0.0, 1.0], color=INK, linewidth=0.8, linestyle=(0, (4, 4)))
    axes.plot(expected, scored, color=COLORS[0], marker="o", markersize=5, label="score")
    axes.set_xlabel("expected score", fontsize=9, color=INK)
    axes.xaxis.set_major_formatter(PercentFormatter(1.0, decimals=0))
    axes.set_xlim(0.0, 1.0)
    _percentages(axes, margin=0.02)
    title = f"log-loss {calibration.log_loss:.3f}, {calibration.positions:,} positions"
    axes.set_title(title, fontsize=10, color=INK, loc="left")
    axes.legend(frameon=False, loc="upper left", labelcolor=INK)
    return figure


def draw_strength(history: History) -> Figure | None:
    """Draw the score against each opponent with its 95 % interval."""
    evaluations = [
        (entry.timestep, score_estimates(entry.metrics)) for entry in history.evaluations
    ]
    opponents = list(dict.fromkeys(name for _, found in evaluations for name in found))
    if not opponents:
        return None
    figure, (axes,) = _figure(1, 1)
    for opponent, color in zip(opponents, _cycle(COLORS), strict=False):
        points = [
            (timestep, found[opponent]) for timestep, found in evaluations if opponent in found
        ]
        plies = [timestep for timestep, _ in points]
        results = [strength for _, strength in points]
        scores = [strength.score for strength in results]
        margins = [
            [max(0.0, strength.score - strength.low) for strength in results],
            [max(0.0, strength.high - strength.score) for strength in results],
        ]
        axes.errorbar(
            plies, scores, yerr=margins, color=color, label=f"against {opponent}",
            marker="o", markersize=4, linewidth=1.8, elinewidth=1.0, capsize=2.5,
        )  # fmt: skip
    axes.axhline(0.5, color=INK, linewidth=0.8, linestyle=(0, (4, 4)))
    _percentages(axes, margin=0.02)
    axes.set_ylabel("score")
    axes.legend(frameon=False, loc="lower right", labelcolor=INK)
    return figure


_LEARNING_CURVES: Final = (
    (names.POLICY_LOSS, "policy loss"),
    (names.VALUE_LOSS, "value loss"),
    (names.ENTROPY, "entropy (nats)"),
    (names.APPROX_KL, "approximate KL"),
    (names.CLIP_FRACTION, "clip fraction"),
    (names.EXPLAINED_VARIANCE, "explained variance"),
    (names.GRAD_NORM, "gradient norm"),
    (names.LEARNING_RATE, "learning rate"),
)


def draw_learning(history: History) -> Figure | None:
    """Draw losses and other measures of healthy learning, one small plot each."""
    curves = [(label, *history.series(name)) for name, label in _LEARNING_CURVES]
    if not any(plies for _, plies, _ in curves):
        return None
    figure, all_axes = _figure(4, 2, height=7.2)
    for axes, (label, plies, values) in zip(all_axes, curves, strict=True):
        _curve(axes, plies, values, COLORS[0])
        axes.set_title(label, fontsize=10, color=INK, loc="left")
    return figure


def draw_lengths(history: History) -> Figure | None:
    """Draw the mean length of self-play games."""
    plies, values = history.series(names.MEAN_PLIES)
    if not plies:
        return None
    figure, (axes,) = _figure(1, 1)
    _curve(axes, plies, values, COLORS[2])
    axes.set_ylim(bottom=0.0)
    axes.set_ylabel("plies per game")
    return figure


def draw_outcomes(history: History) -> Figure | None:
    """Draw the outcomes of self-play games."""
    steps = [
        (step.timestep, step.metrics)
        for step in history.steps
        if any(names.shares(step.metrics, names.OUTCOMES))
    ]
    if not steps:
        return None
    bands: list[list[float]] = [[], [], [], []]
    for _, metrics in steps:
        black, draws, white = names.shares(metrics, names.OUTCOMES)
        at_limit = min(draws, max(0.0, names.finite(metrics.get(names.PLY_LIMIT_RATE, 0.0))))
        for band, share in zip(bands, (black, draws - at_limit, at_limit, white), strict=True):
            band.append(share)
    figure, (axes,) = _figure(1, 1)
    labels = ("Black wins", "draw", "draw at the ply limit", "White wins")
    _bands(
        axes,
        [ply for ply, _ in steps],
        bands,
        labels,
        (_BLACK_WINS, _DRAWS, _PLY_LIMIT, _WHITE_WINS),
    )
    _percentages(axes)
    axes.set_ylabel("share of games")
    return figure


def draw_speed(history: History) -> Figure | None:
    """Draw plies per second, and the shares of time by activity."""
    plies, values = history.series(names.SPS)
    if not plies:
        return None
    figure, (speed, time) = _figure(1, 2)
    _curve(speed, plies, values, COLORS[1])
    speed.set_ylim(bottom=0.0)
    speed.set_ylabel("plies per second")
    timed = [step for step in history.steps if any(names.shares(step.metrics, names.TIMES))]
    if timed:
        rows = [names.shares(step.metrics, names.TIMES) for step in timed]
        bands = [list(band) for band in zip(*rows, strict=True)]
        labels = ("environment", "inference", "learning", "waiting", "other")
        _bands(time, [step.timestep for step in timed], bands, labels, _TIME_COLORS)
    _percentages(time)
    time.set_ylabel("share of the time")
    return figure


PLOTS: Final = (
    Plot(
        "rating",
        "Elo",
        "Rating on the scale of docs/strength.md, with 95 % intervals. Triangles are bounds, where "
        "a rating is beyond the end of the scale.",
        draw_elo,
    ),
    Plot(
        "strength",
        "Scores",
        "Points per game against each opponent, a draw being half a point. Bars are 95 % "
        "intervals: where they overlap, a difference may be due to chance.",
        draw_strength,
    ),
    Plot(
        "learning",
        "Learning",
        "Each update as a faint line, a moving average over it. Entropy should fall slowly, "
        "explained variance rise, and KL and clip fraction stay small.",
        draw_learning,
    ),
    Plot(
        "outcomes", "How games end", "Outcomes of the self-play games of each step.", draw_outcomes
    ),
    Plot("lengths", "How long games are", "Mean length of the games of each step.", draw_lengths),
    Plot("speed", "Speed", "Plies per second of each step, and where its time went.", draw_speed),
)
"""The plots of a report, in the order of the page."""


def _figure(rows: int, columns: int, *, height: float = HEIGHT) -> "tuple[Figure, list[Axes]]":
    figure, all_axes = plotting.new_figure(rows, columns, height=height)
    for axes in all_axes:
        plotting.count_plies(axes)
    for axes in all_axes[-columns:]:
        plotting.name_plies(axes)
    return figure, all_axes


def _curve(axes: "Axes", plies: Sequence[int], values: Sequence[float], color: str) -> None:
    """Plot a noisy curve with its moving average or, if it has few points, with marks."""
    if len(plies) <= _MAX_MARKED:
        axes.plot(plies, values, color=color, linewidth=1.6, marker="o", markersize=3.5)
        return
    axes.plot(plies, values, color=color, linewidth=0.8, alpha=0.35)
    axes.plot(plies, smooth(np.array(values)), color=color, linewidth=1.8)


def _bands(
    axes: "Axes",
    plies: Sequence[int],
    bands: Sequence[Sequence[float]],
    labels: Sequence[str],
    colors: Sequence[str],
) -> None:
    """Plot shares on top of each other; a single step is drawn as a block."""
    if len(plies) == 1:
        plies, bands = [0, *plies], [[*band, *band] for band in bands]
    axes.stackplot(plies, bands, labels=list(labels), colors=list(colors), linewidth=0)
    axes.margins(x=0)
    axes.legend(
        loc="upper center", bbox_to_anchor=(0.5, 1.16), ncols=len(labels), frameon=False,
        fontsize=8.5, labelcolor=INK, handlelength=1.0, columnspacing=1.2,
    )  # fmt: skip


def _percentages(axes: "Axes", *, margin: float = 0.0) -> None:
    axes.set_ylim(-margin, 1.0 + margin)
    axes.yaxis.set_major_formatter(PercentFormatter(1.0))


def _cycle(colors: Sequence[str]) -> Iterable[str]:
    while True:
        yield from colors

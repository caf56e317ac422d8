"""The style of all plots: colours, figures, PNG and SVG files.

Uses matplotlib's `Figure` and none of pyplot's global state, so that plots can be drawn in any
thread, without a screen, and beside figures of other code.
"""

import io
from collections.abc import Sequence
from typing import TYPE_CHECKING, Final, Literal

from matplotlib import rc_context
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter

if TYPE_CHECKING:
    from matplotlib.axes import Axes

INK: Final = "#2b2a27"
FAINT: Final = "#d9d4c7"
COLORS: Final = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9")
"""Okabe and Ito's colours, which colour-blind readers can distinguish."""

HEIGHT: Final = 3.4
_WIDTH: Final = 9.0
_DPI: Final = 144


def new_figure(
    rows: int = 1, columns: int = 1, *, height: float = HEIGHT, grid: Literal["x", "y"] = "y"
) -> "tuple[Figure, list[Axes]]":
    """Return a new figure and its axes, row by row, with a shared x axis.

    Args:
        rows: number of rows of axes.
        columns: number of columns of axes.
        height: height of the figure in inches.
        grid: the axis whose ticks have grid lines.
    """
    figure = Figure(figsize=(_WIDTH, height), dpi=_DPI, layout="constrained", facecolor="white")
    all_axes: list[Axes] = list(figure.subplots(rows, columns, squeeze=False, sharex=True).flat)
    for axes in all_axes:
        for side, spine in axes.spines.items():
            spine.set_visible(side in ("left", "bottom"))
            spine.set_color(INK)
        axes.grid(axis=grid, color=FAINT, linewidth=0.7)
        axes.set_axisbelow(True)
        axes.tick_params(colors=INK, labelsize=9)
    return figure, all_axes


def count_plies(axes: "Axes") -> None:
    """Format the x axis as 20k or 1.5M."""
    axes.xaxis.set_major_formatter(EngFormatter(sep=""))


def name_plies(axes: "Axes") -> None:
    """Label the x axis as plies."""
    axes.set_xlabel("plies", fontsize=9, color=INK)


def draw_ratings(
    axes: "Axes", plies: Sequence[int], ratings: Sequence[tuple[float, float, float, str]]
) -> None:
    """Draw ratings over plies with their intervals as a band.

    Args:
        axes: what to draw on.
        plies: the place of each rating.
        ratings: (rating, low, high, position); where the position is ``above`` or ``below``, the
            scale ends, and a triangle points from the bound to where the rating is.
    """
    elo, low, high, positions = zip(*ratings, strict=True)
    if len(plies) == 1:  # a band would have no width
        axes.vlines(plies, low, high, color=COLORS[0], linewidth=1.0)
    axes.fill_between(plies, low, high, color=COLORS[0], alpha=0.2, linewidth=0)
    axes.plot(plies, elo, color=COLORS[0], linewidth=1.8, marker="o", markersize=4)
    for position, bounds, marker in (("above", low, "^"), ("below", high, "v")):
        places = [place for place, found in enumerate(positions) if found == position]
        if places:
            axes.plot(
                [plies[place] for place in places], [bounds[place] for place in places],
                color=COLORS[1], linestyle="none", marker=marker, markersize=9,
                label=f"{position} the scale",
            )  # fmt: skip
    if axes.get_legend_handles_labels()[0]:
        axes.legend(frameon=False, loc="lower right", labelcolor=INK)


def png(figure: Figure) -> bytes:
    """Return a figure as a PNG file."""
    FigureCanvasAgg(figure)
    buffer = io.BytesIO()
    # No metadata: the same figure gives the same bytes.
    figure.savefig(buffer, format="png", metadata={"Software": None})
    return buffer.getvalue()


def svg(figure: Figure) -> bytes:
    """Return a figure as an SVG file."""
    buffer = io.BytesIO()
    # No date, and no random ids: the same figure gives the same bytes.
    with rc_context({"svg.hashsalt": "keisei"}):
        FigureCanvasSVG(figure)
        figure.savefig(buffer, format="svg", metadata={"Date": None})
    return buffer.getvalue()

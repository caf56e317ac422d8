"""Plots of ratings: a ladder, and the strength of a run over its training."""

from collections.abc import Iterable

from matplotlib.figure import Figure

from keisei.evaluation.ladder import Ladder, Standing
from keisei.evaluation.run_strength import RunStrength
from keisei.plotting import (
    COLORS,
    HEIGHT,
    INK,
    count_plies,
    draw_ratings,
    name_plies,
    new_figure,
)


def draw_ladder(ladder: Ladder) -> Figure:
    """Plot the players of a ladder with their 95 % intervals, the strongest on top."""
    standings = ladder.standings
    figure, (axes,) = new_figure(height=0.9 + 0.32 * len(standings), grid="x")
    places = range(len(standings))
    axes.errorbar(
        [standing.elo for standing in standings], places, xerr=_margins(standings),
        color=COLORS[0], fmt="o", markersize=5, elinewidth=1.4, capsize=3,
    )  # fmt: skip
    axes.set_yticks(places, [standing.name for standing in standings])
    axes.set_ylim(len(standings) - 0.5, -0.5)
    axes.set_xlabel(f"Elo ({ladder.scale}), with 95 % intervals", fontsize=9, color=INK)
    return figure


def draw_run(strength: RunStrength) -> Figure:
    """Plot the Elo of a run's checkpoints over plies, with the opponents as horizontal lines."""
    figure, (axes,) = new_figure(height=1.3 * HEIGHT)
    for place, (name, elo) in enumerate(strength.opponents):
        axes.axhline(elo, color=INK, linewidth=0.8, linestyle=(0, (4, 4)))
        axes.annotate(  # side by side, as some have nearly the same strength
            name, (1.0 - 0.14 * place, elo), xycoords=("axes fraction", "data"),
            xytext=(-2, 2), textcoords="offset points", ha="right", fontsize=8.5, color=INK,
        )  # fmt: skip
    placements = [checkpoint.placement for checkpoint in strength.checkpoints]
    draw_ratings(
        axes,
        [checkpoint.timestep for checkpoint in strength.checkpoints],
        [(found.rating, found.low, found.high, found.position) for found in placements],
    )
    axes.set_ylabel(f"Elo (scale {strength.scale.version})")
    axes.set_title(strength.run, fontsize=10, color=INK, loc="left")
    axes.set_xlim(left=0)
    count_plies(axes)
    name_plies(axes)
    return figure


def _margins(standings: Iterable[Standing]) -> list[list[float]]:
    listed = list(standings)
    return [
        [standing.elo - standing.low for standing in listed],
        [standing.high - standing.elo for standing in listed],
    ]

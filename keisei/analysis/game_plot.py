"""The plot of a game: Black's chances after each move, with the blunders marked."""

from typing import Final

from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from keisei.analysis.game_analysis import GameAnalysis
from keisei.plotting import COLORS, FAINT, HEIGHT, INK, new_figure
from keisei.shogi.types import Color

_LABELLED: Final = 6
"""Blunders that are labelled, the worst ones: more labels would cover each other."""

_MARGIN: Final = 0.1
"""Share of the width at either side in which a centred label could be cut off."""

_LAST_LATIN: Final = "\u024f"
"""Last character that the font of plots is sure to have."""


def draw_game(game: GameAnalysis, *, blunder: float) -> Figure:
    """Plot Black's chances after each move and mark the moves that cost `blunder` or more."""
    figure, (axes,) = new_figure(height=1.15 * HEIGHT)
    chances = [100 * position.chances(Color.BLACK) for position in game.positions]
    plies = range(len(chances))
    axes.fill_between(plies, chances, 50, color=FAINT, alpha=0.6, linewidth=0)
    axes.axhline(50, color=INK, linewidth=0.8)
    axes.plot(plies, chances, color=COLORS[0], linewidth=1.8)
    marked = game.turning_points(len(game.moves), min_loss=blunder)
    labelled = game.turning_points(_LABELLED, min_loss=blunder)
    for color, drawn, sign in ((Color.BLACK, COLORS[1], "v"), (Color.WHITE, COLORS[2], "^")):
        if own := [move.ply for move in marked if move.color is color]:
            axes.plot(
                own, [chances[ply] for ply in own], sign, color=drawn, markersize=7,
                label=f"blunders of {color.name.title()}",
            )  # fmt: skip
    for move in labelled:
        is_black = move.color is Color.BLACK  # then the line falls, and there is room below it
        place = move.ply / len(game.moves)
        axes.annotate(
            f"{move.ply}. {move.move.usi}", (move.ply, chances[move.ply]),
            xytext=(0, -8 if is_black else 8), textcoords="offset points", fontsize=8.5, color=INK,
            ha="left" if place < _MARGIN else "right" if place > 1 - _MARGIN else "center",
            va="top" if is_black else "bottom",
        )  # fmt: skip
    axes.set_xlim(0, max(len(chances) - 1, 1))
    axes.set_ylim(-12, 112)
    axes.set_yticks([0, 25, 50, 75, 100])
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.set_ylabel("Black's chances in %")
    axes.set_xlabel("moves", fontsize=9, color=INK)
    axes.set_title(_title(game), fontsize=10, color=INK, loc="left")
    if marked:
        figure.legend(frameon=False, fontsize=8.5, loc="outside lower right", ncols=2)
    return figure


def _title(game: GameAnalysis) -> str:
    black, white = (
        name if name and max(name) <= _LAST_LATIN else side
        for name, side in ((game.record.black, "Black"), (game.record.white, "White"))
    )
    effort = f", {game.simulations} simulations" if game.simulations else ""
    # Matplotlib reads text between two dollar signs as mathematics.
    return f"{black} - {white}, analysed by {game.network}{effort}".replace("$", r"\$")

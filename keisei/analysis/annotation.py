"""The course of a game as a picture: Black's chances over the moves."""

from dataclasses import replace
from typing import Final

from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from keisei.analysis.game_analysis import (
    Candidate,
    GameAnalysis,
    MoveAnalysis,
    PositionAnalysis,
)
from keisei.plotting import (
    COLORS,
    FAINT,
    HEIGHT,
    INK,
    new_figure,
)
from keisei.shogi.notation.record import GameRecord, text_lines
from keisei.shogi.types import Color

MARK: Final = "keisei: "
"""How each line begins that is written here: so it is told from those of people, and replaced."""

BEST_MOVES: Final = 3
"""Moves that are named at each position."""


def annotated(game: GameAnalysis, *, blunder: float) -> GameRecord:
    """The record with a comment at each move: chances, best moves, blunders.

    Comments of people are kept. Those of an earlier annotation are replaced.

    Args:
        game: what is thought of the game.
        blunder: a move is one if it costs so much of the chances, from 0 to 1.
    """
    record = game.record
    moves = [
        replace(recorded, comment=_joined(recorded.comment, _remarks(judged, game, blunder)))
        for recorded, judged in zip(record.moves, game.moves, strict=True)
    ]
    return replace(record, moves=moves, comment=_joined(record.comment, _beginning(game, blunder)))


def percent(share: float) -> str:
    """A share in whole per cent, certain only where it is.

    >>> percent(0.4821), percent(0.9999), percent(1.0), percent(0.0001)
    ('48 %', '99 %', '100 %', '1 %')
    """
    rounded = round(100 * share)
    if 0.0 < share < 1.0:
        rounded = min(max(rounded, 1), 99)
    return f"{rounded} %"


def chances_text(position: PositionAnalysis) -> str:
    """Both sides' chances."""
    return ", ".join(f"{color.name.title()} {percent(position.chances(color))}" for color in Color)


def candidate_text(candidate: Candidate, simulations: int) -> str:
    """A move with its probability, and its share of a search."""
    text = f"{candidate.move.usi} {percent(candidate.probability)}"
    return f"{text} ({candidate.visits} of {simulations})" if candidate.visits else text


def _beginning(game: GameAnalysis, blunder: float) -> list[str]:
    effort = f", {game.simulations} simulations a position" if game.simulations else ""
    return [
        f"judged by {game.predictor}{effort}; a blunder costs {percent(blunder)} or more",
        f"at the start: {chances_text(game.positions[0])}",
    ]


def _remarks(judged: MoveAnalysis, game: GameAnalysis, blunder: float) -> list[str]:
    best = ", ".join(
        candidate_text(candidate, game.simulations)
        for candidate in judged.before.candidates[:BEST_MOVES]
    )
    remarks = [
        f"after {judged.move.usi}: {chances_text(judged.after)}",
        f"best moves were: {best}",
    ]
    if judged.loss >= blunder:
        before, after = (
            percent(position.chances(judged.color)) for position in (judged.before, judged.after)
        )
        remarks.append(
            f"blunder: {judged.color.name.title()} falls from {before} to {after}; "
            f"better was {judged.best.move.usi}"
        )
    return remarks


def _joined(comment: str, remarks: list[str]) -> str:
    kept = [line for line in text_lines(comment) if not line.startswith(MARK)]
    return "\n".join([*kept, *(MARK + remark for remark in remarks)])


_NAMED: Final = 6
"""Blunders that are named in the picture, the worst of them; more would cover each other."""

_LAST_LATIN: Final = "\u024f"
"""Last character that the font of plots is sure to have."""


def draw_game(game: GameAnalysis, *, blunder: float) -> Figure:
    """Black's chances after each move, with the moves that cost `blunder` or more of them."""
    figure, (axes,) = new_figure(height=1.15 * HEIGHT)
    chances = [100 * position.chances(Color.BLACK) for position in game.positions]
    plies = range(len(chances))
    axes.fill_between(plies, chances, 50, color=FAINT, alpha=0.6, linewidth=0)
    axes.axhline(50, color=INK, linewidth=0.8)
    axes.plot(plies, chances, color=COLORS[0], linewidth=1.8)
    marked = game.turning_points(len(game.moves), least=blunder)
    named = game.turning_points(_NAMED, least=blunder)
    for color, drawn, sign in ((Color.BLACK, COLORS[1], "v"), (Color.WHITE, COLORS[2], "^")):
        if own := [move.ply for move in marked if move.color is color]:
            axes.plot(
                own, [chances[ply] for ply in own], sign, color=drawn, markersize=7,
                label=f"blunders of {color.name.title()}",
            )  # fmt: skip
    for move in named:
        is_black = move.color is Color.BLACK  # then the line has fallen, and there is room below
        place = move.ply / len(game.moves)
        axes.annotate(
            f"{move.ply}. {move.move.usi}", (move.ply, chances[move.ply]),
            xytext=(0, -8 if is_black else 8), textcoords="offset points", fontsize=8.5, color=INK,
            ha="left" if place < 0.1 else "right" if place > 0.9 else "center",
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
    # Matplotlib would take what stands between two dollar signs for mathematics.
    return f"{black} - {white}, judged by {game.predictor}{effort}".replace("$", r"\$")

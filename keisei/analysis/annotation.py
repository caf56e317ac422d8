"""What is thought of a game, written into its record as comments."""

from dataclasses import replace
from typing import Final

from keisei.analysis.judged import Candidate, JudgedGame, JudgedMove, JudgedPosition
from keisei.shogi.notation.record import GameRecord
from keisei.shogi.notation.text import text_lines
from keisei.shogi.pieces import Color

MARK: Final = "keisei: "
"""How each line begins that is written here: so it is told from those of people, and replaced."""

BEST_MOVES: Final = 3
"""Moves that are named at each position."""


def annotated(game: JudgedGame, *, blunder: float) -> GameRecord:
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


def chances_text(position: JudgedPosition) -> str:
    """Both sides' chances."""
    return ", ".join(f"{color.name.title()} {percent(position.chances(color))}" for color in Color)


def candidate_text(candidate: Candidate, simulations: int) -> str:
    """A move with its probability, and its share of a search."""
    text = f"{candidate.move.usi} {percent(candidate.probability)}"
    return f"{text} ({candidate.visits} of {simulations})" if candidate.visits else text


def _beginning(game: JudgedGame, blunder: float) -> list[str]:
    effort = f", {game.simulations} simulations a position" if game.simulations else ""
    return [
        f"judged by {game.judge}{effort}; a blunder costs {percent(blunder)} or more",
        f"at the start: {chances_text(game.positions[0])}",
    ]


def _remarks(judged: JudgedMove, game: JudgedGame, blunder: float) -> list[str]:
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

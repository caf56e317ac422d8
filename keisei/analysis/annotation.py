"""Comments in a game record: chances, best moves and blunders by a `GameAnalysis`."""

from dataclasses import replace
from typing import Final

from keisei.analysis.game_analysis import GameAnalysis, MoveAnalysis
from keisei.analysis.position_analysis import Candidate, PositionAnalysis
from keisei.shogi.notation.record import GameRecord, text_lines
from keisei.shogi.types import Color

MARK: Final = "keisei: "
"""Prefix of the comment lines written here, by which a later annotation replaces them."""

BEST_MOVES: Final = 3
"""Candidates listed at each move."""


def annotated(game: GameAnalysis, *, blunder: float) -> GameRecord:
    """Return the record with a comment at each move: chances, best moves, blunders.

    Comments of people are kept. Those of an earlier annotation are replaced.

    Args:
        game: the analysis.
        blunder: loss of expected score, from 0 to 1, from which on a move is a blunder.
    """
    record = game.record
    moves = [
        replace(recorded, comment=_joined(recorded.comment, _remarks(move, game, blunder)))
        for recorded, move in zip(record.moves, game.moves, strict=True)
    ]
    return replace(record, moves=moves, comment=_joined(record.comment, _summary(game, blunder)))


def percent(share: float) -> str:
    """Format a share in whole per cent; 0 and 100 only if it is exactly that.

    >>> percent(0.4821), percent(0.9999), percent(1.0), percent(0.0001)
    ('48 %', '99 %', '100 %', '1 %')
    """
    rounded = round(100 * share)
    if 0.0 < share < 1.0:
        rounded = min(max(rounded, 1), 99)
    return f"{rounded} %"


def chances_text(position: PositionAnalysis) -> str:
    """Format the chances of both sides."""
    return ", ".join(f"{color.name.title()} {percent(position.chances(color))}" for color in Color)


def candidate_text(candidate: Candidate, simulations: int) -> str:
    """Format a move with its probability and, after a search, its visits."""
    text = f"{candidate.move.usi} {percent(candidate.probability)}"
    return f"{text} ({candidate.visits} of {simulations})" if candidate.visits else text


def _summary(game: GameAnalysis, blunder: float) -> list[str]:
    effort = f", {game.simulations} simulations a position" if game.simulations else ""
    return [
        f"analysed by {game.network}{effort}; a blunder costs {percent(blunder)} or more",
        f"at the start: {chances_text(game.positions[0])}",
    ]


def _remarks(move: MoveAnalysis, game: GameAnalysis, blunder: float) -> list[str]:
    best = ", ".join(
        candidate_text(candidate, game.simulations)
        for candidate in move.before.candidates[:BEST_MOVES]
    )
    remarks = [
        f"after {move.move.usi}: {chances_text(move.after)}",
        f"best moves were: {best}",
    ]
    if move.loss >= blunder:
        before, after = (
            percent(position.chances(move.color)) for position in (move.before, move.after)
        )
        remarks.append(
            f"blunder: {move.color.name.title()} falls from {before} to {after}; "
            f"better was {move.best.move.usi}"
        )
    return remarks


def _joined(comment: str, remarks: list[str]) -> str:
    kept = [line for line in text_lines(comment) if not line.startswith(MARK)]
    return "\n".join([*kept, *(MARK + remark for remark in remarks)])

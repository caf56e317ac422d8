"""Whether a position that people have set up can be played, and why not, in the page's language."""

import re
from typing import Final

from keisei.analysis.analysis_session import require_kings
from keisei.errors import IllegalPositionError, KeiseiError
from keisei.shogi.game import ShogiGame
from keisei.shogi.types import Color, Diagram, PieceKind
from keisei.web.languages import mark, tr
from keisei.web.play.wording import PIECES, RANKS, error_text, side_text

REASONS: Final = (
    mark("{side} has {number} kings"),
    mark("there is no king on the board"),
    mark("{side}'s king is missing: networks analyse positions with both kings"),
    mark("{side} has two pawns on file {number} (nifu)"),
    mark("the {piece} on {square} could never move again"),
    mark("{total} pieces of kind {kind}, but a set has {number}"),
    mark("{side} is in check and it is not {other}'s turn"),
    mark("the game is over here: {side} has no legal move"),
)
"""Why a position cannot be played: the messages of the rules, and of this module."""


def position_error(diagram: Diagram) -> KeiseiError | None:
    """Return why nobody can play or analyse from a position; None if people can."""
    try:
        game = ShogiGame(diagram)
        require_kings(game)
    except KeiseiError as error:
        return error
    if not len(game.legal_actions):
        side = diagram.turn.name.title()
        return IllegalPositionError(f"the game is over here: {side} has no legal move")
    return None


def position_text(error: KeiseiError) -> str:
    """Return why a position cannot be played, in the language of the page."""
    message = str(error)
    for reason in REASONS:
        found = _pattern(reason).fullmatch(message)
        if found is not None:
            return tr(reason, **{name: _word(text) for name, text in found.groupdict().items()})
    return error_text(error)


def _pattern(reason: str) -> re.Pattern[str]:
    """Return what matches a message, with a group for each of its places."""
    return re.compile(re.sub(r"\\\{(\w+)\\\}", r"(?P<\1>\\S+?(?: \\S+?)?)", re.escape(reason)))


def _word(text: str) -> str:
    """Return a side, a piece, a letter of a kind or a square in the language of the page."""
    if re.fullmatch("[1-9][a-i]", text):
        return text[0] + tr(RANKS)["abcdefghi".index(text[1])]
    sides = {color.name.title(): side_text(color) for color in Color}
    names = {kind.name.lower(): tr(PIECES[kind]) for kind in PieceKind}
    kinds = {kind.symbol: tr(PIECES[kind]) for kind in PieceKind}
    return sides.get(text) or names.get(text) or kinds.get(text) or text

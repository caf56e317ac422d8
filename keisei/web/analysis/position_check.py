"""Whether a position that people have set up can be played, and why not, in the page's language."""

from typing import Final

from keisei.analysis.analysis_session import require_kings
from keisei.errors import IllegalPositionError, KeiseiError
from keisei.shogi.game import ShogiGame
from keisei.shogi.types import Diagram
from keisei.web.languages import mark
from keisei.web.play.error_wording import error_text, retold

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
    """Return why a position cannot be played or analysed; None if it can."""
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
    return retold(str(error), REASONS) or error_text(error)

"""Whether a position that people have set up can be played."""

from keisei.analysis.analysis_session import require_kings
from keisei.errors import IllegalPositionError, KeiseiError
from keisei.shogi.game import ShogiGame
from keisei.shogi.types import Diagram


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

"""Games of people against players: the session of a game, its opponents, the terminal."""

from typing import TYPE_CHECKING

from keisei.front_door import imported_on_use
from keisei.play.session import GameSession

if TYPE_CHECKING:
    from keisei.play.opponent import Opponent

__all__ = ["GameSession", "Opponent"]

# Players and networks take a while to import.
__getattr__, __dir__ = imported_on_use(__name__, {"Opponent": "opponent"})

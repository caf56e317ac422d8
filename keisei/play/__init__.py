"""Games of people against players: the session of a game, its opponents, the terminal."""

from keisei.play.opponent import Opponent
from keisei.play.session import GameSession
from keisei.play.terminal import TerminalGame

__all__ = ["GameSession", "Opponent", "TerminalGame"]

"""Games of people against players: the session of a game, its opponents, the terminal."""

from typing import TYPE_CHECKING

from keisei.play.session import GameSession

if TYPE_CHECKING:
    from keisei.play.opponent import Opponent

__all__ = ["GameSession", "Opponent"]


def __getattr__(name: str) -> object:
    """Import `Opponent` at its first use: players and networks take a while to import."""
    if name != "Opponent":
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from keisei.play.opponent import Opponent

    return Opponent


def __dir__() -> list[str]:
    return sorted([*globals(), *__all__])

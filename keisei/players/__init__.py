"""Players: bots, networks and USI engines, made from player specs.

>>> from keisei.players import make_player
>>> make_player("alphabeta:2", threads=1).name
'alphabeta:2'
"""

from keisei.players.player import BROKE_RULES, FAILED, RESIGNS, LegalIndices, Player
from keisei.players.spec import PlayerSpecError, make_player, open_players

__all__ = [
    "BROKE_RULES",
    "FAILED",
    "RESIGNS",
    "LegalIndices",
    "Player",
    "PlayerSpecError",
    "make_player",
    "open_players",
]

"""What strength is measured by unless somebody says otherwise. Light to import: options show it."""

from typing import Final

YARDSTICK: Final = "alphabeta:2"
"""The bot that strength is compared with."""

OPPONENTS: Final = ("random", "greedy", "alphabeta:1", "alphabeta:2,random=0.25", YARDSTICK)
"""Specs of the players that every run is measured by, the weakest first.

The careless one is a rung between two who are so unequal that their games say nothing.
"""

GAMES: Final = 100
"""Games of each two players."""

MORE_GAMES_OF_OPPONENTS: Final = 10
"""How many times as many the standard opponents play among each other, once and for all.

They take seconds, and every rating hangs on them: of 2,000 games against random, greedy drew 58 and
lost none, so a few games leave the distance between the two wide open.
"""

CHECKPOINTS: Final = 8
"""Checkpoints of a run that are measured."""

OPENING_PLIES: Final = 4
"""Random legal moves at the start of each game: without them the same game is played again."""

PLY_LIMIT: Final = 512
"""Ply at which a game is a draw."""

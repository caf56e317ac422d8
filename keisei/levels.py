"""Levels of strength, 1 to 10, of any network: less thought and more chance make it weaker.

>>> LEVELS[MAX_LEVEL].temperature
0.0
"""

from typing import Final, NamedTuple


class Level(NamedTuple):
    """How a network plays at a level."""

    simulations: int
    """Of the tree search for each move; 0: by the policy alone."""

    temperature: float
    """Of the policy, or of the visits; 0: always the best move."""

    mate_plies: int
    """Longest mate that is played by rule, in plies; 0: none."""


MAX_LEVEL: Final = 10
DEFAULT_LEVEL: Final = 4

LEVELS: Final = {
    1: Level(0, 2.5, 0),
    2: Level(0, 1.7, 0),
    3: Level(0, 1.2, 1),
    4: Level(0, 0.8, 1),
    5: Level(0, 0.25, 3),
    6: Level(16, 0.0, 3),
    7: Level(64, 0.0, 3),
    8: Level(256, 0.0, 3),
    9: Level(1_024, 0.0, 3),
    10: Level(16_384, 0.0, 5),
}
"""Each scores 70 to 85 % against the one below: ``docs/strength.md``. A USI engine at level 10
thinks as long as its clock allows."""

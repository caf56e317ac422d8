"""Levels of strength, 1 to 10, of any network: less thought and more chance make it weaker.

>>> LEVELS[1].simulations, LEVELS[MAX_LEVEL].spread
(0, 0.0)
"""

from typing import Final, NamedTuple


class Level(NamedTuple):
    """How a network plays at a level."""

    simulations: int
    """Of the tree search for each move, whose best move is played; 0: by the policy alone."""

    spread: float
    """Of the policy: moves are drawn after the logarithms of their probabilities have been scaled
    to this standard deviation. A temperature would not do: how sure a policy sounds differs tenfold
    between networks. 0: always the best move."""

    mate_plies: int
    """Longest mate that is played by rule, in plies; 0: none."""


MAX_LEVEL: Final = 10
DEFAULT_LEVEL: Final = 4

LEVELS: Final = {
    1: Level(0, 0.91, 0),
    2: Level(0, 1.19, 0),
    3: Level(0, 1.5, 0),
    4: Level(0, 1.86, 0),
    5: Level(0, 2.38, 0),
    6: Level(0, 3.25, 0),
    7: Level(0, 5.4, 0),
    8: Level(0, 15.0, 3),
    9: Level(17, 0.0, 3),
    10: Level(16_384, 0.0, 5),
}
"""From 1 to 9 each scores 70 to 85 % against the one below, and 1 loses to `greedy`; 10 is all that
there is: ``docs/strength.md``. A USI engine at level 10 thinks as long as its clock allows."""

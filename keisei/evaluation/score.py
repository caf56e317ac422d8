"""The result of a match."""

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Score:
    """Wins, draws and losses of the network, by the colour that it had."""

    black: tuple[int, int, int]
    white: tuple[int, int, int]

    @property
    def games(self) -> int:
        """How many games were played."""
        return sum(self.black) + sum(self.white)

    @property
    def score(self) -> float:
        """Points per game, a draw being half a point."""
        wins, draws = (self.black[index] + self.white[index] for index in (0, 1))
        return (wins + draws / 2) / self.games

    @property
    def interval(self) -> tuple[float, float]:
        """95 % confidence interval of `score` (Wilson's, which also holds near 0 and 1)."""
        z, n, p = 1.96, self.games, self.score
        center = (p + z * z / (2 * n)) / (1 + z * z / n)
        half = z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n)) / (1 + z * z / n)
        return max(0.0, center - half), min(1.0, center + half)

    def __str__(self) -> str:
        wins, draws, losses = (self.black[index] + self.white[index] for index in range(3))
        low, high = self.interval
        return f"{self.score:.1%} ({wins}-{draws}-{losses}, 95 % {low:.1%} to {high:.1%})"

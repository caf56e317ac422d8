"""The result of a match, and the difference of strength that it stands for."""

import math
from dataclasses import dataclass


@dataclass(frozen=True)
class Score:
    """Wins, draws and losses of a player, by the colour that it had."""

    black: tuple[int, int, int]
    white: tuple[int, int, int]

    @property
    def games(self) -> int:
        """How many games were played."""
        return sum(self.black) + sum(self.white)

    @property
    def total(self) -> tuple[int, int, int]:
        """Wins, draws and losses with both colours."""
        wins, draws, losses = (a + b for a, b in zip(self.black, self.white, strict=True))
        return wins, draws, losses

    @property
    def score(self) -> float:
        """Points per game, a draw being half a point. There must have been games."""
        wins, draws, _ = self.total
        return (wins + draws / 2) / self.games

    @property
    def interval(self) -> tuple[float, float]:
        """95 % confidence interval of `score` (Wilson's, which also holds near 0 and 1)."""
        z, n, p = 1.96, self.games, self.score
        center = (p + z * z / (2 * n)) / (1 + z * z / n)
        half = z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n)) / (1 + z * z / n)
        return max(0.0, center - half), min(1.0, center + half)

    @property
    def elo(self) -> float:
        """Points of Elo that the player is ahead; infinite if one side won everything."""
        return elo_difference(self.score)

    @property
    def elo_interval(self) -> tuple[float, float]:
        """95 % confidence interval of `elo`."""
        # Rounding can leave the interval of a clean sweep just short of the score itself.
        low, high = self.interval
        return (
            elo_difference(min(low, self.score)),
            elo_difference(max(high, self.score)),
        )

    def __str__(self) -> str:
        if self.games == 0:
            return "no games"
        wins, draws, losses = self.total
        low, high = self.interval
        return f"{self.score:.1%} ({wins}-{draws}-{losses}, 95 % {low:.1%} to {high:.1%})"


def elo_difference(score: float) -> float:
    """Points of Elo that a score between 0 and 1 stands for; infinite at the ends."""
    if score <= 0.0:
        return -math.inf
    if score >= 1.0:
        return math.inf
    return -400.0 * math.log10(1.0 / score - 1.0)


def expected_score(elo: float) -> float:
    """The score that so many points of Elo more let expect: the inverse of `elo_difference`."""
    # 1 / (1 + 10^(-elo / 400)), in a form that cannot overflow.
    return 0.5 + 0.5 * math.tanh(elo * math.log(10.0) / 800.0)

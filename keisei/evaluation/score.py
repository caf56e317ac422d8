"""Score of a match, its Elo difference, and a sequential test of which player is stronger.

`Sprt` is Wald's sequential probability ratio test, in the generalised form that engine testers use:
the distribution of a game's points (0, 1/2, 1) is not known, only their mean under each hypothesis,

    H0: the difference is `elo0` points, so the mean is s0 = 1 / (1 + 10^(-elo0 / 400))
    H1: the difference is `elo1` points, so the mean is s1

With n games of mean s and variance v (of a single game), and by the normal approximation, the
logarithm of the likelihood ratio is

    LLR = n (s1 - s0) (2 s - s0 - s1) / (2 v)

The test continues while log(beta / (1 - alpha)) < LLR < log((1 - beta) / alpha), and then decides
for H0 or H1. If H0 is true it errs with probability alpha at most, if H1 is true with beta.
"""

import math
from dataclasses import dataclass
from enum import StrEnum
from typing import Final

from keisei.errors import KeiseiError


@dataclass(frozen=True)
class Score:
    """Wins, draws and losses of a player, by colour."""

    black: tuple[int, int, int]
    white: tuple[int, int, int]

    @property
    def games(self) -> int:
        """Number of games."""
        return sum(self.black) + sum(self.white)

    @property
    def total(self) -> tuple[int, int, int]:
        """Wins, draws and losses with both colours."""
        wins, draws, losses = (a + b for a, b in zip(self.black, self.white, strict=True))
        return wins, draws, losses

    @property
    def score(self) -> float:
        """Points per game, a draw being half a point. There must be at least one game."""
        return _points_per_game(self.total)

    @property
    def as_black(self) -> float | None:
        """Points per game as Black; None without such games."""
        return _points_per_game(self.black) if any(self.black) else None

    @property
    def as_white(self) -> float | None:
        """Points per game as White; None without such games."""
        return _points_per_game(self.white) if any(self.white) else None

    @property
    def interval(self) -> tuple[float, float]:
        """95 % confidence interval of `score` (Wilson's, which also holds near 0 and 1)."""
        z, n, p = 1.96, self.games, self.score
        center = (p + z * z / (2 * n)) / (1 + z * z / n)
        half = z * math.sqrt(p * (1 - p) / n + z * z / (4 * n * n)) / (1 + z * z / n)
        return max(0.0, center - half), min(1.0, center + half)

    @property
    def elo(self) -> float:
        """Elo difference to the opponent; infinite if one side won all games."""
        return elo_difference(self.score)

    @property
    def elo_interval(self) -> tuple[float, float]:
        """95 % confidence interval of `elo`."""
        # By rounding, the interval of a clean sweep can end just short of the score itself.
        low, high = self.interval
        return (
            elo_difference(min(low, self.score)),
            elo_difference(max(high, self.score)),
        )

    @property
    def reversed(self) -> "Score":
        """The opponent's score in the same games."""
        black, white = ((lost, drawn, won) for won, drawn, lost in (self.white, self.black))
        return Score(black, white)

    def __add__(self, other: "Score") -> "Score":
        black, white = (
            tuple(a + b for a, b in zip(mine, its, strict=True))
            for mine, its in ((self.black, other.black), (self.white, other.white))
        )
        return Score((black[0], black[1], black[2]), (white[0], white[1], white[2]))

    def __str__(self) -> str:
        if self.games == 0:
            return "no games"
        wins, draws, losses = self.total
        low, high = self.interval
        return f"{self.score:.1%} ({wins}-{draws}-{losses}, 95 % {low:.1%} to {high:.1%})"


def _points_per_game(counts: tuple[float, float, float]) -> float:
    wins, draws, losses = counts
    return (wins + draws / 2) / (wins + draws + losses)


def elo_difference(score: float) -> float:
    """Elo difference for a score between 0 and 1; infinite at both ends."""
    if score <= 0.0:
        return -math.inf
    if score >= 1.0:
        return math.inf
    return -400.0 * math.log10(1.0 / score - 1.0)


def expected_score(elo: float) -> float:
    """Expected score for an Elo difference: the inverse of `elo_difference`."""
    # 1 / (1 + 10^(-elo / 400)), in a form that cannot overflow.
    return 0.5 + 0.5 * math.tanh(elo * math.log(10.0) / 800.0)


ERROR_RATE: Final = 0.05
"""Alpha and beta of the test."""

UPPER: Final = math.log((1.0 - ERROR_RATE) / ERROR_RATE)
LOWER: Final = -UPPER

SPRT_ROUND_GAMES: Final = 32
"""Games between two tests: few enough to stop early, enough for the normal approximation."""

_PSEUDO_COUNT: Final = 0.5
"""Added to each count to estimate the variance, which would be 0 for a clean sweep."""


class Verdict(StrEnum):
    """Result of the test so far."""

    H0 = "H0"
    H1 = "H1"
    UNDECIDED = "undecided"


@dataclass(frozen=True)
class Sprt:
    """Sequential probability ratio test of two hypotheses about an Elo difference."""

    elo0: float
    elo1: float

    def __post_init__(self) -> None:
        if not (math.isfinite(self.elo0) and math.isfinite(self.elo1) and self.elo0 < self.elo1):
            raise KeiseiError(
                f"an SPRT needs two finite Elo differences, the lower one first, "
                f"not {self.elo0:g} and {self.elo1:g}"
            )

    def log_likelihood_ratio(self, score: Score) -> float:
        """Return the logarithm of the likelihood under H1 over that under H0."""
        if score.games == 0:
            return 0.0
        s0, s1 = expected_score(self.elo0), expected_score(self.elo1)
        drift = (s1 - s0) * (2.0 * score.score - s0 - s1)
        return score.games * drift / (2.0 * _variance(score))

    def verdict(self, score: Score) -> Verdict:
        """Return the hypothesis that is accepted, if the games suffice."""
        ratio = self.log_likelihood_ratio(score)
        if ratio >= UPPER:
            return Verdict.H1
        return Verdict.H0 if ratio <= LOWER else Verdict.UNDECIDED


def _variance(score: Score) -> float:
    """Return the variance of a game's points, with pseudo-counts."""
    wins, draws, losses = (count + _PSEUDO_COUNT for count in score.total)
    mean = _points_per_game((wins, draws, losses))
    return (wins + draws / 4) / (wins + draws + losses) - mean**2

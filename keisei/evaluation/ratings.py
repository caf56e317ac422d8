"""Elo ratings by maximum likelihood, with their covariance.

The expected score of Black, a draw being half a point, is Elo's:

    E(score) = 1 / (1 + exp(-x)),    x = Black's rating - White's + advantage of the first move

in units of 400 / ln 10 points. 100 points more are a score of 64 %, however many games are drawn.
The likelihood counts a draw as half a win and half a loss; it is raised to a power (`dispersion`)
which makes errors those of scores that vary less the more draws there are. It has one maximum,
which Newton's method finds; the curvature there gives the errors.

Some players have fixed ratings, at least one. For players who won or lost all their games the data
alone give no finite rating: a wide prior (`PRIOR_ELO`) keeps it finite and makes its error large.

Players are not points on a line: one may beat another more often than their results against the
rest tell. With ``pair_deviation`` each pair has a deviation of its own added to x, drawn from a
normal distribution with that standard deviation. Many games of one pair then count less than some
games of many, and errors include the doubt about who was met. `fit_pair_deviation` estimates it.
"""

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from keisei.errors import KeiseiError

ELO_PER_UNIT: Final = 400.0 / math.log(10.0)
"""Points of Elo in a unit of the model's own scale."""

PRIOR_ELO: Final = 1200.0
"""Standard deviation of the prior on the rating difference of two players who have met.

There is no prior on the ratings themselves: on a long ladder they may be far from the anchor's."""

PRIOR_FIRST_MOVE: Final = 500.0
"""Standard deviation of the prior on the first-move advantage, in points."""

MAX_PAIR_DEVIATION: Final = 240.0
"""Largest value that `fit_pair_deviation` tries, in points."""

PAIR_DEVIATION_STEPS: Final = (30.0, 6.0, 2.0)
"""Distance of the values that it tries: first all over the range, then around the best."""

Z_95: Final = 1.959964
_STEPS: Final = 200
_PRECISION: Final = 1e-10
_MIN_STEP: Final = 1e-9
_MIN_MOVE: Final = 1e-8
"""Newton's method ends with a step that changes the posterior and each parameter by less."""

Floats = npt.NDArray[np.float64]


@dataclass(frozen=True)
class PairResult:
    """Results of two players with fixed colours."""

    black: str
    white: str
    wins: int
    """Won by Black."""

    draws: int
    losses: int
    """Won by White."""

    @property
    def games(self) -> int:
        """Number of games."""
        return self.wins + self.draws + self.losses

    @property
    def points(self) -> float:
        """Points of Black, half a point for a draw."""
        return self.wins + self.draws / 2


@dataclass(frozen=True, eq=False)
class Ratings:
    """Strengths of players, relative to those that are fixed."""

    names: tuple[str, ...]
    fixed: tuple[str, ...]
    """The players whose ratings were given."""

    elo: Floats
    """``[players]``."""

    covariance: Floats
    """``[players, players]``, in squared points; zero for the fixed players."""

    first_move: float
    """Elo points that the first move is worth."""

    draws: float
    """Share of draws in all games."""

    games: tuple[int, ...]
    """Games of each player."""

    pair_deviation: float = 0.0
    """Standard deviation of the pairs' own deviations, in points."""

    deviations: Mapping[tuple[str, str], float] = field(default_factory=dict)
    """Points by which the first player of a pair does better than by the ratings alone.

    Estimates, which few games leave near 0. Empty if `pair_deviation` is 0."""

    def rating(self, name: str) -> float:
        """Return the rating of a player."""
        return float(self.elo[self._place(name)])

    def error(self, name: str) -> float:
        """Return the standard deviation of a player's rating, relative to the fixed ones."""
        place = self._place(name)
        return math.sqrt(self.covariance[place, place])

    def interval(self, name: str) -> tuple[float, float]:
        """Return the 95 % confidence interval of a player's rating."""
        half = Z_95 * self.error(name)
        return self.rating(name) - half, self.rating(name) + half

    def difference(self, name: str, other: str) -> tuple[float, float]:
        """Return (difference of two ratings, its standard deviation)."""
        i, j = self._place(name), self._place(other)
        c = self.covariance
        return float(self.elo[i] - self.elo[j]), math.sqrt(
            max(c[i, i] + c[j, j] - 2 * c[i, j], 0.0)
        )

    def superiority(self, name: str, other: str) -> float:
        """Return the probability that `name` is stronger than `other` (LOS)."""
        difference, deviation = self.difference(name, other)
        if deviation == 0.0:
            return 0.5 + 0.5 * float(np.sign(difference))
        return 0.5 * (1.0 + math.erf(difference / deviation / math.sqrt(2.0)))

    def ranking(self) -> list[str]:
        """Return the players, the strongest first."""
        return [self.names[place] for place in np.argsort(-self.elo, kind="stable")]

    def as_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        return {
            "fixed": list(self.fixed),
            "first_move": self.first_move,
            "draws": self.draws,
            "players": [
                {
                    "name": name,
                    "elo": self.rating(name),
                    "low": self.interval(name)[0],
                    "high": self.interval(name)[1],
                    "games": self.games[self._place(name)],
                }
                for name in self.ranking()
            ],
            "names": list(self.names),
            "covariance": self.covariance.tolist(),
        }

    def _place(self, name: str) -> int:
        return self.names.index(name)


def rate(
    results: Iterable[PairResult], *, fixed: Mapping[str, float], pair_deviation: float = 0.0
) -> Ratings:
    """Rate all players that occur in `results`.

    Args:
        results: the games.
        fixed: players whose ratings are given, in points. Others may occur in it, too.
        pair_deviation: standard deviation of the pairs' own deviations, in points.

    Raises:
        KeiseiError: No chain of games connects a player with one whose rating is fixed.
    """
    model = _connected_model(results, fixed, pair_deviation)
    parameters = model.fit()
    players, free = len(model.names), model.free
    covariance = np.zeros((players, players))
    inverse = np.linalg.inv(model.curvature(parameters))
    covariance[np.ix_(free, free)] = inverse[: len(free), : len(free)]
    total = sum(result.games for result in model.results)
    return Ratings(
        names=model.names,
        fixed=tuple(name for name in model.names if name in fixed),
        elo=model.strengths(parameters) * ELO_PER_UNIT,
        covariance=covariance * ELO_PER_UNIT**2,
        first_move=float(parameters[-1]) * ELO_PER_UNIT,
        draws=sum(result.draws for result in model.results) / total,
        games=tuple(
            sum(result.games for result in model.results if name in (result.black, result.white))
            for name in model.names
        ),
        pair_deviation=pair_deviation,
        deviations=model.deviations(parameters),
    )


def fit_pair_deviation(results: Sequence[PairResult], *, fixed: Mapping[str, float]) -> float:
    """Return the ``pair_deviation`` that makes the results likeliest, in points.

    All other parameters are integrated over, by Laplace's approximation.
    """
    plain = _connected_model(results, fixed, 0.0)
    plain.fit()

    def evidence(deviation: float) -> float:
        model = _connected_model(results, fixed, deviation)
        return model.log_evidence(model.maximum(weight=plain.weight))

    best, step = 0.0, PAIR_DEVIATION_STEPS[0]
    candidates = np.arange(0.0, MAX_PAIR_DEVIATION + step, step)
    for finer in (*PAIR_DEVIATION_STEPS[1:], 0.0):
        best = max(candidates.tolist(), key=evidence)
        if finer:
            candidates = np.arange(max(best - step, 0.0), best + step + finer, finer)
            step = finer
    return best


def connected(results: Iterable[PairResult], names: Iterable[str]) -> set[str]:
    """Return the players that a chain of games connects with one of `names`, those included."""
    reached = set(names)
    met: dict[str, set[str]] = {name: set() for name in reached}
    for result in results:
        if result.games:
            met.setdefault(result.black, set()).add(result.white)
            met.setdefault(result.white, set()).add(result.black)
    frontier = list(reached)
    while frontier:
        new = met[frontier.pop()] - reached
        reached |= new
        frontier += new
    return reached


def dispersion(wins: Floats, draws: Floats, losses: Floats, expected: Floats) -> float:
    """Return the variance of points in units of that without draws: 1 without draws, else less.

    The arrays hold counts, and the expected score that belongs to them.
    """
    games = wins + draws + losses
    squares = wins * (1 - expected) ** 2 + draws * (0.5 - expected) ** 2 + losses * expected**2
    without_draws = (games * expected * (1 - expected)).sum()
    # Pearson's estimate, with some games without draws added so that few games cannot mislead.
    return float((squares.sum() + _SOME_GAMES) / (without_draws + _SOME_GAMES))


_SOME_GAMES: Final = 4.0
"""Sum of squares of some sixteen even games without draws."""


def _connected_model(
    results: Iterable[PairResult], fixed: Mapping[str, float], pair_deviation: float
) -> "_Model":
    played = [result for result in results if result.games]
    names = tuple(dict.fromkeys(name for r in played for name in (r.black, r.white)))
    anchors = [name for name in names if name in fixed]
    if not anchors:
        raise KeiseiError(f"none of the players with known ratings has played: {', '.join(fixed)}")
    reached = connected(played, anchors)
    if missing := [name for name in names if name not in reached]:
        raise KeiseiError(
            f"no chain of games connects {', '.join(missing)} with a player of known rating"
        )
    return _Model(names, fixed, played, pair_deviation)


class _Model:
    """Logarithm of the posterior, with its gradient and curvature.

    Parameters: the strengths of all players that are not fixed, the deviations of the pairs if
    there are such, the first-move advantage.
    """

    def __init__(
        self,
        names: Sequence[str],
        fixed: Mapping[str, float],
        results: Sequence[PairResult],
        pair_deviation: float = 0.0,
    ) -> None:
        self.names = tuple(names)
        self.results = tuple(results)
        self.free = [place for place, name in enumerate(names) if name not in fixed]
        """Players whose strengths are parameters."""
        self._fixed = np.array([fixed.get(name, 0.0) for name in names]) / ELO_PER_UNIT
        pairs = _pairs(results)
        self._pairs = pairs if pair_deviation else []
        self._pair_deviation = pair_deviation / ELO_PER_UNIT
        self._columns = {names[player]: column for column, player in enumerate(self.free)}
        self._size = len(self.free) + len(self._pairs) + 1

        # x = design . parameters + offset
        self._design = np.zeros((len(results), self._size))
        self._offset = np.zeros(len(results))
        pair_columns = {pair: len(self.free) + n for n, pair in enumerate(self._pairs)}
        for row, result in enumerate(results):
            self._design[row], self._offset[row] = self._difference(result.black, result.white)
            if (result.black, result.white) in pair_columns:
                self._design[row, pair_columns[result.black, result.white]] = 1.0
            elif (result.white, result.black) in pair_columns:
                self._design[row, pair_columns[result.white, result.black]] = -1.0
            self._design[row, -1] = 1.0

        # log prior = -|prior . parameters + prior_offset|^2 / 2
        self._prior = np.zeros((len(pairs) + len(self._pairs) + 1, self._size))
        self._prior_offset = np.zeros(len(self._prior))
        for row, pair in enumerate(pairs):
            difference, offset = self._difference(*pair)
            self._prior[row] = difference * ELO_PER_UNIT / PRIOR_ELO
            self._prior_offset[row] = offset * ELO_PER_UNIT / PRIOR_ELO
        for number in range(len(self._pairs)):
            row, column = len(pairs) + number, len(self.free) + number
            self._prior[row, column] = 1 / self._pair_deviation
        self._prior[-1, -1] = ELO_PER_UNIT / PRIOR_FIRST_MOVE

        counts = np.array([(r.wins, r.draws, r.losses) for r in results], dtype=np.float64)
        self._wins, self._draws, self._losses = counts.T
        self.weight = 1.0
        """Power of the likelihood: 1 over the dispersion."""

    def _difference(self, player: str, opponent: str) -> tuple[Floats, float]:
        """Return the difference of two strengths as coefficients of the parameters and a number."""
        coefficients, offset = np.zeros(self._size), 0.0
        for name, sign in ((player, 1.0), (opponent, -1.0)):
            if name in self._columns:
                coefficients[self._columns[name]] = sign
            else:
                offset += sign * float(self._fixed[self.names.index(name)])
        return coefficients, offset

    def strengths(self, parameters: Floats) -> Floats:
        """Return the strengths ``[players]``."""
        strengths = self._fixed.copy()
        strengths[self.free] = parameters[: len(self.free)]
        return strengths

    def deviations(self, parameters: Floats) -> dict[tuple[str, str], float]:
        """Return the deviation of each pair, in points."""
        first = len(self.free)
        values = parameters[first : first + len(self._pairs)] * ELO_PER_UNIT
        return dict(zip(self._pairs, values.tolist(), strict=True))

    def fit(self) -> Floats:
        """Return the parameters at the maximum, with the power of the likelihood that fits."""
        expected = self._expected(self.maximum(weight=1.0))
        return self.maximum(weight=1 / dispersion(self._wins, self._draws, self._losses, expected))

    def maximum(self, *, weight: float) -> Floats:
        """Return the maximum for a power of the likelihood; Newton's method with step halving."""
        self.weight = weight
        parameters = np.zeros(self._size)
        value = self.log_posterior(parameters)
        for _ in range(_STEPS):
            step = np.linalg.solve(self.curvature(parameters), self.gradient(parameters))
            size = 1.0
            while (
                new := self.log_posterior(parameters + size * step)
            ) < value and size > _MIN_STEP:
                size /= 2
            parameters = parameters + size * step
            if abs(new - value) < _PRECISION and np.abs(step).max() < _MIN_MOVE:
                break
            value = new
        return parameters

    def log_posterior(self, parameters: Floats) -> float:
        """Return the logarithm of likelihood and prior, up to a constant."""
        x = self._design @ parameters + self._offset
        points = self._wins + self._draws / 2
        games = self._wins + self._draws + self._losses
        # log of the expected score is -log(1 + exp(-x)), of its complement -log(1 + exp(x)).
        likelihood = -points @ np.logaddexp(0.0, -x) - (games - points) @ np.logaddexp(0.0, x)
        prior = self._prior @ parameters + self._prior_offset
        return float(self.weight * likelihood - prior @ prior / 2)

    def gradient(self, parameters: Floats) -> Floats:
        """Return the gradient of `log_posterior`."""
        expected = self._expected(parameters)
        games = self._wins + self._draws + self._losses
        surplus = self._wins + self._draws / 2 - games * expected
        prior = self._prior @ parameters + self._prior_offset
        gradient: Floats = self.weight * (self._design.T @ surplus) - self._prior.T @ prior
        return gradient

    def curvature(self, parameters: Floats) -> Floats:
        """Return minus the Hessian: positive definite, so there is one maximum."""
        expected = self._expected(parameters)
        games = self._wins + self._draws + self._losses
        variance = self.weight * games * expected * (1 - expected)
        matrix: Floats = (
            self._design.T @ (variance[:, None] * self._design) + self._prior.T @ self._prior
        )
        return matrix

    def log_evidence(self, parameters: Floats) -> float:
        """Return the logarithm of the likelihood of the results, by Laplace's approximation.

        Up to a constant that is the same for every ``pair_deviation``. `parameters` are those at
        the maximum.
        """
        # Deviations in units of their prior, so that its determinant does not occur.
        scale = np.ones(self._size)
        first = len(self.free)
        scale[first : first + len(self._pairs)] = self._pair_deviation
        curvature = self.curvature(parameters) * np.outer(scale, scale)
        return self.log_posterior(parameters) - float(np.linalg.slogdet(curvature)[1]) / 2

    def _expected(self, parameters: Floats) -> Floats:
        """Return the expected score of Black in a game of each result."""
        x = self._design @ parameters + self._offset
        expected: Floats = 0.5 + 0.5 * np.tanh(x / 2)
        return expected


def _pairs(results: Iterable[PairResult]) -> list[tuple[str, str]]:
    """Return each pair of players once, with any colours."""
    pairs: dict[frozenset[str], tuple[str, str]] = {}
    for result in results:
        pairs.setdefault(frozenset((result.black, result.white)), (result.black, result.white))
    return list(pairs.values())

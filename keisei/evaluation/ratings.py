"""Elo ratings by maximum likelihood, with their covariance.

The model is Bradley and Terry's with draws (Davidson, 1970) and an advantage of the first move
(Davidson and Beaver, 1977). With x the rating of Black less that of White plus the advantage, all
in units of 400 / ln 10 points,

    P(Black wins) : P(draw) : P(White wins)  =  exp(x / 2) : v : exp(-x / 2)

Its likelihood has one maximum, which Newton's method finds; the curvature there gives the errors.
One player, the anchor, has rating 0. For players who won or lost all their games the data alone
give no finite rating: a wide prior (`PRIOR_ELO`) keeps it finite and makes its error large.
"""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from keisei.errors import KeiseiError

ELO_PER_UNIT: Final = 400.0 / math.log(10.0)
"""Points of Elo in a unit of the model's own scale."""

PRIOR_ELO: Final = 1200.0
"""Standard deviation of the prior on the rating difference of two players who have met.

There is no prior on the ratings themselves: on a long ladder they may be far from the anchor's."""

PRIOR_NUISANCE: Final = 3.0
"""Standard deviation of the priors on first-move advantage and log draw parameter."""

Z_95: Final = 1.959964
_STEPS: Final = 200
_PRECISION: Final = 1e-10

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


@dataclass(frozen=True, eq=False)
class Ratings:
    """Strengths of players, relative to the anchor."""

    names: tuple[str, ...]
    anchor: str
    elo: Floats
    """``[players]``."""

    covariance: Floats
    """``[players, players]``, in squared points; zero for the anchor."""

    first_move: float
    """Elo points that the first move is worth."""

    draw_rate: float
    """Share of draws between equal players."""

    games: tuple[int, ...]
    """Games of each player."""

    def rating(self, name: str) -> float:
        """Return the rating of a player."""
        return float(self.elo[self._place(name)])

    def error(self, name: str) -> float:
        """Return the standard deviation of a player's rating, relative to the anchor."""
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
            return 0.5
        return 0.5 * (1.0 + math.erf(difference / deviation / math.sqrt(2.0)))

    def ranking(self) -> list[str]:
        """Return the players, the strongest first."""
        return [self.names[place] for place in np.argsort(-self.elo, kind="stable")]

    def as_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        return {
            "anchor": self.anchor,
            "first_move": self.first_move,
            "draw_rate": self.draw_rate,
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


def rate(results: Iterable[PairResult], *, anchor: str) -> Ratings:
    """Rate all players that occur in `results`; `anchor` is one of them.

    Raises:
        KeiseiError: The anchor has not played, or players are not connected by games.
    """
    played = [result for result in results if result.games]
    names = tuple(dict.fromkeys(name for r in played for name in (r.black, r.white)))
    _require_connected(names, played, anchor)
    model = _Model(names, anchor, played)
    parameters = model.fit()
    players = len(names)
    free = [place for place in range(players) if names[place] != anchor]
    covariance = np.zeros((players, players))
    covariance[np.ix_(free, free)] = np.linalg.inv(model.curvature(parameters))[:-2, :-2]
    return Ratings(
        names=names,
        anchor=anchor,
        elo=model.strengths(parameters) * ELO_PER_UNIT,
        covariance=covariance * ELO_PER_UNIT**2,
        first_move=float(parameters[-2]) * ELO_PER_UNIT,
        draw_rate=_draw_rate(float(parameters[-1])),
        games=tuple(
            sum(result.games for result in played if name in (result.black, result.white))
            for name in names
        ),
    )


def _draw_rate(log_draw: float) -> float:
    draw = math.exp(log_draw)
    return draw / (2.0 + draw)


def connected(results: Iterable[PairResult], name: str) -> set[str]:
    """Return the players that a chain of games connects with `name`, itself included."""
    met: dict[str, set[str]] = {name: set()}
    for result in results:
        if result.games:
            met.setdefault(result.black, set()).add(result.white)
            met.setdefault(result.white, set()).add(result.black)
    reached, frontier = {name}, [name]
    while frontier:
        new = met[frontier.pop()] - reached
        reached |= new
        frontier += new
    return reached


def _require_connected(names: Sequence[str], results: Sequence[PairResult], anchor: str) -> None:
    if anchor not in names:
        raise KeiseiError(f"the anchor {anchor!r} has not played, so no ratings can be computed")
    reached = connected(results, anchor)
    if missing := [name for name in names if name not in reached]:
        raise KeiseiError(
            f"no chain of games connects {', '.join(missing)} with the anchor {anchor!r}"
        )


class _Model:
    """Logarithm of the posterior, with its gradient and curvature.

    Parameters: the strengths of all players but the anchor, the first-move advantage, the
    logarithm of the draw parameter.
    """

    def __init__(self, names: Sequence[str], anchor: str, results: Sequence[PairResult]) -> None:
        self._free = [place for place, name in enumerate(names) if name != anchor]
        self._players = len(names)
        place = {name: number for number, name in enumerate(names)}
        column = {player: number for number, player in enumerate(self._free)}
        self._design = np.zeros((len(results), len(self._free) + 1))
        """``[results, parameters]``: x is Black's strength minus White's plus the advantage."""
        for row, result in enumerate(results):
            for name, sign in ((result.black, 1.0), (result.white, -1.0)):
                if place[name] in column:
                    self._design[row, column[place[name]]] += sign
            self._design[row, -1] = 1.0
        self._counts = np.array([(r.wins, r.draws, r.losses) for r in results], dtype=np.float64)
        self._prior = self._prior_curvature()

    def _prior_curvature(self) -> Floats:
        pairs = np.unique(np.abs(self._design[:, :-1]), axis=0, return_index=True)[1]
        differences = self._design[pairs, :-1]
        curvature = np.zeros((len(self._free) + 2,) * 2)
        curvature[:-2, :-2] = differences.T @ differences / (PRIOR_ELO / ELO_PER_UNIT) ** 2
        curvature[-2, -2] = curvature[-1, -1] = 1 / PRIOR_NUISANCE**2
        return curvature

    def strengths(self, parameters: Floats) -> Floats:
        """Return the strengths ``[players]``, the anchor's 0 included."""
        strengths = np.zeros(self._players)
        strengths[self._free] = parameters[:-2]
        return strengths

    def fit(self) -> Floats:
        """Return the parameters at the maximum, by Newton's method with step halving."""
        parameters = np.zeros(len(self._free) + 2)
        value = self.log_posterior(parameters)
        for _ in range(_STEPS):
            step = np.linalg.solve(self.curvature(parameters), self.gradient(parameters))
            size = 1.0
            while (new := self.log_posterior(parameters + size * step)) < value and size > 1e-9:
                size /= 2
            parameters = parameters + size * step
            if abs(new - value) < _PRECISION and np.abs(step).max() < 1e-8:
                break
            value = new
        return parameters

    def log_posterior(self, parameters: Floats) -> float:
        """Return the logarithm of likelihood and prior, up to a constant."""
        logs = np.log(self._probabilities(parameters))
        return float((self._counts * logs).sum() - parameters @ self._prior @ parameters / 2)

    def gradient(self, parameters: Floats) -> Floats:
        """Return the gradient of `log_posterior`."""
        probabilities = self._probabilities(parameters)
        games = self._counts.sum(axis=1, keepdims=True)
        surplus = self._counts - games * probabilities
        along_x = (surplus[:, 0] - surplus[:, 2]) / 2
        slope = np.append(self._design.T @ along_x, surplus[:, 1].sum())
        gradient: Floats = slope - self._prior @ parameters
        return gradient

    def curvature(self, parameters: Floats) -> Floats:
        """Return minus the Hessian: positive definite, so there is one maximum."""
        p = self._probabilities(parameters)
        games = self._counts.sum(axis=1)
        # Covariances of (half of win - loss, draw) in one game, the model's sufficient statistics.
        half = (p[:, 0] - p[:, 2]) / 2
        var_x = games * ((p[:, 0] + p[:, 2]) / 4 - half**2)
        cov = games * (-half * p[:, 1])
        var_d = games * p[:, 1] * (1 - p[:, 1])
        size = len(parameters)
        curvature = np.zeros((size, size))
        curvature[:-1, :-1] = self._design.T @ (var_x[:, None] * self._design)
        curvature[:-1, -1] = curvature[-1, :-1] = self._design.T @ cov
        curvature[-1, -1] = var_d.sum()
        matrix: Floats = curvature + self._prior
        return matrix

    def _probabilities(self, parameters: Floats) -> Floats:
        """Return the probabilities ``[results, 3]`` of Black wins, draw, White wins."""
        x = self._design @ parameters[:-1]
        logits = np.stack((x / 2, np.full_like(x, parameters[-1]), -x / 2), axis=1)
        weights = np.exp(logits - logits.max(axis=1, keepdims=True))
        probabilities: Floats = weights / weights.sum(axis=1, keepdims=True)
        return np.maximum(probabilities, 1e-300)

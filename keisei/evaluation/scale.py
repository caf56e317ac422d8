"""`Scale`: reference players with fixed ratings, from which every other rating is read.

The ratings come from a file of the package, ``ratings-N.json``, that ``scripts/calibrate.py``
wrote. Within a version they never change, so that a number means the same today and next year. The
file also holds the results that they were computed from.
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from functools import cache, cached_property
from importlib import resources
from importlib.resources.abc import Traversable
from typing import Annotated, Any, Final, Literal, NamedTuple, Self

import numpy as np
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from keisei.errors import KeiseiError
from keisei.evaluation.match import MatchSettings
from keisei.evaluation.ratings import Z_95, Floats, PairResult, Ratings
from keisei.evaluation.results import Conditions

VERSION: Final = 1
"""Version of the scale that ratings are given on."""

NOTED_DEVIATIONS: Final = 20
"""Pairs that a scale's file names as those whose scores the ratings explain least."""


class _Entry(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", allow_inf_nan=False)


class Reference(_Entry):
    """A player with a fixed rating."""

    spec: str
    """Its player spec; ``frozen:NAME`` is a network in the package."""

    identity: str
    rating: float
    error: float
    """Standard deviation of the rating's distance to `random`."""

    games: int
    seconds: float
    """Seconds of one core that a game against it took, for the choice among references."""


class RatedEngine(_Entry):
    """A program of someone else, rated on the scale. It is listed, but not needed."""

    name: str
    version: str
    spec: str
    rating: float
    low: float
    high: float
    games: int


class ScalePlayer(NamedTuple):
    """A player on the scale, for tables."""

    name: str
    identity: str
    """What exactly was rated, with its version."""

    kind: Literal["reference", "engine"]
    elo: float
    margin: float
    """Half of the 95 % interval: of a reference's distance to `random`, of an engine's rating."""

    games: int


class ScaleFile(_Entry):
    """Contents of ``ratings-N.json``."""

    version: int
    keisei: str
    """Version of Keisei that played the games."""

    conditions: Conditions
    first_move: float
    pair_deviation: Annotated[float, Field(ge=0.0)]
    references: tuple[Reference, ...]
    """The references, the weakest first."""

    covariance: tuple[tuple[float, ...], ...]
    """Of the ratings, in their order, in squared points."""

    results: tuple[tuple[int, int, int, int, int], ...]
    """(Black, White, wins of Black, draws, losses) of each pair, players by their place."""

    engines: tuple[RatedEngine, ...] = ()
    deviations: tuple[tuple[str, str, float], ...] = ()
    """(player, opponent, points) of the pairs that deviate most from their ratings, the largest
    first: by how many points the player does better. Players by identity."""


@dataclass(frozen=True)
class Scale:
    """A scale of ratings."""

    file: ScaleFile

    @classmethod
    def read(cls, file: Traversable) -> Self:
        """Read a file of ratings.

        Raises:
            KeiseiError: It cannot be read, or is damaged.
        """
        try:
            return cls(ScaleFile.model_validate_json(file.read_bytes()))
        except (OSError, ValidationError) as error:
            raise KeiseiError(f"{file} is not a file of ratings: {error}") from error

    @classmethod
    def of(
        cls,
        ratings: Ratings,
        results: tuple[PairResult, ...],
        *,
        specs: dict[str, str],
        seconds: dict[str, float],
        conditions: Conditions,
        keisei: str,
        version: int = VERSION,
        engines: tuple[RatedEngine, ...] = (),
    ) -> Self:
        """Make a scale of calibrated ratings; `specs` and `seconds` are by identity."""
        order = ratings.ranking()[::-1]
        places = [ratings.names.index(name) for name in order]
        number = {name: place for place, name in enumerate(order)}
        references = tuple(
            Reference(
                spec=specs[name],
                identity=name,
                rating=round(ratings.rating(name), 1),
                error=round(ratings.error(name), 1),
                games=ratings.games[place],
                seconds=seconds[name],
            )
            for name, place in zip(order, places, strict=True)
        )
        covariance = ratings.covariance[np.ix_(places, places)].round(2).tolist()
        return cls(
            ScaleFile(
                version=version,
                keisei=keisei,
                conditions=conditions,
                first_move=round(ratings.first_move, 1),
                pair_deviation=ratings.pair_deviation,
                references=references,
                covariance=tuple(tuple(row) for row in covariance),
                results=tuple(
                    (number[r.black], number[r.white], r.wins, r.draws, r.losses) for r in results
                ),
                engines=engines,
                deviations=_largest(ratings.deviations),
            )
        )

    @property
    def version(self) -> int:
        """Its version."""
        return self.file.version

    @property
    def references(self) -> tuple[Reference, ...]:
        """The references, the weakest first."""
        return self.file.references

    @property
    def conditions(self) -> Conditions:
        """The conditions of all games that ratings on this scale are read from."""
        return self.file.conditions

    @cached_property
    def ratings(self) -> dict[str, float]:
        """Ratings of the references by identity."""
        return {reference.identity: reference.rating for reference in self.references}

    @property
    def players(self) -> tuple[ScalePlayer, ...]:
        """The references and the engines that were rated among them, the strongest first."""
        references = [
            ScalePlayer(r.spec, r.identity, "reference", r.rating, Z_95 * r.error, r.games)
            for r in self.references
        ]
        engines = [
            ScalePlayer(e.name, e.version, "engine", e.rating, (e.high - e.low) / 2, e.games)
            for e in self.file.engines
        ]
        return tuple(sorted(references + engines, key=lambda player: -player.elo))

    def as_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        return {
            "scale": self.version,
            "conditions": asdict(self.conditions),
            "first_move": self.file.first_move,
            "pair_deviation": self.file.pair_deviation,
            "players": [player._asdict() for player in self.players],
        }

    @property
    def covariance(self) -> Floats:
        """Covariance ``[references, references]`` of the ratings, in squared points."""
        return np.array(self.file.covariance)

    @property
    def results(self) -> tuple[PairResult, ...]:
        """The results that the ratings were computed from, by identity."""
        names = [reference.identity for reference in self.references]
        return tuple(
            PairResult(names[black], names[white], *counts)
            for black, white, *counts in self.file.results
        )

    def match_settings(self, *, games: int, seed: int) -> MatchSettings:
        """Return the settings of a match under the scale's conditions."""
        return MatchSettings(
            games=games,
            seed=seed,
            opening_plies=self.conditions.opening_plies,
            ply_limit=self.conditions.ply_limit,
        )


def _largest(deviations: Mapping[tuple[str, str], float]) -> tuple[tuple[str, str, float], ...]:
    """Return the pairs that deviate most, the largest first."""
    ordered = sorted(deviations.items(), key=lambda item: -abs(item[1]))[:NOTED_DEVIATIONS]
    return tuple((one, other, round(points, 1)) for (one, other), points in ordered)


@cache
def current_scale() -> Scale:
    """Return the scale that this version of Keisei gives ratings on."""
    return Scale.read(data_file(f"ratings-{VERSION}.json"))


def data_file(name: str) -> Traversable:
    """Return a file of the scale in the package."""
    return resources.files("keisei.evaluation").joinpath("data", name)

"""Placing: the rating of a player on the scale, by games against the references that tell most.

The posterior of the player's rating is computed on a grid. Against each reference the player does
better or worse than by ratings alone, by a deviation with the standard deviation of the scale
(`Scale.file.pair_deviation`), which is integrated over. So games against several references tell
more than many against one, and the interval includes the doubt.

The next games are against the reference that is expected to leave the smallest variance for the
time they take. Since the posterior is Bayesian, choosing opponents and stopping by what was seen
does not bias it.
"""

import math
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack, closing
from dataclasses import dataclass
from itertools import count
from typing import Any, Final, NamedTuple

import numpy as np

from keisei.errors import KeiseiError
from keisei.evaluation import DEFAULT_MAX_GAMES, DEFAULT_WITHIN
from keisei.evaluation.match import play_match
from keisei.evaluation.rating_text import Position, rating_text
from keisei.evaluation.ratings import ELO_PER_UNIT, Floats, dispersion
from keisei.evaluation.results import ResultStore, score_of
from keisei.evaluation.scale import Reference, Scale
from keisei.evaluation.score import Score
from keisei.players.player import Player
from keisei.players.spec import make_player

STEP: Final = 5.0
"""Points between two ratings of the grid."""

BEYOND: Final = 1000.0
"""Points that the grid goes beyond the references at both ends."""

FAR: Final = 400.0
"""Points beyond the last reference from which only a bound is given: a score of 91 %."""

FIRST_GAMES: Final = 8
"""Games against the first reference; later rounds have more."""

MAX_ROUND: Final = 128
"""Games of a round at most."""

GROWTH: Final = 4
"""A round has a fourth of the games that were played before it."""

COVERAGE: Final = 0.95
"""Probability that the interval contains the rating."""


def position_of(low: float, high: float, references: Iterable[float]) -> Position:
    """Return where a rating with an interval is, by the ratings of the references."""
    known = list(references)
    if low > max(known) + FAR:
        return "above"
    return "below" if high < min(known) - FAR else "on"


@dataclass(frozen=True)
class Placement:
    """A player's rating on the scale."""

    rating: float
    low: float
    """Lower end of the 95 % interval."""

    high: float
    games: int
    position: Position = "on"
    """Whether it is on the scale, or beyond one of its ends: then only a bound is known."""

    version: int = 1
    """Version of the scale."""

    @property
    def error(self) -> float:
        """Half of the interval: plus or minus this."""
        return (self.high - self.low) / 2

    def as_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        return {
            "elo": self.rating,
            "low": self.low,
            "high": self.high,
            "position": self.position,
            "games": self.games,
        }

    def __str__(self) -> str:
        return rating_text(self.rating, self.low, self.high, self.position)


class Placing:
    """Games of a player against references, and what they say about its rating."""

    def __init__(self, scale: Scale, references: Sequence[Reference] | None = None) -> None:
        """Begin without games.

        Args:
            scale: the scale.
            references: the references to play against; None: all.
        """
        self.scale = scale
        self.references = tuple(scale.references if references is None else references)
        self.scores: dict[str, Score] = {}
        """Score against each reference that was met, by identity."""

        self._ratings = [reference.rating for reference in self.references]
        self._grid = np.arange(
            min(self._ratings) - BEYOND, max(self._ratings) + BEYOND + STEP, STEP
        )
        self._variance = scale.file.pair_deviation**2
        self._kernel = _normal_kernel(scale.file.pair_deviation)
        self._chances = {r.identity: self._log_chances(r) for r in self.references}
        self._per_game = {r.identity: self._information(r) for r in self.references}

    @property
    def games(self) -> int:
        """Number of games."""
        return sum(score.games for score in self.scores.values())

    def add(self, reference: Reference, score: Score) -> None:
        """Add games of the player against a reference."""
        known = self.scores.get(reference.identity)
        self.scores[reference.identity] = score if known is None else known + score

    @property
    def placement(self) -> Placement:
        """The rating with its interval."""
        posterior = self._posterior()
        cumulative = np.cumsum(posterior)
        tail = (1.0 - COVERAGE) / 2
        low, high = np.interp((tail, 1.0 - tail), cumulative, self._grid + STEP / 2)
        return Placement(
            rating=float(self._grid @ posterior),
            low=float(low),
            high=float(high),
            games=self.games,
            position=position_of(low, high, self._ratings),
            version=self.scale.version,
        )

    def next_reference(self, games: int) -> Reference:
        """Return the reference against which `games` more games tell most for their time."""
        posterior = self._posterior()
        variance = self._variance
        best, most = self.references[0], -math.inf
        for reference in self.references:
            score = self.scores.get(reference.identity)
            played = 0 if score is None else score.games
            # Information on the rating from n games of expected score s: n s (1 - s), less what
            # the pair's own deviation hides.
            per_game = self._per_game[reference.identity]
            before = played * per_game / (1.0 + played * per_game * variance)
            total = played + games
            after = total * per_game / (1.0 + total * per_game * variance)
            worth = float(posterior @ (after - before)) / (_OVERHEAD + reference.seconds)
            if worth > most:
                best, most = reference, worth
        return best

    def _posterior(self) -> Floats:
        """Return the probabilities ``[grid]`` of the ratings."""
        log_posterior = np.zeros(len(self._grid))
        weight = 1.0 / self._dispersion()
        for reference in self.references:
            if reference.identity in self.scores:
                score = self.scores[reference.identity]
                log_posterior += self._log_likelihood(reference, score, weight)
        posterior = np.exp(log_posterior - log_posterior.max())
        normalized: Floats = posterior / posterior.sum()
        return normalized

    def _log_likelihood(self, reference: Reference, score: Score, weight: float) -> Floats:
        """Return the log-likelihood ``[grid]`` of a score, the pair's deviation integrated over."""
        points = []
        for wins, draws, losses in (score.black, score.white):
            points += [wins + draws / 2, losses + draws / 2]
        logs = weight * (np.array(points) @ self._chances[reference.identity])
        likelihood = np.convolve(np.exp(logs - logs.max()), self._kernel, mode="valid")
        smoothed: Floats = np.log(np.maximum(likelihood, 1e-300))
        return smoothed

    def _log_chances(self, reference: Reference) -> Floats:
        """Return ``[4, wide grid]``: logarithms of the expected score and of its complement.

        As Black, then as White. The grid is wider by half of the kernel at both ends.
        """
        margin = len(self._kernel) // 2
        ratings = self._grid[0] + STEP * np.arange(-margin, len(self._grid) + margin)
        chances = []
        for first_move in (self.scale.file.first_move, -self.scale.file.first_move):
            x = (ratings - reference.rating + first_move) / ELO_PER_UNIT
            chances += [-np.logaddexp(0.0, -x), -np.logaddexp(0.0, x)]
        return np.array(chances)

    def _information(self, reference: Reference) -> Floats:
        """Return ``[grid]``: information about the rating in one game, per squared point."""
        x = (self._grid - reference.rating) / ELO_PER_UNIT
        expected = 0.5 + 0.5 * np.tanh(x / 2)
        information: Floats = expected * (1.0 - expected) / ELO_PER_UNIT**2
        return information

    def _dispersion(self) -> float:
        """Return the variance of the points in units of that without draws."""
        counts = np.array([score.total for score in self.scores.values()], dtype=np.float64)
        if not len(counts):
            return 1.0
        wins, draws, losses = counts.T
        points = (wins + draws / 2 + 0.5) / (wins + draws + losses + 1.0)
        return min(dispersion(wins, draws, losses, points), 1.0)


_OVERHEAD: Final = 0.005
"""Seconds that a game of the player itself takes, roughly: less time of the reference than that
does not matter."""


def _normal_kernel(deviation: float) -> Floats:
    """Return the normal distribution in steps of the grid, of odd length."""
    if deviation == 0.0:
        return np.ones(1)
    margin = math.ceil(4.0 * deviation / STEP)
    kernel = np.exp(-((STEP * np.arange(-margin, margin + 1)) ** 2) / (2.0 * deviation**2))
    normalized: Floats = kernel / kernel.sum()
    return normalized


@dataclass(frozen=True)
class PlacingSettings:
    """How exactly a player is to be placed."""

    within: float = DEFAULT_WITHIN
    """Half of the interval at which to stop, in points."""

    max_games: int = DEFAULT_MAX_GAMES


Play = Callable[[Reference, int], Score]
"""Plays a number of games of the player against a reference and returns the player's score."""


def place(placing: Placing, play: Play, settings: PlacingSettings) -> Placement:
    """Have games played until a player's rating is known as exactly as asked.

    Args:
        placing: the games so far; receives the new ones.
        play: plays games.
        settings: how exactly, and how many games at most.
    """
    while not _is_done(placement := placing.placement, settings):
        games = min(max(placing.games // GROWTH, FIRST_GAMES), MAX_ROUND)
        games = min(games, settings.max_games - placing.games)
        reference = placing.next_reference(games)
        placing.add(reference, play(reference, games))
    return placement


def _is_done(placement: Placement, settings: PlacingSettings) -> bool:
    return (
        placement.games >= settings.max_games
        or placement.error <= settings.within
        or placement.position != "on"
    )


class PlacingProgress(NamedTuple):
    """Progress of `place_player`."""

    opponent: str
    """Spec of the reference that is being met."""

    placement: Placement
    """What is known from the rounds before."""

    games: int
    """All games so far."""


def place_player(
    player: Player,
    scale: Scale,
    settings: PlacingSettings,
    *,
    references: Sequence[Reference] | None = None,
    seed: int = 0,
    threads: int = 0,
    known: Mapping[str, Score] | None = None,
    store: ResultStore | None = None,
    on_games: Callable[[PlacingProgress], None] | None = None,
) -> Placing:
    """Place a player by games against references.

    Args:
        player: the player.
        scale: the scale.
        settings: how exactly, and how many games at most.
        references: the references to play against; None: all of the scale.
        seed: seed of the first match.
        threads: for references that search; 0: one for each core.
        known: scores of games that were played already, by identity of the reference.
        store: games in it count, and new ones are added.
        on_games: called after each ply.

    Raises:
        KeiseiError: A reference plays otherwise in this version of Keisei than when it was rated.
    """
    allowed = scale.references if references is None else references
    placing = Placing(scale, [r for r in allowed if r.identity != player.identity])
    stored = [] if store is None else store.results(scale.conditions)
    for reference in placing.references:
        score = score_of(stored, player.identity, reference.identity)
        if known is not None and reference.identity in known:
            score += known[reference.identity]
        if score.games:
            placing.add(reference, score)
    rounds = count(seed)
    with ExitStack() as stack:
        opponents: dict[str, Player] = {}

        def play(reference: Reference, games: int) -> Score:
            if reference.spec not in opponents:
                opponent = make_player(reference.spec, threads=threads)
                opponents[reference.spec] = stack.enter_context(closing(opponent))
                _require_same(opponent, reference, scale)
            opponent = opponents[reference.spec]
            before, placed = placing.games, placing.placement
            number = next(rounds)
            if store is not None:
                number = store.unused_seed(player, opponent, first=seed)
            match = play_match(
                player,
                opponent,
                scale.match_settings(games=games, seed=number),
                on_games=lambda result: (
                    on_games(PlacingProgress(reference.spec, placed, before + len(result.games)))
                    if on_games is not None
                    else None
                ),
            )
            if store is not None:
                store.add(player, opponent, match.games, conditions=scale.conditions, seed=number)
            return match.score

        place(placing, play, settings)
    return placing


def _require_same(player: Player, reference: Reference, scale: Scale) -> None:
    """Raise `KeiseiError` if the player of a reference is another than the one that was rated."""
    if player.identity != reference.identity:
        raise KeiseiError(
            f"the reference {reference.spec} of scale {scale.version} has changed: it was rated as "
            f"{reference.identity} and is {player.identity} now, so its rating does not hold"
        )

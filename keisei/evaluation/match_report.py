"""A single match, with an optional sequential test and an optional result store.

The games are stored round by round, so that a killed process loses only one round.
"""

import math
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from functools import partial
from statistics import median
from typing import Any, NamedTuple

from keisei.errors import KeiseiError
from keisei.evaluation.match import MatchResult, MatchSettings, play_match
from keisei.evaluation.placing import (
    Placement,
    Placing,
    PlacingProgress,
    PlacingSettings,
    place_player,
)
from keisei.evaluation.results import CHUNK_GAMES, Conditions, ResultStore
from keisei.evaluation.scale import Scale, current_scale
from keisei.evaluation.score import SPRT_ROUND_GAMES, Score, Sprt, Verdict
from keisei.players.player import Player


class RatedPlayer(NamedTuple):
    """A player of a match with its rating."""

    name: str
    placement: Placement


@dataclass(frozen=True)
class MatchReport:
    """A played match, with its test if there was one."""

    identities: tuple[str, str]
    settings: MatchSettings
    result: MatchResult
    test: Sprt | None
    is_interrupted: bool
    stored: int
    """Number of games written to the result store."""

    placed: tuple[RatedPlayer, ...] = ()
    """Players who were placed on the scale after the match, by `place_both`."""

    @property
    def conditions(self) -> Conditions:
        """Conditions of the games."""
        return Conditions.of(self.settings)

    @property
    def rated(self) -> "RatedPlayer | None":
        """The rating that the games show; None unless one of the two is a reference."""
        scale = current_scale()
        if self.conditions != scale.conditions or self.result.score.games == 0:
            return None
        known = {reference.identity: reference for reference in scale.references}
        one, other = self.identities
        if (one in known) == (other in known):
            return None
        placing = Placing(scale)
        if other in known:
            placing.add(known[other], self.result.score)
            return RatedPlayer(self.result.player, placing.placement)
        placing.add(known[one], self.result.score.reversed)
        return RatedPlayer(self.result.opponent, placing.placement)

    def as_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON; infinite values become None."""
        score = self.result.score
        plies = self.result.plies
        rated = self.rated
        return {
            "player": self.result.player,
            "opponent": self.result.opponent,
            "identities": list(self.identities),
            "conditions": asdict(self.conditions),
            "seed": self.settings.seed,
            "games": score.games,
            "interrupted": self.is_interrupted,
            "black": _counts(score.black),
            "white": _counts(score.white),
            **(_estimates(score) if score.games else {}),
            "plies": {"min": plies[0], "median": median(plies), "max": plies[-1]}
            if plies
            else None,
            "endings": dict(self.result.endings.most_common()),
            "sprt": self._sprt(score),
            "rated": None if rated is None else _rating(rated),
            "placed": [_rating(placed) for placed in self.placed],
            "stored": self.stored,
        }

    def _sprt(self, score: Score) -> dict[str, Any] | None:
        if self.test is None:
            return None
        return {
            "elo0": self.test.elo0,
            "elo1": self.test.elo1,
            "log_likelihood_ratio": self.test.log_likelihood_ratio(score),
            "verdict": self.test.verdict(score).value,
        }


def run_match(
    player: Player,
    opponent: Player,
    settings: MatchSettings,
    *,
    seed: int | None = None,
    test: Sprt | None = None,
    store: ResultStore | None = None,
    on_games: Callable[[MatchResult], None] | None = None,
) -> MatchReport:
    """Play a match until its games are played, the test has decided, or Ctrl-C is pressed.

    Args:
        player: the player whose wins and losses are counted.
        opponent: the other player.
        settings: number and conditions of the games.
        seed: takes the place of ``settings.seed``; None: 0, or with a `store` the first seed with
            which these two have not played.
        test: ends the match as soon as it decides.
        store: where the games are stored, in whole rounds: of a round that was cut short only the
            short games would be known.
        on_games: called with the result so far after each ply.

    Raises:
        KeiseiError: With a `store`: the players are the same, or have played with this seed.
    """
    if test is not None:
        settings = replace(settings, round_games=SPRT_ROUND_GAMES)
    if store is not None:
        seed = _unused_seed(store, player, opponent, seed)
        settings = replace(settings, round_games=min(settings.round_games, CHUNK_GAMES))
    settings = replace(settings, seed=seed or 0)
    conditions = Conditions.of(settings)
    result = MatchResult(player.name, opponent.name)
    stored = 0

    def keep(so_far: MatchResult) -> None:
        nonlocal result
        result = so_far
        if on_games is not None:
            on_games(so_far)

    def store_round(so_far: MatchResult) -> None:
        nonlocal stored
        if store is not None and store.add(
            player,
            opponent,
            so_far.games[stored:],
            conditions=conditions,
            seed=settings.seed,
            after=stored,
        ):
            stored = len(so_far.games)

    def is_decided(score: Score) -> bool:
        return test is not None and test.verdict(score) is not Verdict.UNDECIDED

    is_interrupted = False
    try:
        play_match(
            player, opponent, settings, on_games=keep, on_round=store_round, is_decided=is_decided
        )
    except KeyboardInterrupt:
        is_interrupted = True
    return MatchReport(
        identities=(player.identity, opponent.identity),
        settings=settings,
        result=result,
        test=test,
        is_interrupted=is_interrupted,
        stored=stored,
    )


def place_both(
    report: MatchReport,
    players: tuple[Player, Player],
    settings: PlacingSettings,
    *,
    threads: int = 0,
    store: ResultStore | None = None,
    scale: Scale | None = None,
    on_games: Callable[[Player, PlacingProgress], None] | None = None,
) -> MatchReport:
    """Place the players of a match on the scale, unless they are references of it.

    The match counts if it was played under the scale's conditions and against a reference. Ctrl-C
    ends it: who was not placed by then is left out.

    Args:
        report: the match.
        players: its players.
        settings: how exactly, and how many games at most.
        threads: for references that search; 0: one for each core.
        store: games in it count, and new ones are added.
        scale: the scale; None: the current one.
        on_games: called with the player and the progress after each ply.

    Returns:
        The report with the ratings.
    """
    scale = scale or current_scale()
    unrated = {p.identity: p for p in players if p.identity not in scale.ratings}
    placed: list[RatedPlayer] = []
    for player in unrated.values():
        try:
            placing = place_player(
                player,
                scale,
                settings,
                seed=report.settings.seed,
                threads=threads,
                known=_known(report, player, scale) if store is None else None,
                store=store,
                on_games=None if on_games is None else partial(on_games, player),
            )
        except KeyboardInterrupt:
            return replace(report, placed=tuple(placed), is_interrupted=True)
        placed.append(RatedPlayer(player.name, placing.placement))
    return replace(report, placed=tuple(placed))


def _known(report: MatchReport, player: Player, scale: Scale) -> dict[str, Score]:
    """Return the player's score in the match by its opponent's identity, if the games count."""
    if report.conditions != scale.conditions:
        return {}
    one, other = report.identities
    score = report.result.score
    return {other: score} if player.identity == one else {one: score.reversed}


def _unused_seed(store: ResultStore, player: Player, opponent: Player, wanted: int | None) -> int:
    if player.identity == opponent.identity:
        raise KeiseiError(
            f"{player.name} against itself says nothing about its strength: no --store"
        )
    seed = store.unused_seed(player, opponent, first=wanted or 0)
    if wanted not in (None, seed):
        raise KeiseiError(
            f"{store.path} already holds games of these two with seed {wanted}; "
            f"the next unused seed is {seed}"
        )
    return seed


def _rating(rated: RatedPlayer) -> dict[str, Any]:
    return {"name": rated.name, **rated.placement.as_dict()}


def _counts(counts: tuple[int, int, int]) -> dict[str, int]:
    return dict(zip(("wins", "draws", "losses"), counts, strict=True))


def _estimates(score: Score) -> dict[str, float | list[float | None] | None]:
    return {
        "score": score.score,
        "score_interval": list(score.interval),
        "elo": _finite(score.elo),
        "elo_interval": [_finite(end) for end in score.elo_interval],
    }


def _finite(number: float) -> float | None:
    """Return the number, or None for infinity, which JSON cannot express."""
    return number if math.isfinite(number) else None

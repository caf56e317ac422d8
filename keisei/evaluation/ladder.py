"""Ladders: players rated together by all games in the result store.

Stored games count, so a ladder grows: only missing games are played, and each new player reduces
the errors of the others. Stored players that are not shown still help, as links between the others.

Ratings are those of the scale (`keisei.evaluation.scale`) wherever games connect the players with
its references.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import combinations
from typing import Any, NamedTuple

from keisei.errors import KeiseiError
from keisei.evaluation import ZERO_PLAYER
from keisei.evaluation.match import MatchResult, MatchSettings, play_match
from keisei.evaluation.placing import position_of
from keisei.evaluation.rating_text import Position
from keisei.evaluation.ratings import (
    PairResult,
    Ratings,
    connected,
    rate,
)
from keisei.evaluation.results import (
    CHUNK_GAMES,
    Conditions,
    ResultStore,
    StoredPlayer,
    score_of,
)
from keisei.evaluation.scale import Scale, current_scale
from keisei.evaluation.score import Score
from keisei.players.player import Player

Pair = tuple[Player, Player]


class LadderProgress(NamedTuple):
    """Progress of `play_missing`."""

    pair: Pair
    score: Score
    """Score of the pair's first player in the current chunk."""

    games: int
    """Games played so far, of all pairs."""

    missing: int
    """Games that were missing at the start, of all pairs."""


def distinct(players: Iterable[Player]) -> list[Player]:
    """Return each player once, by identity."""
    return list({player.identity: player for player in players}.values())


def round_robin(players: Iterable[Player]) -> list[Pair]:
    """Return every pair of different players."""
    return list(combinations(distinct(players), 2))


def play_missing(
    store: ResultStore,
    pairs: Sequence[Pair],
    settings: MatchSettings,
    *,
    chunk: int = CHUNK_GAMES,
    on_games: Callable[[LadderProgress], None] | None = None,
) -> int:
    """Play until the store holds `settings.games` games of each pair under these conditions.

    Args:
        store: holds the games played so far, and receives the new ones.
        pairs: the pairs of players.
        settings: number and conditions of the games. Seeds count up from its seed: each pair takes
            the first unused ones, so all pairs get the same openings.
        chunk: games that are played side by side and stored together; an interruption loses them.
        on_games: called with the progress after each ply.

    Returns:
        The number of games played.
    """
    conditions = Conditions.of(settings)

    def missing_of(pair: Pair) -> int:
        return max(0, settings.games - store.games_between(*pair, conditions))

    missing = sum(missing_of(pair) for pair in pairs)

    def report(pair: Pair, before: int, result: MatchResult) -> None:
        if on_games is not None:
            on_games(LadderProgress(pair, result.score, before + len(result.games), missing))

    played = 0
    for pair in pairs:
        while left := missing_of(pair):
            seed = store.unused_seed(*pair, first=settings.seed)
            match = replace(settings, games=min(left, chunk), seed=seed)
            games = play_match(*pair, match, on_games=partial(report, pair, played)).games
            # Not added if another process has stored the same match meanwhile: it counts instead.
            if store.add(*pair, games, conditions=conditions, seed=seed):
                played += len(games)
    return played


@dataclass(frozen=True)
class Standing:
    """A player's row on a ladder."""

    rank: int
    name: str
    identity: str
    elo: float
    low: float
    """Lower end of the rating's 95 % interval."""

    high: float
    games: int
    score: float
    """Points per game against all opponents."""

    superiority: float | None
    """Probability of being stronger than the next player (LOS); None for the last."""

    is_fixed: bool
    """Whether the rating was given, not computed from these games."""

    position: Position = "on"
    """Whether it is on the scale, or beyond one of its ends: then only a bound is known."""


@dataclass(frozen=True, eq=False)
class Ladder:
    """Players rated together under the same conditions."""

    conditions: Conditions
    standings: tuple[Standing, ...]
    """The rows, the strongest player first."""

    scale: str
    """What the ratings are relative to, in words."""

    ratings: Ratings
    """Ratings by identity, including players that are not shown."""

    results: tuple[PairResult, ...]
    """The results that the ratings are computed from."""

    notes: tuple[str, ...]
    """Remarks for the reader."""

    def standing(self, identity: str) -> Standing:
        """Return the row of a player who is shown."""
        return next(standing for standing in self.standings if standing.identity == identity)

    def as_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        return {
            "conditions": asdict(self.conditions),
            "scale": self.scale,
            "first_move": self.ratings.first_move,
            "draws": self.ratings.draws,
            "players": [asdict(standing) for standing in self.standings],
            "notes": list(self.notes),
        }


def read_ladder(
    store: ResultStore,
    conditions: Conditions,
    shown: Sequence[str] | None = None,
    *,
    scale: Scale | None = None,
) -> Ladder:
    """Rate players by all stored games under these conditions.

    Args:
        store: the stored games.
        conditions: the conditions of the games that count.
        shown: identities of the players to show, which games must connect; None: all.
        scale: the scale of the ratings; None: the current one.

    Raises:
        KeiseiError: No games are stored under these conditions.
    """
    results = store.results(conditions)
    players = {player.identity: player for player in store.players(conditions)}
    if not players:
        raise KeiseiError(_nothing_played(store, conditions))
    base = _base(results, players, shown, conditions, scale or current_scale())
    reached = connected(results, base.fixed)
    notes = list(base.notes)
    if apart := [player.name for name, player in players.items() if name not in reached]:
        notes += [] if shown else [f"left out, not connected by games: {', '.join(apart)}"]
    rated = tuple(result for result in results if result.black in reached)
    ratings = rate(rated, fixed=base.fixed, pair_deviation=base.pair_deviation)
    visible = reached if shown is None else set(shown)
    order = [identity for identity in ratings.ranking() if identity in visible]
    names = labels(players[identity] for identity in order)
    return Ladder(
        conditions=conditions,
        standings=_standings(order, names, ratings, rated, base.references),
        scale=base.words,
        ratings=ratings,
        results=rated,
        notes=tuple(notes),
    )


class _Base(NamedTuple):
    """What the ratings of a ladder are relative to."""

    fixed: dict[str, float]
    pair_deviation: float
    words: str
    references: tuple[float, ...] = ()
    """Ratings of the scale's references; none if the ratings are relative to a player."""

    notes: tuple[str, ...] = ()


def _base(
    results: Sequence[PairResult],
    players: Mapping[str, StoredPlayer],
    shown: Sequence[str] | None,
    conditions: Conditions,
    scale: Scale,
) -> _Base:
    """Return the scale if games connect the players with it, else one player as the anchor."""
    wanted = players if shown is None else shown
    references = {name: rating for name, rating in scale.ratings.items() if name in players}
    reason = f"the scale's games have {scale.conditions}"
    if conditions == scale.conditions:
        if references and any(name in connected(results, references) for name in wanted):
            return _Base(
                references,
                scale.file.pair_deviation,
                f"scale {scale.version}",
                tuple(scale.ratings.values()),
            )
        reason = "no games connect it with a reference of the scale"
    first = max(players, key=lambda name: players[name].games) if shown is None else shown[0]
    anchor = first
    if ZERO_PLAYER in players and (shown is None or ZERO_PLAYER in connected(results, [first])):
        anchor = ZERO_PLAYER
    name = players[anchor].name
    return _Base({anchor: 0.0}, 0.0, f"{name} = 0", notes=(f"rating 0 is {name}: {reason}",))


def labels(players: Iterable[StoredPlayer]) -> dict[str, str]:
    """Return a label by identity: the name, or the identity if the name is not unique."""
    listed = list(players)
    uses = Counter(player.name for player in listed)
    return {
        player.identity: player.name if uses[player.name] == 1 else player.identity
        for player in listed
    }


def _standings(
    order: Sequence[str],
    names: dict[str, str],
    ratings: Ratings,
    results: Sequence[PairResult],
    references: Sequence[float],
) -> tuple[Standing, ...]:
    standings = []
    for place, identity in enumerate(order):
        score = score_of(results, identity)
        low, high = ratings.interval(identity)
        is_last = place + 1 == len(order)
        standings.append(
            Standing(
                rank=place + 1,
                name=names[identity],
                identity=identity,
                elo=ratings.rating(identity),
                low=low,
                high=high,
                games=score.games,
                score=score.score,
                superiority=None if is_last else ratings.superiority(identity, order[place + 1]),
                is_fixed=identity in ratings.fixed,
                position=position_of(low, high, references) if references else "on",
            )
        )
    return tuple(standings)


def _nothing_played(store: ResultStore, conditions: Conditions) -> str:
    others = "".join(f"\n  {games} games: {other}" for other, games in store.conditions())
    there = f"; it holds{others}" if others else ""
    return f"{store.path} holds no games with {conditions}{there}"

"""Ladders: a round robin whose players are rated by all games in the result store.

Stored games count, so a ladder grows: only missing games are played, and each new player reduces
the errors of the others. Stored players that are not shown still help, as links between the others.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import combinations
from typing import Any, Final, NamedTuple

from keisei.errors import KeiseiError
from keisei.evaluation.match import MatchResult, MatchSettings, play_match
from keisei.evaluation.ratings import (
    PairResult,
    Ratings,
    connected,
    rate,
)
from keisei.evaluation.results import CHUNK_GAMES, Conditions, ResultStore, StoredPlayer
from keisei.evaluation.score import Score
from keisei.players.bots import RandomPlayer
from keisei.players.player import Player

ANCHOR: Final = RandomPlayer.identity
"""Identity of the player with rating 0, if games connect the others with it."""

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
    on_games: Callable[[LadderProgress], None] | None = None,
) -> int:
    """Play until the store holds `settings.games` games of each pair under these conditions.

    Args:
        store: holds the games played so far, and receives the new ones.
        pairs: the pairs of players.
        settings: number and conditions of the games. Seeds count up from its seed: each pair takes
            the first unused ones, so all pairs get the same openings.
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
            chunk = replace(settings, games=min(left, CHUNK_GAMES), seed=seed)
            games = play_match(*pair, chunk, on_games=partial(report, pair, played)).games
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


@dataclass(frozen=True, eq=False)
class Ladder:
    """Players rated together under the same conditions."""

    conditions: Conditions
    standings: tuple[Standing, ...]
    """The rows, the strongest player first."""

    anchor: str
    """Name of the player whose rating is 0."""

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
            "anchor": self.anchor,
            "first_move": self.ratings.first_move,
            "draw_rate": self.ratings.draw_rate,
            "players": [asdict(standing) for standing in self.standings],
            "notes": list(self.notes),
        }


def read_ladder(
    store: ResultStore, conditions: Conditions, shown: Sequence[str] | None = None
) -> Ladder:
    """Rate players by all stored games under these conditions.

    Args:
        store: the stored games.
        conditions: the conditions of the games that count.
        shown: identities of the players to show, which games must connect; None: all.

    Raises:
        KeiseiError: No games are stored under these conditions.
    """
    results = store.results(conditions)
    players = {player.identity: player for player in store.players(conditions)}
    if not players:
        raise KeiseiError(_nothing_played(store, conditions))
    anchor = _anchor(results, players.values(), shown)
    reached = connected(results, anchor)
    notes = []
    if anchor != ANCHOR:
        notes.append(
            f"rating 0 is {players[anchor].name}: no games connect it with {RandomPlayer.name}"
        )
    if apart := [player.name for name, player in players.items() if name not in reached]:
        notes += [] if shown else [f"left out, not connected by games: {', '.join(apart)}"]
    rated = tuple(result for result in results if result.black in reached)
    ratings = rate(rated, anchor=anchor)
    visible = reached if shown is None else set(shown)
    order = [identity for identity in ratings.ranking() if identity in visible]
    names = labels(players[identity] for identity in order)
    return Ladder(
        conditions=conditions,
        standings=_standings(order, names, ratings, rated),
        anchor=players[anchor].name,
        ratings=ratings,
        results=rated,
        notes=tuple(notes),
    )


def labels(players: Iterable[StoredPlayer]) -> dict[str, str]:
    """Return a label by identity: the name, or the identity if the name is not unique."""
    listed = list(players)
    uses = Counter(player.name for player in listed)
    return {
        player.identity: player.name if uses[player.name] == 1 else player.identity
        for player in listed
    }


def score_of(results: Iterable[PairResult], identity: str, opponent: str | None = None) -> Score:
    """Return a player's score against one opponent, or against all."""
    black, white = [0, 0, 0], [0, 0, 0]
    for result in results:
        wins, draws, losses = result.wins, result.draws, result.losses
        if result.black == identity and opponent in (None, result.white):
            black = [black[0] + wins, black[1] + draws, black[2] + losses]
        elif result.white == identity and opponent in (None, result.black):
            white = [white[0] + losses, white[1] + draws, white[2] + wins]
    return Score((black[0], black[1], black[2]), (white[0], white[1], white[2]))


def _anchor(
    results: Sequence[PairResult], players: Iterable[StoredPlayer], shown: Sequence[str] | None
) -> str:
    """Return `ANCHOR` if games connect it with the players shown, else the first of them.

    Where all players are shown, the fallback is the one with the most games.
    """
    played = {player.identity: player.games for player in players}
    if shown is None:
        return ANCHOR if ANCHOR in played else max(played, key=lambda name: played[name])
    return ANCHOR if ANCHOR in connected(results, shown[0]) else shown[0]


def _standings(
    order: Sequence[str], names: dict[str, str], ratings: Ratings, results: Sequence[PairResult]
) -> tuple[Standing, ...]:
    scores = {identity: score_of(results, identity) for identity in order}
    return tuple(
        Standing(
            rank=place + 1,
            name=names[identity],
            identity=identity,
            elo=ratings.rating(identity),
            low=ratings.interval(identity)[0],
            high=ratings.interval(identity)[1],
            games=scores[identity].games,
            score=scores[identity].score,
            superiority=ratings.superiority(identity, order[place + 1])
            if place + 1 < len(order)
            else None,
        )
        for place, identity in enumerate(order)
    )


def _nothing_played(store: ResultStore, conditions: Conditions) -> str:
    others = "".join(f"\n  {games} games: {other}" for other, games in store.conditions())
    there = f"; it holds{others}" if others else ""
    return f"{store.path} holds no games with {conditions}{there}"

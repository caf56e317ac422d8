"""Ladders: everybody plays everybody, and all are rated by whatever was played between them.

Games that are stored count, so a ladder grows: only what is missing is played, and a new player
changes the errors of the old ones for the better. Players of old games who are not asked for again
help as well, as links between those who are.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import combinations, count
from typing import Any, Final, NamedTuple

from keisei.errors import KeiseiError
from keisei.evaluation.match import MatchResult, MatchSettings, play_match
from keisei.evaluation.ratings import (
    PairResult,
    Ratings,
    connected,
    rate,
)
from keisei.evaluation.results import Conditions, ResultStore, StoredPlayer
from keisei.evaluation.score import Score
from keisei.players.bots import RandomPlayer
from keisei.players.player import Player

ANCHOR: Final = RandomPlayer.identity
"""Who has rating 0, wherever games connect the others with it."""

CHUNK_GAMES: Final = 64
"""Games that are stored together, and lost together if the process ends before they do."""

Pair = tuple[Player, Player]


class LadderProgress(NamedTuple):
    """How far the playing has come."""

    pair: Pair
    score: Score
    """Of the pair's first player, in the games under way."""

    games: int
    """Played so far, of all pairs."""

    missing: int
    """Games that were missing at first."""


def distinct(players: Iterable[Player]) -> list[Player]:
    """Each player once, even if several specs describe it."""
    return list({player.identity: player for player in players}.values())


def round_robin(players: Iterable[Player]) -> list[Pair]:
    """Everybody against everybody."""
    return list(combinations(distinct(players), 2))


def play_missing(
    store: ResultStore,
    pairs: Sequence[Pair],
    settings: MatchSettings,
    *,
    on_games: Callable[[LadderProgress], None] | None = None,
) -> int:
    """Play until each pair has `settings.games` games under these conditions in the store.

    Args:
        store: what was played, and where the new games go.
        pairs: who shall have met.
        settings: how games are played. Seeds count up from its seed: each pair takes the first
            ones with which it has not played yet, so all pairs get the same openings.
        on_games: called whenever games go on, with the progress.

    Returns:
        How many games were played.
    """
    conditions = Conditions.of(settings)

    def missing_of(pair: Pair) -> int:
        return max(0, settings.games - store.games_between(*pair, conditions))

    missing = sum(missing_of(pair) for pair in pairs)

    def tell(pair: Pair, before: int, result: MatchResult) -> None:
        if on_games is not None:
            on_games(LadderProgress(pair, result.score, before + len(result.games), missing))

    played = 0
    for pair in pairs:
        while left := missing_of(pair):
            seed = unused_seed(store, pair, first=settings.seed)
            chunk = replace(settings, games=min(left, CHUNK_GAMES), seed=seed)
            games = play_match(*pair, chunk, on_games=partial(tell, pair, played)).games
            # Another process may have played the very same games meanwhile; then there are fewer
            # left to play.
            if store.add(*pair, games, conditions=conditions, seed=seed):
                played += len(games)
    return played


def unused_seed(store: ResultStore, pair: Pair, *, first: int) -> int:
    """The lowest seed, from the `first` on, with which the two have not played yet."""
    taken = store.seeds(*pair)
    return next(seed for seed in count(first) if seed not in taken)


@dataclass(frozen=True)
class Standing:
    """A player's place on a ladder."""

    rank: int
    name: str
    identity: str
    elo: float
    low: float
    """Lower end of the rating's 95 % interval."""

    high: float
    games: int
    score: float
    """Points per game, against whomever it played."""

    superiority: float | None
    """How likely it is really stronger than the next one; None for the last."""


@dataclass(frozen=True, eq=False)
class Ladder:
    """Who is how strong."""

    conditions: Conditions
    standings: tuple[Standing, ...]
    """The strongest first."""

    anchor: str
    """Name of the one whose rating is 0."""

    ratings: Ratings
    """By identity, also of those who are not shown."""

    results: tuple[PairResult, ...]
    """What the ratings come from."""

    notes: tuple[str, ...]
    """What a reader should know."""

    def standing(self, identity: str) -> Standing:
        """The place of a player who is shown."""
        return next(standing for standing in self.standings if standing.identity == identity)

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
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
    """Rate by all stored games under these conditions.

    Args:
        store: what was played.
        conditions: which games count.
        shown: identities of those to show, who must be connected by games; everybody if None.

    Raises:
        KeiseiError: Nothing was played under these conditions.
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
        notes += [] if shown else [f"left out, for want of games: {', '.join(apart)}"]
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
    """What to call each: its name, or its identity where another has the same name."""
    listed = list(players)
    uses = Counter(player.name for player in listed)
    return {
        player.identity: player.name if uses[player.name] == 1 else player.identity
        for player in listed
    }


def score_between(results: Iterable[PairResult], identity: str, opponent: str) -> Score:
    """How a player fared against another."""
    black = white = (0, 0, 0)
    for result in results:
        if (result.black, result.white) == (identity, opponent):
            black = (result.wins, result.draws, result.losses)
        elif (result.black, result.white) == (opponent, identity):
            white = (result.losses, result.draws, result.wins)
    return Score(black, white)


def _anchor(
    results: Sequence[PairResult], players: Iterable[StoredPlayer], shown: Sequence[str] | None
) -> str:
    """`ANCHOR` where it is connected with those who are shown, else the first of them.

    Where everybody is shown, that is the one of most games.
    """
    played = {player.identity: player.games for player in players}
    if shown is None:
        return ANCHOR if ANCHOR in played else max(played, key=lambda name: played[name])
    return ANCHOR if ANCHOR in connected(results, shown[0]) else shown[0]


def _standings(
    order: Sequence[str], names: dict[str, str], ratings: Ratings, results: Sequence[PairResult]
) -> tuple[Standing, ...]:
    points = dict.fromkeys(order, 0.0)
    games = dict.fromkeys(order, 0)
    for result in results:
        for name, wins in ((result.black, result.wins), (result.white, result.losses)):
            if name in points:
                points[name] += wins + result.draws / 2
                games[name] += result.games
    return tuple(
        Standing(
            rank=place + 1,
            name=names[identity],
            identity=identity,
            elo=ratings.rating(identity),
            low=ratings.interval(identity)[0],
            high=ratings.interval(identity)[1],
            games=games[identity],
            score=points[identity] / games[identity],
            superiority=ratings.superiority(identity, order[place + 1])
            if place + 1 < len(order)
            else None,
        )
        for place, identity in enumerate(order)
    )


def _nothing_played(store: ResultStore, conditions: Conditions) -> str:
    others = "".join(f"\n  {games} games: {other}" for other, games in store.conditions())
    there = f"; there are{others}" if others else ""
    return f"{store.path} holds no games with {conditions}{there}"

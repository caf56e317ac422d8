"""Matches: two players, all games in lockstep, colours and openings shared fairly.

The games of a round are stepped together, so that a network judges all its boards in one call. An
opening is played twice, once with each colour: rng_states in the draw of openings favours nobody.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, Self

import numpy as np

from keisei.errors import KeiseiError
from keisei.evaluation import standards
from keisei.evaluation.score import Score
from keisei.players.player import BROKE_RULES, FAILED, RESIGNS, Player
from keisei.shogi.game import ShogiGame
from keisei.shogi.notation import headers as header
from keisei.shogi.notation.files import save_game
from keisei.shogi.notation.record import Ending, GameRecord, Result
from keisei.shogi.notation.sfen import STARTPOS_SFEN
from keisei.shogi.rules import DeclarationRule
from keisei.shogi.types import Color
from keisei.shogi.vector import VectorShogi
from keisei.system import read_bytes


def read_openings(path: Path) -> tuple[str, ...]:
    """The positions of a file, as SFENs.

    A line holds an SFEN, or ``startpos moves 7g7f ...``; what follows a ``#`` is a comment.

    Raises:
        KeiseiError: The file cannot be read, holds no position, or one that cannot be played from;
            the message names the line.
    """
    try:
        lines = read_bytes(path).decode("utf-8-sig").splitlines()
    except UnicodeDecodeError as error:
        raise KeiseiError(f"{path} is not UTF-8 text: {error}") from error
    openings = []
    for number, line in enumerate(lines, start=1):
        if text := line.partition("#")[0].strip():
            try:
                game = ShogiGame(text)
            except KeiseiError as error:
                raise KeiseiError(f"{path}, line {number}: {error}") from error
            if outcome := game.outcome(claim_declaration=True):
                ending = outcome.termination.words
                raise KeiseiError(f"{path}, line {number}: the game is over already: {ending}")
            openings.append(game.sfen())
    if not openings:
        raise KeiseiError(f"{path} holds no position")
    return tuple(openings)


SUFFIXES: Final = (".kif", ".csa")


def write_games(
    records: Iterable[GameRecord], directory: Path, *, prefix: str, event: str
) -> list[Path]:
    """Write each game as ``<prefix>-<black>-vs-<white>.kif`` and ``.csa``; returns the KIF files.

    `event` is what all of them were played for.
    """
    taken: set[str] = set()
    paths = []
    for record in records:
        title = f"{record.black} vs {record.white}"
        directory.mkdir(parents=True, exist_ok=True)
        stem = _free_name(f"{prefix}-{file_name(title)}", taken)
        titled = replace(record, headers=record.headers | {header.EVENT: f"{event}: {title}"})
        for suffix in SUFFIXES:
            save_game(titled, directory / (stem + suffix))
        paths.append(directory / (stem + SUFFIXES[0]))
    return paths


def file_name(title: str) -> str:
    """A title in characters that every file system takes.

    >>> file_name("network vs usi:/opt/engine (2)")
    'network-vs-usi-opt-engine-2'
    """
    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-") or "game"


def _free_name(name: str, taken: set[str]) -> str:
    """The name, with a number where it was used before."""
    number, free = 1, name
    while free in taken:
        number += 1
        free = f"{name}-{number}"
    taken.add(free)
    return free


ROUND_GAMES: Final = 256
"""Games that are played in lockstep; more are played in several rounds."""

GIVEN_UP: Final = {
    RESIGNS: Ending.RESIGNATION,
    BROKE_RULES: Ending.ILLEGAL_MOVE,
    FAILED: Ending.TIME_UP,
}
"""How a game ends whose mover does not choose a legal move."""


@dataclass(frozen=True)
class MatchSettings:
    """How the games are played."""

    games: int
    seed: int = 0
    ply_limit: int = standards.PLY_LIMIT
    opening_plies: int = standards.OPENING_PLIES
    """Random legal moves at the start of each game."""

    openings: tuple[str, ...] = (STARTPOS_SFEN,)
    """SFENs; each pair of games begins at one of them, drawn at random."""

    declaration: DeclarationRule = DeclarationRule.POINTS_27
    keep_games: int = 0
    """How many games are kept as records, those that end first."""

    round_games: int = ROUND_GAMES


@dataclass(frozen=True)
class PlayedGame:
    """What is known of each game of a match."""

    color: Color
    """What the first player had."""

    winner: Color | None
    ending: str
    """In words: ``checkmate``, ``repetition``, ``resignation`` ..."""

    plies: int
    """How long it was, opening plies included."""


@dataclass
class MatchResult:
    """How the first player fared against the second."""

    player: str
    opponent: str
    games: list[PlayedGame] = field(default_factory=list)
    records: list[GameRecord] = field(default_factory=list)
    """Some of the games, to look at."""

    @property
    def score(self) -> Score:
        """Wins, draws and losses of the first player."""
        tally = {color: [0, 0, 0] for color in Color}
        for game in self.games:
            tally[game.color][
                1 if game.winner is None else 0 if game.winner is game.color else 2
            ] += 1
        black, white = ((w, d, lost) for w, d, lost in tally.values())
        return Score(black, white)

    @property
    def endings(self) -> Counter[str]:
        """How the games ended, and how often so."""
        return Counter(game.ending for game in self.games)

    @property
    def plies(self) -> list[int]:
        """How long the games were, the shortest first."""
        return sorted(game.plies for game in self.games)


def play_match(
    player: Player,
    opponent: Player,
    settings: MatchSettings,
    *,
    on_games: Callable[[MatchResult], None] | None = None,
    on_round: Callable[[MatchResult], None] | None = None,
    is_decided: Callable[[Score], bool] | None = None,
) -> MatchResult:
    """Play `settings.games` games; the player is Black in every other one.

    Args:
        player: whose wins and losses are counted.
        opponent: the other one.
        settings: how the games are played.
        on_games: called after each ply, with the result so far.
        on_round: called after each round, with the result so far.
        is_decided: asked after each round whether the rest need not be played. Not in between:
            the games that end first are not like the others.
    """
    result = MatchResult(player.name, opponent.name)
    random = np.random.default_rng(settings.seed)
    while (left := settings.games - len(result.games)) > 0:
        games = min(left, settings.round_games)
        with _Round((player, opponent), settings, games, random, result) as played:
            is_going_on = True
            while is_going_on:
                is_going_on = played.step()
                if on_games is not None:
                    on_games(result)
        if on_round is not None:
            on_round(result)
        if is_decided is not None and is_decided(result.score):
            break
    return result


class _Round:
    """Some games of a match, stepped together."""

    def __init__(
        self,
        players: tuple[Player, Player],
        settings: MatchSettings,
        games: int,
        random: np.random.Generator,
        result: MatchResult,
    ) -> None:
        self._players = players
        self._settings = settings
        self._random = random
        self._result = result
        pairs = -(-games // 2)
        self._env = VectorShogi(
            2 * pairs,
            seed=int(random.integers(1 << 63)),
            starts=settings.openings,
            ply_limit=settings.ply_limit,
            opening_plies=settings.opening_plies,
            declaration=settings.declaration,
        )
        self._env.pair_games()
        self._colors = np.arange(2 * pairs) % 2
        """What the first player has."""

        self._is_playing = np.arange(2 * pairs) < games

    def step(self) -> bool:
        """Play a ply in every game that goes on; whether one still does."""
        env = self._env
        legal_indices = np.zeros(env.num_games, dtype=np.int64)
        for player, is_on_turn in zip(
            self._players, (env.turns == self._colors, env.turns != self._colors), strict=True
        ):
            games = np.flatnonzero(is_on_turn & self._is_playing)
            if len(games):
                legal_indices[games] = player.choose(env, games, self._random)
        for index in np.flatnonzero(legal_indices < 0).tolist():
            ending = GIVEN_UP[int(legal_indices[index])]
            winner = Color(int(env.turns[index])).opponent
            self._count(index, winner, ending.value, int(env.packed.ply[index]))
            if self._wants_record():
                game = env.game(index)
                self._result.records.append(
                    GameRecord.from_moves(
                        game.moves,
                        start=game.start,
                        headers=self._headers(index),
                        result=Result(ending),
                    )
                )
        legal_indices = np.maximum(
            legal_indices, 0
        )  # games that are over go on anyhow, nobody looks at them
        step = env.step(env.legal_actions[np.arange(env.num_games), legal_indices])
        for index in np.flatnonzero((step.terminations != 0) & self._is_playing).tolist():
            outcome = env.outcome(index)
            assert outcome is not None
            self._count(
                index,
                outcome.winner,
                outcome.termination.words,
                int(step.final_packed.ply[index]),
            )
            if self._wants_record():
                game = env.finished_game(index)
                self._result.records.append(
                    GameRecord.from_game(game, outcome, headers=self._headers(index))
                )
        return bool(self._is_playing.any())

    def _count(self, index: int, winner: Color | None, ending: str, plies: int) -> None:
        color = Color(int(self._colors[index]))
        self._result.games.append(PlayedGame(color, winner, ending, plies))
        self._is_playing[index] = False

    def _wants_record(self) -> bool:
        return len(self._result.records) < self._settings.keep_games

    def _headers(self, index: int) -> dict[str, str]:
        black, white = (player.name for player in self._players)
        if self._colors[index] == Color.WHITE:
            black, white = white, black
        return {header.BLACK: black, header.WHITE: white}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._env.close()

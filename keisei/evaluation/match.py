"""Matches between two players: games in lockstep, with balanced colours and openings.

The games of a round are stepped together, so that a network evaluates all its boards in one call.
Each opening is played twice, with colours reversed: neither player profits from easy openings.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final, Self

import numpy as np

from keisei.errors import KeiseiError
from keisei.evaluation import DEFAULT_OPENING_PLIES, DEFAULT_PLY_LIMIT
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

ROUND_GAMES: Final = 256
"""Games played in lockstep; longer matches take several rounds."""

FORFEITS: Final = {
    RESIGNS: Ending.RESIGNATION,
    BROKE_RULES: Ending.ILLEGAL_MOVE,
    FAILED: Ending.TIME_UP,
}
"""Ending of a game whose mover returned a code instead of a legal index."""


@dataclass(frozen=True)
class MatchSettings:
    """Number and conditions of the games of a match."""

    games: int
    seed: int = 0
    ply_limit: int = DEFAULT_PLY_LIMIT
    opening_plies: int = DEFAULT_OPENING_PLIES
    """Random legal moves at the start of each game."""

    openings: tuple[str, ...] = (STARTPOS_SFEN,)
    """SFENs of start positions, of which each pair of games draws one."""

    declaration: DeclarationRule = DeclarationRule.POINTS_27
    keep_games: int = 0
    """Number of games kept as records: those that end first."""

    round_games: int = ROUND_GAMES


@dataclass(frozen=True)
class PlayedGame:
    """Result of one game of a match."""

    color: Color
    """Colour of the first player."""

    winner: Color | None
    ending: str
    """``checkmate``, ``repetition``, ``resignation`` ..."""

    plies: int
    """Length, opening plies included."""


@dataclass
class MatchResult:
    """Games of the first player against the second."""

    player: str
    opponent: str
    games: list[PlayedGame] = field(default_factory=list)
    records: list[GameRecord] = field(default_factory=list)
    """The kept games."""

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
        """Number of games by ending."""
        return Counter(game.ending for game in self.games)

    @property
    def plies(self) -> list[int]:
        """Lengths of the games, sorted."""
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
    """Play `settings.games` games, in which the player alternates colours.

    Args:
        player: the player whose wins and losses are counted.
        opponent: the other player.
        settings: number and conditions of the games.
        on_games: called with the result so far after each ply.
        on_round: called with the result so far after each round.
        is_decided: called after each round; if it returns True, the match stops early. Not within a
            round, whose first games to end are shorter than the others and so not representative.
    """
    result = MatchResult(player.name, opponent.name)
    random = np.random.default_rng(settings.seed)
    while (left := settings.games - len(result.games)) > 0:
        games = min(left, settings.round_games)
        with _Round((player, opponent), settings, games, random, result) as played:
            is_running = True
            while is_running:
                is_running = played.step()
                if on_games is not None:
                    on_games(result)
        if on_round is not None:
            on_round(result)
        if is_decided is not None and is_decided(result.score):
            break
    return result


class _Round:
    """A round: games of a match that are stepped together."""

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
        """Colour of the first player in each game."""

        self._is_playing = np.arange(2 * pairs) < games

    def step(self) -> bool:
        """Play a ply in every unfinished game; return whether any is left."""
        env = self._env
        legal_indices = np.zeros(env.num_games, dtype=np.int64)
        for player, is_on_turn in zip(
            self._players, (env.turns == self._colors, env.turns != self._colors), strict=True
        ):
            games = np.flatnonzero(is_on_turn & self._is_playing)
            if len(games):
                legal_indices[games] = player.choose(env, games, self._random)
        for index in np.flatnonzero(legal_indices < 0).tolist():
            ending = FORFEITS[int(legal_indices[index])]
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
        # Finished games are stepped along; their results are ignored.
        legal_indices = np.maximum(legal_indices, 0)
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


def read_openings(path: Path) -> tuple[str, ...]:
    """Return the start positions of a text file, as SFENs.

    A line holds an SFEN, or ``startpos moves 7g7f ...``; a ``#`` begins a comment.

    Raises:
        KeiseiError: The file cannot be read, holds no position, or one from which no game can be
            played; the message names the line.
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
                raise KeiseiError(f"{path}, line {number}: the game is already over: {ending}")
            openings.append(game.sfen())
    if not openings:
        raise KeiseiError(f"{path} holds no positions")
    return tuple(openings)


SUFFIXES: Final = (".kif", ".csa")


def write_games(
    records: Iterable[GameRecord], directory: Path, *, prefix: str, event: str
) -> list[Path]:
    """Write each game as ``<prefix>-<black>-vs-<white>.kif`` and ``.csa``; return the KIF paths.

    `event` is the event named in the records.
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
    """Return a title in characters that every file system allows.

    >>> file_name("network vs usi:/opt/engine (2)")
    'network-vs-usi-opt-engine-2'
    """
    return re.sub(r"[^a-z0-9]+", "-", title.lower()).strip("-") or "game"


def _free_name(name: str, taken: set[str]) -> str:
    """Return the name, with a number appended if it is taken, and mark it as taken."""
    number, free = 1, name
    while free in taken:
        number += 1
        free = f"{name}-{number}"
    taken.add(free)
    return free

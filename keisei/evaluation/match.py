"""A network against a fixed opponent: all games in lockstep, colours alternating."""

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from keisei.evaluation.bots import Bot, Columns
from keisei.evaluation.score import Score
from keisei.ppo.inference import Inference
from keisei.ppo.policy import draw
from keisei.shogi.game import ShogiGame
from keisei.shogi.pieces import Color
from keisei.shogi.rules import DeclarationRule, Outcome
from keisei.shogi.vector import VectorShogi


@dataclass(frozen=True)
class MatchSettings:
    """How the games are played."""

    games: int
    seed: int
    ply_limit: int
    opening_plies: int = 4
    declaration: DeclarationRule = DeclarationRule.POINTS_27
    temperature: float = 0.0
    """Of the network's moves; 0: always the likeliest."""

    mate_in_one: bool = True
    """Whether the network plays a mate in one that it is shown."""

    sample_games: int = 0
    """How many games are kept to be looked at."""


@dataclass
class MatchResult:
    """Who won, and some games to look at."""

    score: Score
    samples: list["SampleGame"] = field(default_factory=list)


@dataclass(frozen=True)
class SampleGame:
    """A game of the match."""

    game: ShogiGame
    outcome: Outcome
    player_color: Color


def network_player(inference: Inference, settings: MatchSettings) -> Bot:
    """A network as a player, by its policy alone."""

    def choose(env: VectorShogi, games: Columns, random: np.random.Generator) -> Columns:
        judgement = inference.judge(
            env.packed[games], env.legal_actions[games], env.legal_counts[games]
        )
        if settings.temperature > 0.0:
            columns = draw(judgement.log_probs / np.float32(settings.temperature), random)
        else:
            columns = np.argmax(judgement.log_probs, axis=1)
        if settings.mate_in_one:
            mates = env.mates_in_one()[games]
            columns = np.where(mates >= 0, mates, columns)
        return columns

    return choose


def play_match(player: Bot, opponent: Bot, settings: MatchSettings) -> MatchResult:
    """Play `settings.games` games; the player is Black in every other one.

    A random opening is played twice, once with each colour, so that luck in the draw of openings
    favours nobody.
    """
    random = np.random.default_rng(settings.seed)
    pairs = -(-settings.games // 2)
    env = VectorShogi(
        2 * pairs,
        seed=settings.seed,
        ply_limit=settings.ply_limit,
        opening_plies=settings.opening_plies,
        declaration=settings.declaration,
    )
    env.pair_games()
    player_colors = np.arange(env.num_games) % 2
    playing = np.arange(env.num_games) < settings.games
    tally = np.zeros((2, 3), dtype=np.int64)
    samples: list[SampleGame] = []
    while playing.any():
        columns = np.zeros(env.num_games, dtype=np.int64)
        for bot, moves in (
            (player, env.turns == player_colors),
            (opponent, env.turns != player_colors),
        ):
            games = np.flatnonzero(moves & playing)
            if len(games):
                columns[games] = bot(env, games, random)
        step = env.step(env.legal_actions[np.arange(env.num_games), columns])
        for index in np.flatnonzero((step.terminations != 0) & playing):
            color, winner = int(player_colors[index]), int(step.winners[index])
            tally[color, 1 if winner < 0 else 0 if winner == color else 2] += 1
            if len(samples) < settings.sample_games:
                outcome = env.outcome(int(index))
                assert outcome is not None
                samples.append(SampleGame(env.finished_game(int(index)), outcome, Color(color)))
        playing &= step.terminations == 0
    return MatchResult(_score(tally), samples)


def _score(tally: npt.NDArray[np.int64]) -> Score:
    black, white = ((int(row[0]), int(row[1]), int(row[2])) for row in tally)
    return Score(black, white)

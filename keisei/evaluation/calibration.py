"""Calibration of a network's values: do positions that it gives 70 % score 70 %?

Measured on games of the network against itself, played for this purpose: it has not learned from
them. A value ``v`` from -1 to 1 is an expected score of ``(1 + v) / 2`` for the side to move.
"""

from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from keisei.config_schema import AppConfig
from keisei.network.predictor import Predictor
from keisei.players.network import PolicyPlayer
from keisei.players.player import Player
from keisei.shogi.packed import Positions
from keisei.shogi.rules import DeclarationRule
from keisei.shogi.vector import VectorShogi

BINS: Final = 10
GAMES: Final = 128
MIN_CHANCE: Final = 1e-4
"""Expected scores are taken to be this far from 0 and 1, or a single wrong one could be worth an
infinite loss."""


@dataclass(frozen=True)
class CalibrationBin:
    """Positions whose expected scores are close to each other."""

    expected: float
    """Mean of the expected scores."""

    scored: float
    """Mean of the results: 1 for a win, 1/2 for a draw."""

    positions: int


@dataclass(frozen=True)
class Calibration:
    """How expected scores compare with results."""

    log_loss: float
    """Mean of ``-(s log p + (1 - s) log(1 - p))`` over positions, in nats; 0.693 knows nothing."""

    games: int
    positions: int
    bins: tuple[CalibrationBin, ...]
    """Equally wide, from 0 to 1; those without a position are left out."""

    @classmethod
    def of(
        cls, expected: npt.NDArray[np.float64], scored: npt.NDArray[np.float64], games: int
    ) -> "Calibration":
        """Compare expected scores with results, both ``[positions]``.

        >>> half = Calibration.of(np.full(4, 0.5), np.array([0.0, 1.0, 0.5, 0.5]), games=2)
        >>> round(half.log_loss, 3), half.bins
        (0.693, (CalibrationBin(expected=0.5, scored=0.5, positions=4),))
        """
        chances = np.clip(expected, MIN_CHANCE, 1.0 - MIN_CHANCE)
        losses = -(scored * np.log(chances) + (1.0 - scored) * np.log(1.0 - chances))
        numbers = np.minimum((expected * BINS).astype(np.int64), BINS - 1)
        bins = tuple(
            CalibrationBin(
                float(expected[numbers == number].mean()),
                float(scored[numbers == number].mean()),
                int((numbers == number).sum()),
            )
            for number in np.unique(numbers)
        )
        return cls(float(losses.mean()), games, len(expected), bins)


class PlayedGames(NamedTuple):
    """Positions of games of a player against itself, and what became of them."""

    positions: list[Positions]
    """Of each ply, those of the games that were still running."""

    scored: npt.NDArray[np.float64]
    """Of all positions: result of the game for the side to move, 1 for a win, 1/2 for a draw."""

    games: int


def play_games(player: Player, env: VectorShogi, seed: int) -> PlayedGames:
    """Have a player play all games of an environment against itself."""
    random = np.random.default_rng(seed)
    running = np.arange(env.num_games)
    winners = np.zeros(env.num_games, dtype=np.int64)
    positions = []
    seen: list[tuple[npt.NDArray[np.int64], npt.NDArray[np.uint8]]] = []
    while len(running):
        positions.append(env.observe(running))
        seen.append((running, env.turns[running].copy()))
        actions = env.legal_actions[:, 0].copy()  # any, in games that are over and began again
        actions[running] = env.legal_actions[running, player.choose(env, running, random)]
        step = env.step(actions)
        is_over = step.terminations[running] != 0
        winners[running[is_over]] = step.winners[running[is_over]]
        running = running[~is_over]
    numbers, turns = (np.concatenate(parts) for parts in zip(*seen, strict=True))
    won = winners[numbers]
    return PlayedGames(positions, np.where(won < 0, 0.5, won == turns), env.num_games)


def calibration_on(network: Predictor, games: PlayedGames) -> Calibration:
    """Compare what a network expects in games, also of another player, with their results."""
    values = np.concatenate([network.predict(positions).values for positions in games.positions])
    return Calibration.of((1.0 + values.astype(np.float64)) / 2.0, games.scored, games.games)


def measure_calibration(
    network: Predictor, config: AppConfig, *, seed: int, games: int = GAMES
) -> Calibration:
    """Play games of a network against itself, as ``config.evaluation`` says, and compare."""
    settings = config.evaluation
    env = VectorShogi(
        games,
        seed=seed,
        opening_plies=max(settings.opening_plies, config.env.opening_plies),
        ply_limit=settings.ply_limit,
        declaration=DeclarationRule.named(config.env.declaration),
    )
    player = PolicyPlayer(
        network,
        name="",
        identity="",
        temperature=settings.temperature,
        mate_plies=settings.mate_plies,
    )
    return calibration_on(network, play_games(player, env, seed))

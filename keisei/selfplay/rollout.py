"""Self-play in this process: a rollout fills the buffer, one forward pass a ply for all games."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from keisei.config_schema import SelfPlayConfig
from keisei.network.predictor import Predictor, padded_width
from keisei.ppo.buffer import Experience
from keisei.search.mates import MateRule
from keisei.selfplay.opponent_pool import OpponentPool
from keisei.shogi.actions import MIRRORED_ACTIONS
from keisei.shogi.packed import Positions, mirror_packed
from keisei.shogi.rng import draw_moves, toss_coins
from keisei.shogi.rules import Outcome, as_outcome
from keisei.shogi.vector import VectorShogi
from keisei.timing import SectionTimer

if TYPE_CHECKING:
    from keisei.selfplay.workers.messages import WorkerStats


@dataclass
class RolloutStats:
    """What happened in a rollout."""

    outcomes: list[tuple[Outcome, int]] = field(default_factory=list)
    """How each game ended, and after how many plies."""

    plies: int = 0
    learned_plies: int = 0
    """Plies that the network chose and learns from."""

    forced_plies: int = 0
    """Plies played by the mate rule."""

    pool_points: float = 0.0
    """What the learner scored in pool games that ended, a draw being half a point."""

    pool_games: int = 0
    pool_share: float = 0.0
    """Share of the games that are played against earlier selves."""

    lag: int = 0
    """Updates by which the oldest weights that played were behind."""

    abandoned_games: int = 0
    """Games that were lost with a worker, so far."""

    failures: int = 0
    """Workers that were replaced, so far."""

    workers: tuple["WorkerStats", ...] = ()
    """How the workers are doing, where there are any."""

    worker_seconds: dict[str, float] = field(default_factory=dict)
    """Where the workers' time went, by section, all workers together."""

    def add(
        self,
        other: "RolloutStats",
        *,
        lag: int = 0,
        seconds: Mapping[str, float] = MappingProxyType({}),
    ) -> None:
        """Count what happened elsewhere too; how single workers do is told by their own learner.

        Args:
            other: of a worker, or of another learner.
            lag: by how many updates the weights that a worker played with were behind.
            seconds: where a worker's time went.
        """
        self.outcomes += other.outcomes
        self.plies += other.plies
        self.learned_plies += other.learned_plies
        self.forced_plies += other.forced_plies
        self.pool_points += other.pool_points
        self.pool_games += other.pool_games
        self.pool_share = max(self.pool_share, other.pool_share)
        self.lag = max(self.lag, other.lag, lag)
        self.abandoned_games += other.abandoned_games
        self.failures += other.failures
        for name, spent in (*other.worker_seconds.items(), *seconds.items()):
            self.worker_seconds[name] = self.worker_seconds.get(name, 0.0) + spent


class Collector:
    """Plays all games with the current network and writes everything down."""

    def __init__(
        self,
        env: VectorShogi,
        predictor: Predictor,
        pool: OpponentPool,
        settings: SelfPlayConfig,
        rng_states: npt.NDArray[np.uint64],
        *,
        mirror: bool,
    ) -> None:
        """Make a collector.

        Args:
            env: the games.
            predictor: the network that plays and learns.
            pool: earlier selves, who play one side in some games.
            settings: how it plays.
            rng_states: ``[N]``, not 0: the state of each game's own chance. So a game is the same
                whichever others are played beside it.
            mirror: whether half of the positions are shown mirrored.
        """
        self.env = env
        self.predictor = predictor
        self.pool = pool
        self.settings = settings
        self.rng_states = rng_states
        self.mirror = mirror
        self._mate_rule = MateRule(settings.mate_plies)

    def collect(
        self,
        buffer: Experience,
        timer: SectionTimer,
        on_game_end: Callable[[Outcome, int], None] = lambda outcome, plies: None,
        on_ply: Callable[[], None] = lambda: None,
    ) -> RolloutStats:
        """Fill `buffer`. Games under way go on in the next rollout."""
        stats = RolloutStats()
        opponent = self.pool.choose_opponent()
        if self.pool.is_active:
            stats.pool_share = self.pool.num_pool_games / self.env.num_games
        for t in range(buffer.plies):
            on_ply()
            self._play_ply(buffer, t, opponent, stats, timer)
            for index in np.flatnonzero(buffer.ends[t]):
                outcome, plies = self._ended_game(int(index))
                stats.outcomes.append((outcome, plies))
                on_game_end(outcome, plies)
        with timer.section("inference"):
            env = self.env
            buffer.last_packed[...] = env.packed
            buffer.last_values[...] = self.predictor.predict(env.observe()).values
        stats.plies = len(buffer)
        stats.learned_plies = int(buffer.learns_policy.sum())
        return stats

    def _play_ply(
        self,
        buffer: Experience,
        t: int,
        opponent: Predictor | None,
        stats: RolloutStats,
        timer: SectionTimer,
    ) -> None:
        env = self.env
        packed, legal = buffer.packed[t], env.legal_actions
        with timer.section("env"):
            packed[...] = env.packed
            frozen = self.pool.frozen_moves(env.turns)
            if self.mirror:
                legal = self._mirror(packed, legal)
        with timer.section("inference"):
            log_probs, values = self.predictor.predict(Positions(packed, legal, env.legal_counts))
            legal_indices = draw_moves(log_probs, self.rng_states)
            if opponent is not None and frozen.any():
                legal_indices[frozen] = self._frozen_legal_indices(opponent, frozen)
        with timer.section("env"):
            games = np.arange(env.num_games)
            mates = self._mate_rule.legal_indices(env, games)
            forced = mates >= 0
            legal_indices[forced] = mates[forced]
            buffer.actions[t] = legal[games, legal_indices]
            buffer.log_probs[t] = log_probs[games, legal_indices]
            buffer.values[t] = values
            buffer.learns_policy[t] = ~(forced | frozen)
            buffer.learns_value[t] = ~frozen
            step = env.step(env.legal_actions[games, legal_indices])
            buffer.rewards[t] = step.rewards
            buffer.ends[t] = step.terminations != 0
            stats.forced_plies += int((forced & ~frozen).sum())
            self._count_pool_games(buffer.ends[t], step.winners, stats)

    def _mirror(
        self, packed: npt.NDArray[np.void], legal: npt.NDArray[np.uint16]
    ) -> npt.NDArray[np.uint16]:
        """Show the network half of the positions mirrored, so that it learns both sides alike.

        This happens while acting, not while learning: what is learned is exactly what was seen.
        """
        chosen = np.flatnonzero(toss_coins(self.rng_states))
        images = packed[chosen]
        mirror_packed(images, images)
        packed[chosen] = images
        legal = legal[:, : padded_width(self.env.legal_counts, legal.shape[1])].copy()
        legal[chosen] = MIRRORED_ACTIONS[legal[chosen]]
        return legal

    def _frozen_legal_indices(
        self, opponent: Predictor, frozen: npt.NDArray[np.bool_]
    ) -> npt.NDArray[np.int64]:
        env = self.env
        where = np.flatnonzero(frozen)
        prediction = opponent.predict(env.observe(where))
        rng_states = self.rng_states[where]
        legal_indices = draw_moves(prediction.log_probs, rng_states)
        self.rng_states[where] = rng_states
        return legal_indices

    def _ended_game(self, index: int) -> tuple[Outcome, int]:
        step = self.env.last_step
        outcome = as_outcome(int(step.terminations[index]), int(step.winners[index]))
        assert outcome is not None
        return outcome, int(step.final_packed[index].ply)

    def _count_pool_games(
        self,
        ended: npt.NDArray[np.bool_],
        winners: npt.NDArray[np.int8],
        stats: RolloutStats,
    ) -> None:
        if not self.pool.is_active:
            return
        number = self.pool.num_pool_games
        over = np.flatnonzero(ended[:number])
        won = winners[over] == self.pool.learner_colors[over]
        drawn = winners[over] < 0
        stats.pool_points += float(won.sum() + drawn.sum() / 2)
        stats.pool_games += len(over)
        self.pool.redraw_colors(ended)

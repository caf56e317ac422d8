"""Rollouts of self-play: all games advance together, with one forward pass for each ply.

`Collector` plays and fills an `Experience`; `RolloutStats` is what it counts.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType

import numpy as np
import numpy.typing as npt

from keisei.config_schema import SelfPlayConfig
from keisei.network.predictor import Predictor, padded_width
from keisei.ppo.buffer import Experience
from keisei.search.mates import MateRule
from keisei.selfplay.opponent_pool import OpponentPool
from keisei.shogi.actions import MIRRORED_ACTIONS
from keisei.shogi.packed import Positions, mirror_packed
from keisei.shogi.rng import coin_flips, sample_moves
from keisei.shogi.rules import Outcome, as_outcome
from keisei.shogi.vector import VectorShogi
from keisei.timing import SectionTimer


@dataclass(frozen=True)
class WorkerStats:
    """Progress and load of a worker, measured in its own process."""

    worker: int
    """Number of the worker."""

    process: int
    """Process id."""

    plies: int = 0
    """Plies played since the worker started."""

    games: int = 0
    """Games finished since the worker started."""

    seconds: float = 0.0
    """Seconds since the worker started to play."""

    waited: float = 0.0
    """Seconds of these in which it waited for a free slot or for weights, or was paused."""

    version: int = -1
    """Version of the weights that it plays with."""

    memory: float = 0.0
    """Resident memory in MB."""

    @property
    def plies_per_second(self) -> float:
        """Plies per second of the time that it did not wait."""
        played = self.seconds - self.waited
        return self.plies / played if played > 0.0 else 0.0


@dataclass
class RolloutStats:
    """Results and counts of a rollout."""

    outcomes: list[tuple[Outcome, int]] = field(default_factory=list)
    """Outcome and length in plies of each game that ended."""

    plies: int = 0
    learned_plies: int = 0
    """Plies whose moves the network chose, and whose policy it learns from."""

    forced_plies: int = 0
    """Plies played by the mate rule."""

    pool_points: float = 0.0
    """Points of the learner in pool games that ended; a draw is half a point."""

    pool_games: int = 0
    pool_share: float = 0.0
    """Share of the games that are played against snapshots of the opponent pool."""

    lag: int = 0
    """Updates by which the weights that played were behind, at most."""

    abandoned_games: int = 0
    """Games lost with their workers since the run started."""

    failures: int = 0
    """Workers replaced since the run started."""

    workers: tuple[WorkerStats, ...] = ()
    """Statistics of each worker; empty without workers."""

    worker_seconds: dict[str, float] = field(default_factory=dict)
    """Time of all workers together, by section."""

    def add(
        self,
        other: "RolloutStats",
        *,
        lag: int = 0,
        seconds: Mapping[str, float] = MappingProxyType({}),
    ) -> None:
        """Add the results of a worker, or of another learner; `workers` is not added.

        Args:
            other: statistics of the same rollout elsewhere.
            lag: updates by which the weights of the worker were behind.
            seconds: the worker's time by section.
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
    """Plays all games with the current network and records the experience."""

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
        """Create a collector.

        Args:
            env: the games.
            predictor: the network that plays and learns.
            pool: snapshots that play one side in some games.
            settings: settings of self-play.
            rng_states: ``[N]``, not 0: state of each game's own random number generator, so that a
                game does not depend on those played beside it.
            mirror: whether the network sees half of the positions mirrored.
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
        """Fill `buffer`; games in progress continue in the next rollout.

        Args:
            buffer: where the experience goes.
            timer: measures the sections ``env`` and ``inference``.
            on_game_end: called with outcome and length of each game that ends.
            on_ply: called before each ply.
        """
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
            legal_indices = sample_moves(log_probs, self.rng_states)
            if opponent is not None and frozen.any():
                legal_indices[frozen] = self._draw_opponent_moves(opponent, frozen)
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
        """Mirror half of the positions in `packed`, and return all legal lists to match.

        The network then learns both wings alike. Positions are mirrored while acting, not while
        learning: the network learns exactly from what it saw.
        """
        chosen = np.flatnonzero(coin_flips(self.rng_states))
        images = packed[chosen]
        mirror_packed(images, images)
        packed[chosen] = images
        legal = legal[:, : padded_width(self.env.legal_counts, legal.shape[1])].copy()
        legal[chosen] = MIRRORED_ACTIONS[legal[chosen]]
        return legal

    def _draw_opponent_moves(
        self, opponent: Predictor, frozen: npt.NDArray[np.bool_]
    ) -> npt.NDArray[np.int64]:
        """Return the opponent's legal indices in the games where `frozen` is set."""
        env = self.env
        where = np.flatnonzero(frozen)
        prediction = opponent.predict(env.observe(where))
        rng_states = self.rng_states[where]
        legal_indices = sample_moves(prediction.log_probs, rng_states)
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

"""Rollouts of self-play: all games advance together, with one forward pass for each ply.

`Collector` plays and fills an `Experience`; `RolloutStats` is what it counts; `OpponentPool` holds
the earlier weights that play one side of some games.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np
import numpy.typing as npt

from keisei.config_schema import SelfPlayConfig
from keisei.errors import KeiseiError
from keisei.network.predictor import Network, Predictor, Weights
from keisei.ppo.buffer import Experience
from keisei.search.mates import MateRule
from keisei.search.mcts import TreeSearch
from keisei.shogi.actions import MIRRORED_ACTIONS
from keisei.shogi.packed import Positions, mirror_packed, padded_width
from keisei.shogi.rng import coin_flips, sample_moves
from keisei.shogi.rules import Outcome, as_outcome
from keisei.shogi.vector import VectorShogi
from keisei.timing import SectionTimer


def with_snapshot(snapshots: list[Weights], weights: Weights, limit: int) -> list[Weights]:
    """Return `snapshots` and a copy of `weights`, but only the newest `limit` of all."""
    copies = {name: np.array(array) for name, array in weights.items()}
    return [*snapshots, copies][-limit:]


def num_pool_games(pool_share: float, num_games: int) -> int:
    """Return the number of pool games among `num_games`.

    Raises:
        KeiseiError: The share is less than one game, so that there would be none.
    """
    number = round(pool_share * num_games)
    if pool_share > 0.0 and number == 0:
        raise KeiseiError(
            f"selfplay.pool_share={pool_share:g} of {num_games} games (of one process) is not even "
            f"one game: set it to 0, or to {1.0 / num_games:.3g} or more"
        )
    return number


class OpponentPool:
    """Snapshots of the network's weights, and the games that are played against them.

    The first games of the environment are pool games; in each of them the learner has one colour,
    drawn again when a game ends. All pool games of a rollout have the same snapshot as opponent.
    """

    def __init__(
        self,
        settings: SelfPlayConfig,
        num_games: int,
        network: Network,
        random: np.random.Generator,
    ) -> None:
        self.settings = settings
        self.random = random
        self.num_pool_games = num_pool_games(settings.pool_share, num_games)
        self.learner_colors = random.integers(2, size=self.num_pool_games)
        """``[pool games]``: the learner's colour."""

        self.snapshots: list[Weights] = []
        """Earlier weights, the oldest first."""

        self._frozen: Network | None = None
        self._learner = network

    @property
    def is_active(self) -> bool:
        """Whether there are pool games, and at least one snapshot to play against."""
        return self.num_pool_games > 0 and bool(self.snapshots)

    def add(self, weights: Weights) -> None:
        """Add a copy of `weights`; if the pool is full, the oldest snapshot is dropped."""
        if self.num_pool_games:
            self.snapshots = with_snapshot(self.snapshots, weights, self.settings.pool_size)

    def choose_opponent(self) -> Predictor | None:
        """Return a random snapshot's network for the next rollout; None while there is none."""
        if not self.is_active:
            return None
        if self._frozen is None:
            self._frozen = self._learner.copy()
        self._frozen.load_weights(self.snapshots[int(self.random.integers(len(self.snapshots)))])
        return self._frozen

    def frozen_moves(self, turns: npt.NDArray[np.uint8]) -> npt.NDArray[np.bool_]:
        """Return ``[N]``: whether the frozen opponent is to move in each game."""
        frozen = np.zeros(len(turns), dtype=np.bool_)
        if self.is_active:
            frozen[: self.num_pool_games] = turns[: self.num_pool_games] != self.learner_colors
        return frozen

    def redraw_colors(self, ended: npt.NDArray[np.bool_]) -> None:
        """Draw the learner's colour again in the pool games that ended; `ended` is ``[N]``."""
        over = np.flatnonzero(ended[: self.num_pool_games])
        self.learner_colors[over] = self.random.integers(2, size=len(over))

    def state(self) -> dict[str, Any]:
        """Return everything that future pool games depend on."""
        return {"snapshots": self.snapshots, "learner_colors": self.learner_colors.copy()}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restore what `state` returned, perhaps with another number of pool games."""
        self.keep_snapshots(state["snapshots"])
        saved = np.array(state["learner_colors"])[: self.num_pool_games]
        self.learner_colors[: len(saved)] = saved

    def keep_snapshots(self, snapshots: Sequence[Weights]) -> None:
        """Take over earlier weights, the oldest first, as many as the pool has room for."""
        if self.num_pool_games:
            self.snapshots = [dict(one) for one in snapshots[-self.settings.pool_size :]]


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
    """Seconds that the worker waited for a free slot or for weights, or was paused."""

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
    """Plies whose policy the network learns from."""

    forced_plies: int = 0
    """Plies played by the mate rule."""

    pool_points: float = 0.0
    """Points of the learner in pool games that ended; a draw is half a point."""

    pool_games: int = 0
    pool_share: float = 0.0
    """Share of the games that are played against snapshots of the opponent pool."""

    lag: int = 0
    """Maximum age of the weights that played, in updates."""

    abandoned_games: int = 0
    """Games that were not played to their end since the run started."""

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
        self._search: TreeSearch | None = None
        if settings.simulations:
            self._search = TreeSearch(predictor, settings.simulations, mate_plies=0)

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
            positions = Positions(packed, legal, env.legal_counts)
            if buffer.row_store is None:
                log_probs, values = self.predictor.predict(positions)
            else:
                log_probs, values = buffer.row_store.predict(positions, t * env.num_games)
            legal_indices = sample_moves(log_probs, self.rng_states)
            if opponent is not None and frozen.any():
                legal_indices[frozen] = self._draw_opponent_moves(opponent, frozen)
        with timer.section("env"):
            games = np.arange(env.num_games)
            mates = self._mate_rule.legal_indices(env, games)
            forced = mates >= 0
            legal_indices[forced] = mates[forced]
        if self._search is not None:
            with timer.section("inference"):
                searched = np.flatnonzero(~(forced | frozen))
                self._search_moves(self._search, buffer, t, legal, searched, legal_indices, values)
                if self.settings.learn_mates:
                    self._imitate(buffer, t, legal, np.flatnonzero(forced & ~frozen), legal_indices)
        with timer.section("env"):
            buffer.actions[t] = legal[games, legal_indices]
            buffer.log_probs[t] = log_probs[games, legal_indices]
            buffer.values[t] = values
            by_rule = forced & (not self.settings.learn_mates)
            buffer.learns_policy[t] = ~(by_rule | frozen)
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

    def _search_moves(
        self,
        search: TreeSearch,
        buffer: Experience,
        t: int,
        legal: npt.NDArray[np.uint16],
        games: npt.NDArray[np.int64],
        legal_indices: npt.NDArray[np.int64],
        values: npt.NDArray[np.float32],
    ) -> None:
        """Search `games`: write the targets of ply `t`, the moves to play, and the found values.

        Args:
            search: the search.
            buffer: gets the targets.
            t: the ply.
            legal: ``[N, M]``, actions as the network sees them, perhaps mirrored.
            games: the games to search.
            legal_indices: ``[N]``, written for these games.
            values: ``[N]``, written for these games.
        """
        if not len(games):
            return
        result = search.search(self.env, games)
        log_probs = result.log_probs(self.settings.search_temperature)
        rng_states = self.rng_states[games]
        legal_indices[games] = sample_moves(log_probs, rng_states)
        self.rng_states[games] = rng_states
        values[games] = result.values
        best = np.argsort(-log_probs, axis=1, kind="stable")[:, : buffer.targets]
        probs = np.exp(np.take_along_axis(log_probs, best, 1))
        number = best.shape[1]  # fewer than there is room for if all games have few moves
        buffer.target_probs[t] = 0.0
        buffer.target_probs[t, games, :number] = probs / probs.sum(axis=1, keepdims=True)
        buffer.target_actions[t, games, :number] = np.take_along_axis(legal[games], best, 1)

    @staticmethod
    def _imitate(
        buffer: Experience,
        t: int,
        legal: npt.NDArray[np.uint16],
        games: npt.NDArray[np.int64],
        legal_indices: npt.NDArray[np.int64],
    ) -> None:
        """Make the moves that are played in `games` the targets of ply `t`."""
        buffer.target_probs[t, games] = 0.0
        buffer.target_probs[t, games, 0] = 1.0
        buffer.target_actions[t, games, 0] = legal[games, legal_indices[games]]

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

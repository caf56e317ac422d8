"""Sources of experience: `GameSource`, and its plain implementation `SelfPlay` in this process.

`make_source` chooses between it and the pools of workers (`keisei.selfplay.workers`), each of which
has a `SelfPlay` for a share of the games.
"""

import itertools
import logging
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final, NamedTuple, Protocol, Self

import numpy as np

from keisei.config_schema import AppConfig
from keisei.errors import KeiseiError
from keisei.network.predictor import Network, Predictor
from keisei.ppo.buffer import Experience
from keisei.ppo.learner import Ranks, number_of_workers, worker_cores
from keisei.selfplay.rollout import Collector, OpponentPool, RolloutStats
from keisei.shogi.game import ShogiGame
from keisei.shogi.rng import game_rng_states
from keisei.shogi.rules import DeclarationRule, Outcome
from keisei.shogi.vector import VectorShogi
from keisei.timing import SectionTimer

logger = logging.getLogger(__name__)

PAUSE_INTERVAL: Final = 1.0
"""Seconds between two checks of the file that pauses a run."""

_MASK: Final = (1 << 63) - 1


class WorkersFailedError(KeiseiError):
    """Workers failed several times in a row or cannot be started; the message says why."""


class ResetError(Exception):
    """The games were reset in the middle of a rollout, which has to start again."""


class RunSeeds(NamedTuple):
    """The seeds of a run, each for one purpose; all follow from ``run.seed``.

    A game's own random numbers depend on a seed and on the number of the game, not on the process
    that plays it: see `keisei.selfplay.workers.worker_pool.GameShares`.
    """

    env: int
    """Seed of start positions and opening plies."""

    weights: int
    """Seed of the network's initial weights."""

    acting: int
    """Seed of the moves that are drawn from the policy."""

    learning: int
    """Seed of the order of samples."""

    pool: int
    """Seed of the choice of snapshots, and of the learner's colours in pool games."""

    @classmethod
    def of(cls, seed: int, resumed_at: int = 0) -> "RunSeeds":
        """Derive the seeds.

        Args:
            seed: ``run.seed``.
            resumed_at: the update from which a run is resumed with new games, which have to differ
                from those at its start; 0 for a new run.
        """
        entropy = [seed, resumed_at] if resumed_at else seed
        children = np.random.SeedSequence(entropy).spawn(len(cls._fields))
        return cls(*(int(child.generate_state(1, np.uint64)[0]) & _MASK for child in children))


class GameSource(Protocol):
    """Plays the games that a learner learns from. Use it as a context, which frees resources."""

    def sync_weights(self, network: Network, version: int) -> None:
        """Play with the weights of the network as they are now, after `version` updates."""
        ...

    def collect(
        self,
        experience: Experience,
        timer: SectionTimer,
        on_game_end: Callable[[Outcome, int], None] = ...,
        is_paused: Callable[[], bool] = ...,
        on_progress: Callable[[int], None] = ...,
    ) -> RolloutStats:
        """Fill `experience`; games in progress continue in the next rollout.

        Args:
            experience: where the plies go.
            timer: measures the time by section.
            on_game_end: called with outcome and length of each game that ends.
            is_paused: polled while collecting; nothing is played while it returns True.
            on_progress: called with the number of plies of the rollout so far, now and then.

        Raises:
            WorkersFailedError: Too many workers failed in a row.
        """
        ...

    @property
    def board(self) -> ShogiGame | None:
        """A position of a game in progress, for display."""
        ...

    def reset(self) -> None:
        """Abandon all games and begin new ones, within a ply; `is_paused` of `collect` may call it.

        Plies of the abandoned games that were not delivered yet are not learned from.
        """
        ...

    def can_continue(self, state: Mapping[str, Any]) -> bool:
        """Return whether `state` is that of a source of the same kind, so that `restore` fits it.

        Workers and a learner that plays itself cannot continue each other's games.
        """
        ...

    def begin_new_games(self, state: Mapping[str, Any]) -> None:
        """Keep the snapshots of a source's `state`, of any kind, and count its games as abandoned.

        Call it on a new source, before it plays.
        """
        ...

    def state(self) -> dict[str, Any]:
        """Return what a resumed run needs."""
        ...

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restore what `state` returned, as far as possible."""
        ...

    def __enter__(self) -> Self: ...

    def __exit__(self, *_: object) -> None: ...


class SelfPlay:
    """Plays the games `first_game`, `first_game` + 1 ... of a run in this process."""

    def __init__(
        self,
        config: AppConfig,
        network: Network,
        *,
        games: int,
        first_game: int = 0,
        threads: int,
        predictor: Predictor | None = None,
        resumed_at: int = 0,
    ) -> None:
        """Start the games.

        Args:
            config: the settings of the run.
            network: the network that plays.
            games: number of games.
            first_game: number of the first game.
            threads: threads that step the games.
            predictor: called instead of the network, which is then used for snapshots only.
            resumed_at: the update from which the run is resumed with new games; see `RunSeeds`.
        """
        seeds = RunSeeds.of(config.run.seed, resumed_at)
        self.env = VectorShogi(
            games,
            network.spec,
            seed=seeds.env,
            first_game=first_game,
            opening_plies=config.env.opening_plies,
            ply_limit=config.env.ply_limit,
            declaration=DeclarationRule.named(config.env.declaration),
            threads=threads,
        )
        self._stagger_plies = config.env.stagger_plies
        self.env.stagger(self._stagger_plies)
        self.pool_random = np.random.default_rng([seeds.pool, first_game])
        self.pool = OpponentPool(config.selfplay, games, network, self.pool_random)
        self.collector = Collector(
            self.env,
            predictor or network,
            self.pool,
            config.selfplay,
            game_rng_states(seeds.acting, games, first_game),
            mirror=config.ppo.mirror,
        )
        self._pool_interval = config.selfplay.pool_interval
        self.abandoned_games = 0
        """Games of the run that were not played to their end."""

        self._must_reset = False

    def sync_weights(self, network: Network, version: int) -> None:
        """Add a snapshot to the opponent pool if one is due; the network itself plays already."""
        if version % self._pool_interval == 0:
            self.pool.add(network.weights())

    def collect(
        self,
        experience: Experience,
        timer: SectionTimer,
        on_game_end: Callable[[Outcome, int], None] = lambda outcome, plies: None,
        is_paused: Callable[[], bool] = lambda: False,
        on_progress: Callable[[int], None] = lambda plies: None,
    ) -> RolloutStats:
        """Fill `experience`; see `GameSource.collect`."""
        ended: list[tuple[Outcome, int]] = []
        plies = itertools.count(0, self.env.num_games)

        def count_game(outcome: Outcome, plies: int) -> None:
            ended.append((outcome, plies))
            on_game_end(outcome, plies)

        def before_ply() -> None:
            if is_paused():
                with timer.section("waiting"):
                    while is_paused() and not self._must_reset:
                        time.sleep(PAUSE_INTERVAL)
            if self._must_reset:
                raise ResetError
            on_progress(next(plies))

        while True:
            try:
                stats = self.collector.collect(experience, timer, count_game, on_ply=before_ply)
                break
            except ResetError:
                self._must_reset = False
                self.begin_again()
                plies = itertools.count(0, self.env.num_games)
        stats.outcomes = ended  # also those of plies that are not learned from
        stats.abandoned_games = self.abandoned_games
        return stats

    def reset(self) -> None:
        """Abandon all games and begin new ones before the next ply; see `GameSource.reset`."""
        self.abandoned_games += self.env.num_games
        self._must_reset = True

    def begin_again(self) -> None:
        """Begin all games again, as at the start of a run."""
        self.env.reset()
        self.env.stagger(self._stagger_plies)

    @property
    def board(self) -> ShogiGame:
        """A game in progress, for display."""
        return self.env.game(0)

    def can_continue(self, state: Mapping[str, Any]) -> bool:
        """Return whether `state` holds games."""
        return "env" in state

    def begin_new_games(self, state: Mapping[str, Any]) -> None:
        """Keep snapshots and count abandoned games; see `GameSource.begin_new_games`."""
        self.pool.keep_snapshots(state["pool"]["snapshots"])
        self.abandoned_games = abandoned_games(state)

    def state(self) -> dict[str, Any]:
        """Return everything that the games depend on from here on."""
        return {
            "abandoned_games": self.abandoned_games,
            "env": self.env.state(),
            "pool": self.pool.state(),
            "pool_random": self.pool_random.bit_generator.state,
            "rng_states": self.collector.rng_states.copy(),
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restore what `state` returned."""
        self.abandoned_games = int(state.get("abandoned_games", 0))
        self.env.restore(state["env"])
        self.pool.restore(state["pool"])
        self.pool_random.bit_generator.state = state["pool_random"]
        self.collector.rng_states[:] = state["rng_states"]

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Do nothing: there are no processes and no shared memory to free."""


def make_source(
    config: AppConfig, network: Network, ranks: Ranks, *, resumed_at: int = 0
) -> GameSource:
    """Create the games of one learner, in this process or in workers as the settings say.

    Args:
        config: the settings of the run.
        network: the network that plays, if the learner plays itself.
        ranks: all learners of the run, of which this is one.
        resumed_at: the update from which a run is resumed with new games; see `RunSeeds`.

    Raises:
        WorkersFailedError: There can be no workers, and ``parallel.fallback`` is ``stop``.
    """
    try:
        return _make_workers(config, network, ranks, resumed_at) or play_in_learner(
            config, network, ranks, resumed_at=resumed_at
        )
    except WorkersFailedError as error:
        if config.parallel.fallback == "stop":
            raise
        warn_of_fallback(error)
    return play_in_learner(config, network, ranks, resumed_at=resumed_at)


def warn_of_fallback(error: WorkersFailedError) -> None:
    """Log why the learner plays without workers."""
    logger.warning("the learner plays the games itself, since there are no workers: %s", error)


def _make_workers(
    config: AppConfig, network: Network, ranks: Ranks, resumed_at: int
) -> GameSource | None:
    """Create the workers of one learner; None if it plays itself."""
    on_cpu = network.device == "cpu"
    if config.parallel.backend == "ray":
        from keisei.selfplay.workers.ray_pool import RaySelfPlay

        cpus = worker_cores(ranks, on_cpu=on_cpu)
        _say_how_workers_compute(config)
        return RaySelfPlay(config, local_cpus=cpus, ranks=ranks, first_round=resumed_at)
    if workers := number_of_workers(config, ranks, on_cpu=on_cpu):
        from keisei.selfplay.workers.inference_server import uses_inference_server
        from keisei.selfplay.workers.process_pool import ParallelSelfPlay

        if not uses_inference_server(config, network):
            _say_how_workers_compute(config)
        return ParallelSelfPlay(config, workers=workers, ranks=ranks, first_round=resumed_at)
    return None


def _say_how_workers_compute(config: AppConfig) -> None:
    """Log what the networks of workers leave out of the learner's settings, if it is anything."""
    device = config.device
    if (device.mixed_precision, device.compile) != ("off", "off"):
        logger.info(
            "workers play on the CPU in float32, uncompiled: device.mixed_precision=%s and "
            "device.compile=%s are for the learner",
            device.mixed_precision,
            device.compile,
        )


def play_in_learner(
    config: AppConfig, network: Network, ranks: Ranks, *, resumed_at: int = 0
) -> SelfPlay:
    """Create the games of one learner in this process; see `make_source`."""
    return SelfPlay(
        config,
        network,
        games=config.env.num_games,
        first_game=ranks.rank * config.env.num_games,
        threads=config.env.threads or network.threads,
        resumed_at=resumed_at,
    )


def abandoned_games(state: Mapping[str, Any]) -> int:
    """Return the games of a source's `state` that are lost if the run continues with new ones."""
    in_progress = len(state["rng_states"]) if "rng_states" in state else 0  # workers count theirs
    return int(state.get("abandoned_games", 0)) + in_progress


def without_snapshots(state: Mapping[str, Any]) -> dict[str, Any]:
    """Return the state of a source without its snapshots, which are the same for all learners."""
    if "pool" not in state:
        return dict(state)
    return {**state, "pool": {**state["pool"], "snapshots": []}}


def with_snapshots_of(state: Mapping[str, Any], other: Mapping[str, Any]) -> dict[str, Any]:
    """Return the state of a source with the snapshots of another one."""
    if "pool" not in state or "pool" not in other:
        return dict(state)
    return {**state, "pool": {**state["pool"], "snapshots": other["pool"]["snapshots"]}}


class PauseFile:
    """A file that pauses a run while it exists: anyone, on any system, can create and delete it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._is_set = False
        self._last_check = float("-inf")
        self._since = 0.0
        self._earlier_seconds = 0.0

    def is_set(self) -> bool:
        """Return whether the file exists, checked once a second at most; logs every change."""
        now = time.monotonic()
        if now - self._last_check >= PAUSE_INTERVAL:
            self._last_check = now
            was_set, self._is_set = self._is_set, self._path.exists()
            if self._is_set and not was_set:
                self._since = now
                logger.info("paused; delete %s to resume", self._path)
            elif was_set and not self._is_set:
                self._earlier_seconds += now - self._since
                logger.info("resumed after %.0f s", now - self._since)
        return self._is_set

    @property
    def seconds(self) -> float:
        """Seconds that the file has existed so far, as far as `is_set` has seen it."""
        return self._earlier_seconds + (time.monotonic() - self._since if self._is_set else 0.0)


class ResetFile:
    """A file that asks a run to abandon its games; the run removes it."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._last_check = float("-inf")

    def take(self) -> bool:
        """Return whether a reset was asked for, checked once a second at most."""
        now = time.monotonic()
        if now - self._last_check < PAUSE_INTERVAL:
            return False
        self._last_check = now
        try:
            self._path.unlink()
        except OSError:  # usually there is none
            return False
        logger.info("all games in progress are abandoned, as %s has asked", self._path.name)
        return True

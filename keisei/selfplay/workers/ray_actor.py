"""A worker on a Ray cluster: an actor that plays work items, and reports its status meanwhile.

This is the worker's side; `keisei.selfplay.workers.ray_pool` is the learner's. The module can be
imported without Ray.
"""

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from keisei.ppo.buffer import Experience, experience_bytes
from keisei.selfplay.rollout import RolloutStats, WorkerStats
from keisei.selfplay.source import ResetError
from keisei.selfplay.workers.model_sync import TensorMessage, unpack_weights
from keisei.selfplay.workers.worker import GamesPlan, SelfPlayWorker
from keisei.system import resident_megabytes
from keisei.timing import SectionTimer

POLL_INTERVAL: Final = 0.1
"""Seconds between two looks of a paused worker whether it may continue."""


class WeightsMessage(NamedTuple):
    """The weights of a network, packed, on their way to workers."""

    messages: Mapping[str, TensorMessage]
    version: int


@dataclass(frozen=True)
class PackedChunk:
    """The result of a work item."""

    work_item: int
    version: int
    """Version of the weights that played it."""

    plies: int
    games: int
    targets: int
    data: npt.NDArray[np.uint8]
    """The arrays of the experience, in one block, which Ray carries without pickling."""

    rollout: RolloutStats
    seconds: dict[str, float]
    """The worker's time by section."""

    stats: WorkerStats

    @property
    def experience(self) -> Experience:
        """The experience as a read-only view of `data`."""
        return Experience(self.plies, self.games, self.data.data, targets=self.targets)


class ActorStatus(NamedTuple):
    """Heartbeat of an actor."""

    stats: WorkerStats
    progress: int
    """Plies started so far: a worker whose count stands still during a work item hangs."""

    node: str
    """Id of the node that it runs on."""


class RayWorker:
    """The actor. `play` runs in one thread, all other methods in another beside it."""

    def __init__(self, number: int, plan: GamesPlan, plies: int) -> None:
        """Build the network and set up the games.

        Args:
            number: number of the worker.
            plan: its games.
            plies: plies of each game in a work item.
        """
        self._number = number
        self._plies, self._games = plies, plan.games
        self._worker = SelfPlayWorker(plan)
        self._targets = self._worker.config.selfplay.num_targets
        self._newest: WeightsMessage | None = None
        self._is_paused = self._must_reset = False
        self._timer = SectionTimer()
        self._progress = self._played_plies = self._ended_games = 0
        self._start: float | None = None
        self._item_start: float | None = None
        self._busy_seconds = 0.0

    def offer_weights(self, weights: WeightsMessage) -> None:
        """Use these weights for work items that were handed out with older ones."""
        self._newest = weights

    def pause(self, is_paused: bool) -> None:
        """Pause before the next ply, or continue."""
        self._is_paused = is_paused

    def reset(self) -> None:
        """Abandon all games and start new ones before the next ply."""
        self._must_reset = True

    def play(self, weights: WeightsMessage, work_item: int) -> PackedChunk:
        """Play a work item with these weights, or with newer ones that have been offered."""
        self._item_start = time.perf_counter()
        self._start = self._item_start if self._start is None else self._start
        newest = self._newest
        if newest is not None and newest.version > weights.version:
            weights = newest
        if weights.version != self._worker.version:
            self._worker.load_weights(unpack_weights(weights.messages), weights.version)
        sizes = (self._plies, self._games, self._targets)
        data = np.zeros(experience_bytes(*sizes), dtype=np.uint8)
        experience = Experience(self._plies, self._games, data.data, targets=self._targets)
        self._timer.take()
        rollout = self._play(experience)
        self._played_plies += rollout.plies
        self._ended_games += len(rollout.outcomes)
        self._busy_seconds += time.perf_counter() - self._item_start
        self._item_start = None
        return PackedChunk(
            work_item=work_item,
            version=weights.version,
            plies=self._plies,
            games=self._games,
            targets=self._targets,
            data=data,
            rollout=rollout,
            seconds=self._timer.take(),
            stats=self._stats(),
        )

    def status(self) -> ActorStatus:
        """Return statistics, progress and node."""
        import ray

        return ActorStatus(self._stats(), self._progress, ray.get_runtime_context().get_node_id())

    def _play(self, experience: Experience) -> RolloutStats:
        """Play all plies of a work item, from the start again after a reset."""
        while True:
            try:
                return self._worker.play(experience, self._timer, on_ply=self._before_ply)
            except ResetError:
                self._must_reset = False
                self._worker.reset()

    def _before_ply(self) -> None:
        while self._is_paused and not self._must_reset:
            time.sleep(POLL_INTERVAL)
        if self._must_reset:
            raise ResetError
        self._progress += 1

    def _stats(self) -> WorkerStats:
        now = time.perf_counter()
        seconds = 0.0 if self._start is None else now - self._start
        since = self._item_start
        busy = self._busy_seconds + (0.0 if since is None else now - since)
        return WorkerStats(
            worker=self._number,
            process=os.getpid(),
            plies=self._played_plies,
            games=self._ended_games,
            seconds=seconds,
            waited=max(0.0, seconds - busy),
            version=self._worker.version,
            memory=resident_megabytes(),
        )

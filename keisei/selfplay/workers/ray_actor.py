"""A worker somewhere in a Ray cluster: plays a work_item when asked, and answers while it plays.

This is the worker's side; `ray_pool` is the learner's. Nothing here imports Ray
before an actor runs, so that the module can be read without it.
"""

import os
import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from keisei.ppo.buffer import Experience, experience_bytes
from keisei.selfplay.rollout import RolloutStats
from keisei.selfplay.workers.messages import WorkerStats
from keisei.selfplay.workers.model_sync import TensorMessage, unpack_weights
from keisei.selfplay.workers.worker import GamesPlan, SelfPlayWorker
from keisei.system import resident_megabytes
from keisei.timing import SectionTimer


class WeightsMessage(NamedTuple):
    """A network's weights on their way to workers."""

    messages: Mapping[str, TensorMessage]
    version: int


@dataclass(frozen=True)
class PackedChunk:
    """A work_item that has been played, as it goes through the cluster."""

    work_item: int
    version: int
    """Of the weights that played it."""

    plies: int
    games: int
    data: npt.NDArray[np.uint8]
    """The arrays of the experience, one after the other; Ray carries them without pickling."""

    rollout: RolloutStats
    seconds: dict[str, float]
    """Where the worker's time went."""

    stats: WorkerStats

    @property
    def experience(self) -> Experience:
        """What was played; it looks at `data` and cannot be written to."""
        return Experience(self.plies, self.games, self.data.data)


class ActorStatus(NamedTuple):
    """A sign of life."""

    stats: WorkerStats
    progress: int
    """Plies that were begun: if it stands still during a work_item, the worker hangs."""

    node: str
    """Where it runs."""


class RayWorker:
    """The actor. `sign` and `offer_weights` are done by a thread of their own, beside `play`."""

    def __init__(self, number: int, plan: GamesPlan, plies: int) -> None:
        """Build the network and set up the games.

        Args:
            number: of the worker.
            plan: its games.
            plies: of a work_item.
        """
        self._number = number
        self._plies, self._games = plies, plan.games
        self._worker = SelfPlayWorker(plan)
        self._newest: WeightsMessage | None = None
        self._timer = SectionTimer()
        self._progress = self._played_plies = self._ended_games = 0
        self._start: float | None = None
        self._item_start: float | None = None
        self._busy_seconds = 0.0

    def offer_weights(self, weights: WeightsMessage) -> None:
        """Take these for the next work_items, although those were given out with older ones."""
        self._newest = weights

    def play(self, weights: WeightsMessage, work_item: int) -> PackedChunk:
        """Play a work_item with these weights, or with newer ones that it has heard of."""
        self._item_start = time.perf_counter()
        self._start = self._item_start if self._start is None else self._start
        newest = self._newest
        if newest is not None and newest.version > weights.version:
            weights = newest
        if weights.version != self._worker.version:
            self._worker.load_weights(unpack_weights(weights.messages), weights.version)
        data = np.zeros(experience_bytes(self._plies, self._games), dtype=np.uint8)
        experience = Experience(self._plies, self._games, data.data)
        self._timer.take()
        rollout = self._worker.play(experience, self._timer, on_ply=self._count_ply)
        self._played_plies += rollout.plies
        self._ended_games += len(rollout.outcomes)
        self._busy_seconds += time.perf_counter() - self._item_start
        self._item_start = None
        return PackedChunk(
            work_item=work_item,
            version=weights.version,
            plies=self._plies,
            games=self._games,
            data=data,
            rollout=rollout,
            seconds=self._timer.take(),
            stats=self._stats(),
        )

    def status(self) -> ActorStatus:
        """How it is doing."""
        import ray

        return ActorStatus(self._stats(), self._progress, ray.get_runtime_context().get_node_id())

    def _count_ply(self) -> None:
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

"""A worker somewhere in a Ray cluster: plays a ticket when asked, and answers while it plays.

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


class Weights(NamedTuple):
    """A network's weights on their way to workers."""

    messages: Mapping[str, TensorMessage]
    version: int


@dataclass(frozen=True)
class PackedChunk:
    """A ticket that has been played, as it goes through the cluster."""

    ticket: int
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


class Sign(NamedTuple):
    """A sign of life."""

    stats: WorkerStats
    progress: int
    """Plies that were begun: if it stands still during a ticket, the worker hangs."""

    node: str
    """Where it runs."""


class RayWorker:
    """The actor. `sign` and `hear_of` are done by a thread of their own, beside `play`."""

    def __init__(self, number: int, plan: GamesPlan, plies: int) -> None:
        """Build the network and set up the games.

        Args:
            number: of the worker.
            plan: its games.
            plies: of a ticket.
        """
        self._number = number
        self._plies, self._games = plies, plan.games
        self._worker = SelfPlayWorker(plan)
        self._newest: Weights | None = None
        self._timer = SectionTimer()
        self._progress = self._played_plies = self._ended_games = 0
        self._start: float | None = None
        self._ticket_start: float | None = None
        self._busy_seconds = 0.0

    def hear_of(self, weights: Weights) -> None:
        """Take these for the next tickets, although those were given out with older ones."""
        self._newest = weights

    def play(self, weights: Weights, ticket: int) -> PackedChunk:
        """Play a ticket with these weights, or with newer ones that it has heard of."""
        self._ticket_start = time.perf_counter()
        self._start = self._ticket_start if self._start is None else self._start
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
        self._busy_seconds += time.perf_counter() - self._ticket_start
        self._ticket_start = None
        return PackedChunk(
            ticket=ticket,
            version=weights.version,
            plies=self._plies,
            games=self._games,
            data=data,
            rollout=rollout,
            seconds=self._timer.take(),
            stats=self._stats(),
        )

    def sign(self) -> Sign:
        """How it is doing."""
        import ray

        return Sign(self._stats(), self._progress, ray.get_runtime_context().get_node_id())

    def _count_ply(self) -> None:
        self._progress += 1

    def _stats(self) -> WorkerStats:
        now = time.perf_counter()
        seconds = 0.0 if self._start is None else now - self._start
        since = self._ticket_start
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

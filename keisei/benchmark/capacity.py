"""How many workers a learner can use: a plan from a few rates, and a simulation to check it.

>>> plan = Capacity(games=256, rollout_plies=64, shares=8, max_lag=1, learner_rate=20_000,
...                 worker_rate=1_000)
>>> plan.enough_workers
20
>>> [round(plan.plies_per_second(workers)) for workers in (1, 8, 16, 32)]
[1000, 8000, 11429, 11429]
>>> Capacity(games=256, rollout_plies=64, shares=16, max_lag=1, learner_rate=20_000,
...          worker_rate=1_000).plies_per_second(32)  # doctest: +ELLIPSIS
17777.7...
"""

import heapq
import math
from dataclasses import dataclass

from keisei.ppo.buffer import experience_bytes
from keisei.selfplay.workers.messages import WorkItems


@dataclass(frozen=True)
class Capacity:
    """A learner and its workers, by their rates."""

    games: int
    """All games of an update."""

    rollout_plies: int
    shares: int
    """WorkItems of an update: with Ray, ``parallel.num_workers``."""

    max_lag: int
    learner_rate: float
    """Plies per second that it learns from, all epochs included, while it waits for nobody."""

    worker_rate: float
    """Plies per second of one worker with its share of the games, while it waits for nobody."""

    weights_bytes: int = 0
    update_overhead: float = 0.0
    """Seconds in each update for all that is neither: to send weights and to copy experience."""

    @property
    def plies(self) -> int:
        """Of an update."""
        return self.games * self.rollout_plies

    @property
    def learning_seconds(self) -> float:
        """Between the last work_item of an update and the next weights."""
        return self.plies / self.learner_rate + self.update_overhead

    @property
    def ticket_seconds(self) -> float:
        """That a worker plays for one work_item."""
        return self.plies / self.shares / self.worker_rate

    @property
    def enough_workers(self) -> int:
        """With so many, the learner would never wait, if work_items could be cut as small."""
        return math.ceil(self.plies / self.worker_rate / self.learning_seconds)

    def update_seconds(self, workers: int) -> float:
        """Seconds from one update to the next, once it runs.

        Without lag they take turns: all work_items are played, then one learns. Else it is the longest
        of three: to learn; to play all work_items; and what follows from the lag: in ``max_lag`` + 1
        updates there must be time to play a work_item and to learn once.
        """
        if self.max_lag == 0:
            return self.learning_seconds + self.ticket_seconds * math.ceil(self.shares / workers)
        return max(
            self.learning_seconds,
            self.ticket_seconds * self.shares / workers,
            (self.learning_seconds + self.ticket_seconds) / (self.max_lag + 1),
        )

    def plies_per_second(self, workers: int) -> float:
        """Of the whole run."""
        return self.plies / self.update_seconds(workers)

    @property
    def bytes_per_ply(self) -> float:
        """Of experience, on its way to the learner."""
        return experience_bytes(self.rollout_plies, self.games) / self.plies

    def learner_traffic(self, workers: int, nodes: int) -> tuple[float, float]:
        """Bytes per second into the learner (experience) and out of it (weights, to each node)."""
        seconds = self.update_seconds(workers)
        return self.plies * self.bytes_per_ply / seconds, self.weights_bytes * nodes / seconds


def simulated_update_seconds(plan: Capacity, workers: int, updates: int = 50) -> float:
    """The same by playing it through, with the very work_items that training uses.

    The first half of the updates is left out: they fill the pipe.
    """
    work_items: WorkItems[None] = WorkItems(shares=plan.shares, max_lag=plan.max_lag)
    playing: list[tuple[float, int]] = []
    """When a work_item will have been played, and its number."""

    idle = workers
    now = 0.0
    begins: list[float] = []
    for _ in range(updates):
        work_items.begin_round()
        begins.append(now)
        while True:
            while idle and (number := work_items.take()) is not None:
                idle -= 1
                heapq.heappush(playing, (now + plan.ticket_seconds, number))
            if work_items.is_complete:
                break
            now, number = heapq.heappop(playing)
            work_items.complete(number, None)
            idle += 1
        work_items.collect()
        learned = now + plan.learning_seconds
        while playing and playing[0][0] <= learned:  # and they go on with what they may draw
            done, number = heapq.heappop(playing)
            work_items.complete(number, None)
            following = work_items.take()
            if following is None:
                idle += 1
            else:
                heapq.heappush(playing, (done + plan.ticket_seconds, following))
        now = learned
    half = updates // 2
    return (begins[-1] - begins[half]) / (updates - 1 - half)

"""``keisei benchmark capacity``: the number of workers that one learner can use.

It measures one worker with its share of the games and one learner, one after the other, and plans
from these rates with `Capacity` (``docs/cluster.md`` has the formulas); a simulation checks the
plan.

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
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from rich.console import Console

from keisei.benchmark.harness import StepRecorder, print_header, this_machine
from keisei.callbacks import EventBus
from keisei.config import load_config
from keisei.config_schema import AppConfig
from keisei.formats import new_table
from keisei.ppo.buffer import Experience, experience_bytes
from keisei.ppo.learner import Ranks
from keisei.selfplay.workers.model_sync import pack_weights, unpack_weights
from keisei.selfplay.workers.worker import PoolSnapshots, SelfPlayWorker
from keisei.selfplay.workers.worker_pool import GameShares, WorkItems
from keisei.timing import SectionTimer
from keisei.training.trainer import Trainer

TURNS: Final = 5
WORKERS: Final = (1, 2, 4, 8, 16, 32, 64, 128)


@dataclass(frozen=True)
class Capacity:
    """Rates of a learner and its workers, and what follows from them."""

    games: int
    """Games of an update, of all workers."""

    rollout_plies: int
    shares: int
    """Work items of an update: with Ray, ``parallel.num_workers``."""

    max_lag: int
    learner_rate: float
    """Plies per second that the learner trains on, all epochs included, when it never waits."""

    worker_rate: float
    """Plies per second of one worker with its share of the games, when it never waits."""

    weights_bytes: int = 0
    update_overhead: float = 0.0
    """Seconds of each update spent on sending weights and copying experience."""

    @property
    def plies(self) -> int:
        """Plies of an update."""
        return self.games * self.rollout_plies

    @property
    def learning_seconds(self) -> float:
        """Seconds between the last work item of an update and the next weights."""
        return self.plies / self.learner_rate + self.update_overhead

    @property
    def item_seconds(self) -> float:
        """Seconds that a worker plays for one work item."""
        return self.plies / self.shares / self.worker_rate

    @property
    def enough_workers(self) -> int:
        """Workers with which the learner never waits, if work items could be arbitrarily small."""
        return math.ceil(self.plies / self.worker_rate / self.learning_seconds)

    def update_seconds(self, workers: int) -> float:
        """Return the seconds from one update to the next in steady state.

        Without lag, playing and learning alternate. Otherwise it is the longest of three: learning;
        playing all work items; and the bound of the lag: in ``max_lag`` + 1 updates there must be
        time to play one work item and to learn once.
        """
        if self.max_lag == 0:
            return self.learning_seconds + self.item_seconds * math.ceil(self.shares / workers)
        return max(
            self.learning_seconds,
            self.item_seconds * self.shares / workers,
            (self.learning_seconds + self.item_seconds) / (self.max_lag + 1),
        )

    def plies_per_second(self, workers: int) -> float:
        """Return the plies per second of the whole run."""
        return self.plies / self.update_seconds(workers)

    @property
    def bytes_per_ply(self) -> float:
        """Bytes of experience per ply on its way to the learner."""
        return experience_bytes(self.rollout_plies, self.games) / self.plies

    def learner_traffic(self, workers: int, nodes: int) -> tuple[float, float]:
        """Return bytes per second into the learner (experience) and out of it (weights)."""
        seconds = self.update_seconds(workers)
        return self.plies * self.bytes_per_ply / seconds, self.weights_bytes * nodes / seconds


def simulated_update_seconds(plan: Capacity, workers: int, updates: int = 50) -> float:
    """Return `Capacity.update_seconds` by a simulation with the work items that training uses.

    The first half of the updates, in which the pipeline fills, is left out.
    """
    work_items: WorkItems[None] = WorkItems(shares=plan.shares, max_lag=plan.max_lag)
    playing: list[tuple[float, int]] = []
    """Completion time and number of each work item under way."""

    idle = workers
    now = 0.0
    begins: list[float] = []
    for _ in range(updates):
        work_items.begin_round()
        begins.append(now)
        while True:
            while idle and (number := work_items.take()) is not None:
                idle -= 1
                heapq.heappush(playing, (now + plan.item_seconds, number))
            if work_items.is_complete:
                break
            now, number = heapq.heappop(playing)
            work_items.complete(number, None)
            idle += 1
        work_items.collect()
        learned = now + plan.learning_seconds
        while playing and playing[0][0] <= learned:  # workers continue with the next items
            done, number = heapq.heappop(playing)
            work_items.complete(number, None)
            following = work_items.take()
            if following is None:
                idle += 1
            else:
                heapq.heappush(playing, (done + plan.item_seconds, following))
        now = learned
    half = updates // 2
    return (begins[-1] - begins[half]) / (updates - 1 - half)


def report_capacity(
    config: str, settings: Sequence[str], *, shares: int, nodes: int, check: int
) -> None:
    """Measure a worker and a learner, and print the plan.

    Args:
        config: a file or a recipe.
        settings: overrides, as ``section.field=value``.
        shares: work items of an update.
        nodes: nodes that receive the weights.
        check: also train with this many Ray workers on this machine, and compare with the plan;
            0: only plan.
    """
    console = Console()
    print_header(console, this_machine(("numba", "numpy", "torch")))
    settings = [*settings, "device.threads=1", "env.threads=1", "evaluation.interval=0"]
    plain = load_config(config, settings)
    trainer, steps, _ = _train(plain, TURNS)
    weights = trainer.learner.network.weights()
    start = time.perf_counter()
    messages = pack_weights(weights, compress=False)
    unpack_weights(messages)
    packing_seconds = time.perf_counter() - start
    shares = check or shares
    plan = Capacity(
        games=plain.env.num_games,
        rollout_plies=plain.selfplay.rollout_plies,
        shares=shares,
        max_lag=plain.parallel.max_lag,
        learner_rate=len(trainer.buffer) / min(step["time/learning"] for step in steps),
        worker_rate=_worker_rate(plain, trainer, shares),
        weights_bytes=sum(len(message["data"]) for message in messages.values()),
        update_overhead=packing_seconds,
    )
    console.print(
        f"learner {plan.learner_rate:,.0f} plies/s, a worker {plan.worker_rate:,.0f} plies/s with "
        f"{plan.games // shares} games; {plan.bytes_per_ply:.0f} bytes per ply, weights "
        f"{plan.weights_bytes / 1e6:.2f} MB; {plan.enough_workers} workers are enough"
    )
    _print_plan(console, plan, nodes)
    if check:
        ray = load_config(
            config, [*settings, "parallel.backend=ray", f"parallel.num_workers={check}"]
        )
        _, steps, seconds = _train(ray, TURNS * 2)
        measured = plan.plies * len(steps) / seconds
        console.print(
            f"{check} Ray workers: {measured:,.0f} plies/s, planned "
            f"{plan.plies_per_second(check):,.0f}"
        )


def _print_plan(console: Console, plan: Capacity, nodes: int) -> None:
    table = new_table(f"{plan.shares} work items per update, lag {plan.max_lag}, {nodes} nodes")
    for heading in ("workers", "plies/s", "simulated", "in MB/s", "out MB/s"):
        table.add_column(heading, justify="right")
    for workers in WORKERS:
        into, out = plan.learner_traffic(workers, nodes)
        table.add_row(
            str(workers),
            f"{plan.plies_per_second(workers):,.0f}",
            f"{plan.plies / simulated_update_seconds(plan, workers):,.0f}",
            f"{into / 1e6:.2f}",
            f"{out / 1e6:.2f}",
        )
    console.print(table)


def _worker_rate(config: AppConfig, trainer: Trainer, shares: int) -> float:
    """Return the plies per second of a worker with its share of the games, the best turn."""
    plan = GameShares(config, shares=shares, ranks=Ranks()).next_plan(PoolSnapshots((), 0))
    worker = SelfPlayWorker(plan)
    worker.load_weights(trainer.learner.network.weights(), 0)
    experience = Experience(config.selfplay.rollout_plies, plan.games)
    best = float("inf")
    for _ in range(TURNS):
        start = time.perf_counter()
        worker.play(experience, SectionTimer())
        best = min(best, time.perf_counter() - start)
    return len(experience) / best


def _train(config: AppConfig, steps: int) -> tuple[Trainer, list[dict[str, float]], float]:
    """Return (a trainer after some steps, their metrics, their seconds), warm-up left out."""
    recorder = StepRecorder()
    with tempfile.TemporaryDirectory() as directory:
        trainer = Trainer(config, Path(directory), EventBus([recorder]))
        with trainer.selfplay:
            trainer.train_step()  # starts the workers and warms up
            start = time.perf_counter()
            for _ in range(steps):
                trainer.train_step()
            seconds = time.perf_counter() - start
    return trainer, recorder.steps[1:], seconds

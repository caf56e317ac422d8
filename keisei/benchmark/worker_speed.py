"""``keisei benchmark workers``: self-play by workers next to one process, and their overhead.

One process with one thread and the workers take turns, and the ratio is that of the best
turns. For the ring, the workers play nothing: they hand over the same plies again and again, as
fast as the learner takes them. The network is a tower, or without torch a sparse one.
"""

import time
from collections import deque
from collections.abc import Callable
from importlib.util import find_spec
from multiprocessing.connection import Connection
from typing import Final

from rich.console import Console

from keisei.benchmark.harness import print_header, this_machine
from keisei.config import load_config
from keisei.config_schema import AppConfig
from keisei.formats import new_table
from keisei.network.model_factory import make_network
from keisei.network.predictor import Network
from keisei.ppo.buffer import Experience, experience_bytes
from keisei.selfplay.rollout import RolloutStats
from keisei.selfplay.source import SelfPlay
from keisei.selfplay.workers.messages import SlotRing, WorkerCommunicator
from keisei.selfplay.workers.process_pool import ParallelSelfPlay
from keisei.selfplay.workers.worker import ProcessPlan, SelfPlayWorker, WorkerProcess
from keisei.timing import SectionTimer

PLIES: Final = 16
"""Plies per game in a turn."""

STEADY_ROLLOUTS: Final = 20
RING_ROLLOUTS: Final = 100


def report_workers(workers: int, turns: int) -> None:
    """Measure self-play by one process and by `workers` workers, and print a table."""
    console = Console()
    print_header(console, this_machine(("numpy", "torch")))
    base = (
        "env.num_games=256",
        "model.type=resnet" if find_spec("torch") else "model.type=sparse",
        "device.device=cpu",
        "device.threads=1",
        "parallel.max_lag=1",
    )
    config = load_config(None, (*base, f"selfplay.rollout_plies={PLIES}"))
    alone, together, overhead = _compare(config, workers, turns)
    ring = load_config(None, (*base, "selfplay.rollout_plies=64", "model.tower_width=8"))
    table = new_table("self-play by workers")
    for heading in ("", "measured", "target, on a quiet machine"):
        table.add_column(heading)
    table.add_row("one process, one thread", f"{alone:,.0f} plies/s", "")
    table.add_row(f"{workers} workers", f"{together:,.0f} plies/s", "")
    table.add_row("workers / one process", f"{together / alone:.2f}x", "1.2x")
    table.add_row("overhead of the workers", f"{100 * overhead:.1f} %", "10 %")
    table.add_row("the ring", f"{_ring_rate(ring, workers) / 1e6:.2f} M plies/s", "1 M")
    size = experience_bytes(64, 256) / (64 * 256)
    table.add_row("a ply in the ring", f"{size:.0f} bytes", "512")
    console.print(table)


class ReplayWorker(SelfPlayWorker):
    """A worker that hands over the plies of its first rollout again and again."""

    _first: Experience | None = None

    def play(
        self,
        experience: Experience,
        timer: SectionTimer,
        on_ply: Callable[[], None] = lambda: None,
    ) -> RolloutStats:
        """Copy the plies of the first rollout into `experience`."""
        if self._first is None:
            self._first = Experience(experience.plies, experience.games)
            super().play(self._first, timer, on_ply)
        on_ply()
        experience.take(self._first, 0)
        return RolloutStats(plies=len(experience))


def replay_main(plan: ProcessPlan, pipe: Connection) -> None:
    """Run a `ReplayWorker` in its process."""
    with WorkerCommunicator(pipe, SlotRing.attach(plan.ring), deque(plan.ring.free)) as link:
        WorkerProcess(plan, ReplayWorker(plan.games), link).run()


def _new_network(config: AppConfig) -> Network:
    """Return the untrained network of a configuration."""
    return make_network(config, config.device)


def _rollout_rate(play: SelfPlay | ParallelSelfPlay, buffer: Experience) -> float:
    """Return the plies per second of one rollout."""
    start = time.perf_counter()
    stats = play.collect(buffer, SectionTimer())
    return stats.plies / (time.perf_counter() - start)


def _compare(config: AppConfig, workers: int, turns: int) -> tuple[float, float, float]:
    """Return (plies per second of one process, of the workers, the workers' overhead)."""
    network = _new_network(config)
    alone = SelfPlay(config, network, games=config.env.num_games, threads=1)
    buffer = Experience(PLIES, config.env.num_games)
    best_alone = best_together = 0.0
    with ParallelSelfPlay(config, workers=workers) as together:
        version = 0
        together.sync_weights(network, version)
        _rollout_rate(together, buffer)
        together.pause()
        _rollout_rate(alone, buffer)
        for _ in range(turns):
            best_alone = max(best_alone, _rollout_rate(alone, buffer))
            together.resume()
            start = time.perf_counter()
            for _ in range(4):
                version += 1
                together.sync_weights(network, version)
                together.collect(buffer, SectionTimer())
            best_together = max(best_together, 4 * len(buffer) / (time.perf_counter() - start))
            together.pause()
        together.resume()
        overhead = _overhead(together, network, buffer, version)
    return best_alone, best_together, overhead


def _overhead(play: ParallelSelfPlay, network: Network, buffer: Experience, version: int) -> float:
    """Return the share of the workers' time spent neither in the games nor in the network."""
    start, useful, number = 0.0, 0.0, 0
    for rollout in range(STEADY_ROLLOUTS + 2):
        play.sync_weights(network, version + 1 + rollout)
        stats = play.collect(buffer, SectionTimer())
        if rollout == 1:  # the workers are as far ahead now as they will be at the end
            start, number = time.perf_counter(), len(stats.workers)
        elif rollout > 1:
            useful += stats.worker_seconds["env"] + stats.worker_seconds["inference"]
    return 1 - useful / ((time.perf_counter() - start) * number)


def _ring_rate(config: AppConfig, workers: int) -> float:
    """Return the plies per second that the shared-memory ring can move."""
    network = _new_network(config)
    buffer = Experience(config.selfplay.rollout_plies, config.env.num_games)
    with ParallelSelfPlay(config, workers=workers, main=replay_main) as play:
        play.sync_weights(network, 0)
        play.collect(buffer, SectionTimer())
        start = time.perf_counter()
        for version in range(1, RING_ROLLOUTS + 1):
            play.sync_weights(network, version)
            play.collect(buffer, SectionTimer())
        return RING_ROLLOUTS * len(buffer) / (time.perf_counter() - start)

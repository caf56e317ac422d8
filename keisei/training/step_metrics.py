"""The metrics of one training step, and the facts of a run when it starts.

Among the metrics is what the run uses of its machine; torch is asked for it only where something
else has imported it.
"""

import platform
import sys
import time
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, Final

import numpy as np

from keisei import __version__
from keisei import metric_names as metrics
from keisei.config_schema import AppConfig
from keisei.ppo.buffer import ExperienceBuffer
from keisei.ppo.learner import Learner, UpdateStats
from keisei.selfplay.rollout import RolloutStats
from keisei.shogi.rules import Termination
from keisei.shogi.types import Color
from keisei.system import resident_megabytes, usable_cpus
from keisei.training.background import is_in_background


def step_metrics(
    rollout: RolloutStats,
    update: UpdateStats,
    seconds: Mapping[str, float],
    network_seconds: float,
    usage: Mapping[str, float],
) -> dict[str, float]:
    """Metrics by their full name. `seconds` are those of the step, by section."""
    step_seconds = max(sum(seconds.values()), 1e-9)
    values = dict(update.metrics)
    values |= {f"time/{name}": spent for name, spent in seconds.items()}
    values[metrics.SPS] = rollout.plies / step_seconds
    values[metrics.NETWORK_SHARE] = network_seconds / step_seconds
    values[metrics.FORCED_MOVES] = rollout.forced_plies / rollout.plies
    values[metrics.GAMES_FINISHED] = float(len(rollout.outcomes))
    values[metrics.MEMORY] = resident_megabytes()
    if (video := video_megabytes()) is not None:
        values[metrics.VIDEO_MEMORY] = video
    values |= {f"system/{name}": share for name, share in usage.items()}
    if rollout.outcomes:
        values |= _game_metrics(rollout)
    if rollout.workers:
        values |= _worker_metrics(rollout)
    if rollout.workers or rollout.abandoned_games:
        values[metrics.ABANDONED_GAMES] = float(rollout.abandoned_games)
    if rollout.pool_share:
        values[metrics.POOL_SHARE] = rollout.pool_share
    if rollout.pool_games:
        values[metrics.POOL_SCORE] = rollout.pool_points / rollout.pool_games
    return values


def _worker_metrics(rollout: RolloutStats) -> dict[str, float]:
    values = {
        metrics.POLICY_LAG: float(rollout.lag),
        metrics.FAILURES: float(rollout.failures),
    }
    for worker in rollout.workers:
        figures = (
            worker.plies_per_second,
            worker.waited / worker.seconds if worker.seconds else 0.0,
            float(worker.games),
            float(worker.version),
            worker.memory,
        )
        values |= {
            metrics.worker_metric(worker.worker, name): value
            for name, value in zip(metrics.WORKER_FIGURES, figures, strict=True)
        }
    return values


def _game_metrics(rollout: RolloutStats) -> dict[str, float]:
    number = len(rollout.outcomes)
    winners = Counter(outcome.winner for outcome, _ in rollout.outcomes)
    endings = Counter(outcome.termination for outcome, _ in rollout.outcomes)
    return {
        metrics.BLACK_WINS: winners[Color.BLACK] / number,
        metrics.WHITE_WINS: winners[Color.WHITE] / number,
        metrics.DRAWS: winners[None] / number,
        metrics.PLY_LIMIT_RATE: endings[Termination.PLY_LIMIT] / number,
        metrics.MEAN_PLIES: sum(plies for _, plies in rollout.outcomes) / number,
        **{
            f"{metrics.TERMINATION_PREFIX}{ending.name.lower()}": count / number
            for ending, count in endings.items()
        },
    }


def run_facts(config: AppConfig, learner: Learner, buffer: ExperienceBuffer) -> dict[str, Any]:
    """Sizes, device and versions of a run, by name."""
    network = learner.network
    return {
        **learner.facts(),
        "planes": network.spec.num_planes,
        "features": network.spec.name,
        "model": config.model.type,
        "learners": learner.ranks.size,
        "buffer_bytes_per_ply": round(buffer.bytes_per_ply, 1),
        "background_evaluation": is_in_background(
            config.evaluation, network, learner.ranks.local_size
        ),
        "mate_plies": config.selfplay.mate_plies,
        "keisei": __version__,
        "numpy": np.__version__,
        "python": platform.python_version(),
    }


class UsageMeter:
    """Measures how busy this machine is with a run: processors, memory and GPU."""

    MIN_INTERVAL: Final = 1.0
    """Seconds between two measurements: looking at all child processes takes milliseconds."""

    def __init__(self) -> None:
        self._cpu_seconds: dict[int, float] = {}
        self._measured = time.monotonic()
        self._shares: dict[str, float] = {}
        self._read_cpu_seconds()

    def shares(self) -> dict[str, float]:
        """Return shares from 0 to 1, by name.

        ``cpu``: processor time of this process and its children since the last call, of all
        processors it may use; ``memory``: memory in use on this machine; ``gpu``: time in which the
        GPU was busy, where one is in use and its driver tells.
        """
        import psutil

        now = time.monotonic()
        if now - self._measured < self.MIN_INTERVAL:
            return dict(self._shares)
        spent = self._read_cpu_seconds()
        self._shares = {
            "cpu": min(1.0, spent / (now - self._measured) / usable_cpus()),
            "memory": float(psutil.virtual_memory().percent) / 100.0,
        }
        if (busy := _gpu_share()) is not None:
            self._shares["gpu"] = busy
        self._measured = now
        return dict(self._shares)

    def _read_cpu_seconds(self) -> float:
        """Return the processor time since the last call; new processes count from their start."""
        import psutil

        seconds: dict[int, float] = {}
        own = psutil.Process()
        for process in (own, *own.children(recursive=True)):
            with suppress(psutil.Error):  # it may have ended
                times = process.cpu_times()
                seconds[process.pid] = times.user + times.system
        before, self._cpu_seconds = self._cpu_seconds, seconds
        return sum(max(0.0, spent - before.get(pid, 0.0)) for pid, spent in seconds.items())


def _gpu_share() -> float | None:
    """Return the share of the time in which the GPU was busy; None if that is not known."""
    torch = sys.modules.get("torch")
    if torch is None or not torch.cuda.is_initialized():
        return None
    try:
        return float(torch.cuda.utilization()) / 100.0
    except Exception:  # noqa: BLE001 - needs a package of the driver, which fails in its own ways
        return None


def video_megabytes() -> float | None:
    """Return the peak GPU memory of this process's tensors in MiB; None if no GPU is in use."""
    torch = sys.modules.get("torch")  # without torch there are no tensors
    if torch is None or not torch.cuda.is_initialized():
        return None
    return float(torch.cuda.max_memory_allocated()) / (1 << 20)

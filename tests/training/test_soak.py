"""A long run with workers, one of which is killed now and then: nothing grows, nothing is lost."""

import gc
import multiprocessing
import os
import signal
import time
from pathlib import Path
from typing import NamedTuple

import pytest

from keisei import metric_names as names
from keisei.callbacks import Callback, StepEnd
from keisei.system import InterruptFlag, resident_megabytes
from tests.soak.summary import note
from tests.tiny import tiny_trainer

MINUTES = float(os.environ.get("KEISEI_SOAK_MINUTES", "20"))
KILL_INTERVAL = 60.0
SHARED = Path("/dev/shm")

pytestmark = [
    pytest.mark.soak,
    pytest.mark.skipif(not SHARED.is_dir(), reason="counts what Linux shows of a process"),
]


class Held(NamedTuple):
    """Resources that the run holds."""

    megabytes: float
    worker_megabytes: float
    """Memory of the largest worker."""

    handles: int
    blocks: int
    processes: int


class Watch(Callback):
    """Measures the resources, kills a worker once a minute, and ends the run in time."""

    def __init__(self, flag: InterruptFlag) -> None:
        self.flag = flag
        self.held: list[Held] = []
        self.steps = self.plies = 0
        self.kills = 0
        self.start = self.last_kill = time.monotonic()

    def on_step_end(self, event: StepEnd) -> None:
        self.steps += 1
        self.plies = event.progress.timestep
        now = time.monotonic()
        if self.steps % 20 == 0 or not self.held:
            self.held.append(self._measure(event))
        if now - self.last_kill > KILL_INTERVAL:
            self.last_kill = now
            self.kills += 1
            process = next(
                child
                for child in multiprocessing.active_children()
                if child.name == f"keisei-worker-{self.kills % 2}"
            )
            assert process.pid is not None
            os.kill(process.pid, signal.SIGKILL)
        if now - self.start > 60.0 * MINUTES:
            self.flag.is_set = True

    def _measure(self, event: StepEnd) -> Held:
        gc.collect()
        return Held(
            resident_megabytes(),
            max(event.metrics[names.worker_metric(number, "rss_mb")] for number in (0, 1)),
            len(os.listdir("/proc/self/fd")),  # noqa: PTH208 - iterdir opens one itself
            len(list(SHARED.glob(f"keisei-*-{os.getpid()}-*"))),
            len(multiprocessing.active_children()),
        )


def test_nothing_grows(tmp_path: Path, family: str) -> None:
    flag = InterruptFlag()
    watch = Watch(flag)
    trainer = tiny_trainer(
        tmp_path,
        family,
        "run.total_timesteps=1000000000",
        "parallel.num_workers=2",
        "selfplay.rollout_plies=64",
        "selfplay.pool_share=0.25",
        "checkpoint.interval=50",
        callbacks=[watch],
    )
    assert trainer.run(flag) == "interrupted"
    assert watch.kills >= MINUTES - 2
    assert watch.plies == watch.steps * len(trainer.buffer), "no ply was lost or doubled"
    early, late = watch.held[len(watch.held) // 5], watch.held[-1]
    assert late.megabytes < early.megabytes * 1.1 + 20.0
    assert late.worker_megabytes < early.worker_megabytes * 1.1 + 20.0
    assert (late.handles, late.blocks, late.processes) == early[2:]
    note(
        f"memory, handles, segments: training, {family.removeprefix('model.type=')}",
        f"{MINUTES:g} minutes, {watch.steps:,} updates, {watch.kills} workers killed",
        f"{early.megabytes:.0f} MB, {early.handles} handles -> {late.megabytes:.0f} MB, "
        f"{late.handles} handles, {late.blocks} segments; no ply lost",
        since=watch.start,
    )

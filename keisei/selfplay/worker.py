"""A worker: a process that plays a part of the games and hands over what it experienced.

It begins when the first weights have come, goes on while the learner learns as far as the permitted
lag allows, and ends when it is told to, or when the learner is gone.
"""

import os
import signal
import sys
import time
import traceback
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Final, NamedTuple

import torch

from keisei.config_schema import AppConfig
from keisei.memory import resident_megabytes
from keisei.models.compute import choose_compute
from keisei.models.factory import build_model
from keisei.ppo.experience import Experience
from keisei.ppo.inference import Inference
from keisei.selfplay.communication import (
    Beat,
    Chunk,
    Command,
    Failure,
    RingPlan,
    SlotRing,
    WorkerCommunicator,
    WorkerStats,
)
from keisei.selfplay.model_sync import ModelSynchronizer
from keisei.selfplay.rollout import RolloutStats
from keisei.selfplay.source import SelfPlay
from keisei.selfplay.timing import SectionTimer
from keisei.shogi.features import feature_spec

BEAT_SECONDS: Final = 1.0
"""How often a worker gives a sign of life."""

WAIT_SECONDS: Final = 0.5
"""How long it waits for an order before it gives one again."""


class WorkerPlan(NamedTuple):
    """What a worker is to do."""

    worker: int
    """Its number."""

    config_json: str
    first_game: int
    games: int
    threads: int
    first_chunk: int
    """The number of the update that its first chunk is for."""

    max_lag: int
    slab: str
    """Name of the shared memory with the weights."""

    ring: RingPlan


class _StoppedError(Exception):
    """The learner wants no more."""


class _ResetError(Exception):
    """All games are to be abandoned."""


class SelfPlayWorker:
    """Plays with the newest weights and fills slots."""

    def __init__(self, plan: WorkerPlan, link: WorkerCommunicator) -> None:
        config = AppConfig.model_validate_json(plan.config_json)
        config = config.model_copy(
            update={
                "device": config.device.model_copy(
                    update={
                        "device": "cpu",
                        "mixed_precision": "off",
                        "compile": "off",
                        "torch_threads": plan.threads,
                    }
                )
            }
        )
        spec = feature_spec(config.env.input_features)
        compute = choose_compute(config.device)
        self.model = compute.prepare(build_model(config.model, spec.num_planes)).eval()
        self.sync = ModelSynchronizer.attach(self.model, plan.slab)
        self.selfplay = SelfPlay(
            config,
            Inference(self.model, compute, spec),
            games=plan.games,
            first_game=plan.first_game,
            threads=1,
        )
        self._plan = plan
        self._link = link
        self._pool_interval = config.selfplay.pool_interval
        self._chunk = plan.first_chunk
        self._version = self._newest = -1
        self._remembered = -1
        self._is_paused = False
        self._start = self._last_beat = time.perf_counter()
        self._waited = 0.0
        self._plies = self._games = 0

    def run(self) -> None:
        """Play until told to stop, or until the learner is gone."""
        timer = SectionTimer()
        self._beat()
        while True:
            try:
                self._wait_until(self._may_begin)
                self._apply_newest()
                slot = self._link.free.popleft()
                timer.take()
                stats = self._fill(self._link.ring[slot], timer)
                self._tell_chunk(slot, stats, timer.take())
            except _ResetError:
                self.selfplay.env.reset()
                self._link.free.appendleft(slot)
            except (_StoppedError, EOFError, BrokenPipeError, ConnectionResetError):
                return

    def _fill(self, experience: Experience, timer: SectionTimer) -> RolloutStats:
        return self.selfplay.collect(experience, timer, on_ply=self._serve)

    def _tell_chunk(self, slot: int, stats: RolloutStats, seconds: dict[str, float]) -> None:
        self._plies += stats.plies
        self._games += len(stats.outcomes)
        self._link.tell(Chunk(slot, self._chunk, self._version, stats, seconds))
        self._chunk += 1

    def _may_begin(self) -> bool:
        """Whether there is a slot to fill, and weights that are new enough."""
        return bool(self._link.free) and self._newest >= max(0, self._chunk - self._plan.max_lag)

    def _apply_newest(self) -> None:
        if self._version == self._newest:
            return
        while not self.sync.load(self.model, self._newest):  # replaced while being read
            self._obey(WAIT_SECONDS)
        self._version = self._newest
        if self._version // self._pool_interval != self._remembered:
            self._remembered = self._version // self._pool_interval
            self.selfplay.pool.add(self.model)

    def _serve(self) -> None:
        """Between plies: obey orders, stand still while paused, give signs of life."""
        self._obey(0.0)
        if self._is_paused:
            self._wait_until(lambda: not self._is_paused)
        if time.perf_counter() - self._last_beat > BEAT_SECONDS:
            self._beat()

    def _wait_until(self, is_true: Callable[[], bool]) -> None:
        self._obey(0.0)
        while self._is_paused or not is_true():
            start = time.perf_counter()
            self._obey(WAIT_SECONDS)
            self._waited += time.perf_counter() - start
            if time.perf_counter() - self._last_beat > BEAT_SECONDS:
                self._beat()

    def _obey(self, timeout: float) -> None:
        for order in self._link.orders(timeout):
            if order.command == Command.WEIGHTS:
                self._newest = max(self._newest, order.argument)
            elif order.command == Command.PAUSE:
                self._is_paused = True
            elif order.command == Command.RESUME:
                self._is_paused = False
            elif order.command == Command.STOP:
                raise _StoppedError
            elif order.command == Command.RESET:
                raise _ResetError

    def _beat(self) -> None:
        self._last_beat = time.perf_counter()
        self._link.tell(
            Beat(
                WorkerStats(
                    worker=self._plan.worker,
                    process=os.getpid(),
                    plies=self._plies,
                    games=self._games,
                    seconds=self._last_beat - self._start,
                    waited=self._waited,
                    version=self._version,
                    memory=resident_megabytes(),
                )
            )
        )


def worker_main(plan: WorkerPlan, pipe: Connection) -> None:
    """What the process of a worker does; never raises, it tells."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the learner's to handle
    torch.set_num_threads(plan.threads)
    ring = SlotRing.attach(plan.ring)
    with WorkerCommunicator(pipe, ring, deque(plan.ring.free)) as link:
        try:
            SelfPlayWorker(plan, link).run()
        except BaseException:  # noqa: BLE001 - whatever it is, the learner shall know
            with suppress(OSError):
                link.tell(Failure(traceback.format_exc()))
            sys.exit(1)

"""The process of a worker on this machine: weights by shared memory, experience by a ring of slots.

It begins when the first weights have come, goes on while the learner learns as far as the permitted
lag allows, and ends when it is told to, or when the learner is gone.
"""

import os
import sys
import time
import traceback
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Final, NamedTuple

from keisei.selfplay.workers.messages import (
    Chunk,
    CommandKind,
    Failure,
    Heartbeat,
    RingPlan,
    SlotRing,
    WorkerCommunicator,
    WorkerStats,
)
from keisei.selfplay.workers.model_sync import ModelSynchronizer
from keisei.selfplay.workers.worker import GamesPlan, SelfPlayWorker
from keisei.system import leave_signals_to_parent, resident_megabytes
from keisei.timing import SectionTimer

HEARTBEAT_INTERVAL: Final = 1.0
"""How often a worker gives a sign of life."""

MAX_UNACKNOWLEDGED: Final = 20
"""So many are sent while the learner is busy: a full pipe would make the worker stand still."""

COMMAND_TIMEOUT: Final = 0.5
"""How long it waits for an order before it gives one again."""


class ProcessPlan(NamedTuple):
    """What the process is to do."""

    worker: int
    """Its number."""

    games: GamesPlan
    first_chunk: int
    """The number of the update that its first chunk is for."""

    max_lag: int
    weights_buffer: str
    """Name of the shared memory with the weights."""

    ring: RingPlan


class _StoppedError(Exception):
    """The learner wants no more."""


class _ResetError(Exception):
    """All games are to be abandoned."""


class WorkerProcess:
    """Plays with the newest weights and fills slots, and listens all the while."""

    def __init__(self, plan: ProcessPlan, worker: SelfPlayWorker, link: WorkerCommunicator) -> None:
        self._plan = plan
        self._worker = worker
        self._link = link
        self._weights_buffer = ModelSynchronizer.attach(
            worker.network.weights(), plan.weights_buffer
        )
        self._chunk = plan.first_chunk
        self._newest = -1
        self._is_paused = self._must_reset = False
        self._start = self._last_heartbeat = time.perf_counter()
        self._unacknowledged = 0
        self._waited = 0.0
        self._plies = self._games = 0

    def run(self) -> None:
        """Play until told to stop, or until the learner is gone."""
        timer = SectionTimer()
        with (
            self._weights_buffer,
            suppress(_StoppedError, EOFError, BrokenPipeError, ConnectionResetError),
        ):
            self._send_heartbeat()
            while True:
                try:
                    self._play_chunk(timer)
                except _ResetError:
                    self._worker.reset()

    def _play_chunk(self, timer: SectionTimer) -> None:
        self._wait_until(self._may_begin)
        self._apply_newest()
        slot = self._link.free[0]
        timer.take()
        stats = self._worker.play(self._link.ring[slot], timer, on_ply=self._serve)
        self._link.free.popleft()
        self._plies += stats.plies
        self._games += len(stats.outcomes)
        self._link.send(Chunk(slot, self._worker.version, stats, timer.take()))
        self._chunk += 1

    def _may_begin(self) -> bool:
        """Whether there is a slot to fill, and weights that are new enough."""
        return bool(self._link.free) and self._newest >= max(0, self._chunk - self._plan.max_lag)

    def _apply_newest(self) -> None:
        while self._worker.version != self._newest:
            weights = self._weights_buffer.read(self._newest)
            if weights is None:  # replaced while they were read: an order tells by which
                self._handle_commands(COMMAND_TIMEOUT)
            else:
                self._worker.load_weights(weights, self._newest)

    def _serve(self) -> None:
        """Between plies: obey commands, stand still while paused, give signs of life."""
        self._wait_until(lambda: True)

    def _wait_until(self, is_true: Callable[[], bool]) -> None:
        self._handle_commands(0.0)
        self._send_heartbeat_if_due()
        while self._is_paused or not is_true():
            start = time.perf_counter()
            self._handle_commands(COMMAND_TIMEOUT)
            self._waited += time.perf_counter() - start
            self._send_heartbeat_if_due()

    def _handle_commands(self, timeout: float) -> None:
        for command in self._link.commands(timeout):
            match command.kind:
                case CommandKind.WEIGHTS:
                    self._newest = max(self._newest, command.argument)
                case CommandKind.FREE:
                    self._link.free.append(command.argument)
                case CommandKind.ACKNOWLEDGE:
                    self._unacknowledged = 0
                case CommandKind.PAUSE:
                    self._is_paused = True
                case CommandKind.RESUME:
                    self._is_paused = False
                case CommandKind.STOP:
                    raise _StoppedError
                case CommandKind.RESET:
                    self._must_reset = True
        if self._must_reset:  # only now, or the commands after it would be lost
            self._must_reset = False
            raise _ResetError

    def _send_heartbeat_if_due(self) -> None:
        is_due = time.perf_counter() - self._last_heartbeat > HEARTBEAT_INTERVAL
        if is_due and self._unacknowledged < MAX_UNACKNOWLEDGED:
            self._send_heartbeat()

    def _send_heartbeat(self) -> None:
        self._unacknowledged += 1
        self._last_heartbeat = time.perf_counter()
        self._link.send(
            Heartbeat(
                WorkerStats(
                    worker=self._plan.worker,
                    process=os.getpid(),
                    plies=self._plies,
                    games=self._games,
                    seconds=self._last_heartbeat - self._start,
                    waited=self._waited,
                    version=self._worker.version,
                    memory=resident_megabytes(),
                )
            )
        )


def worker_main(plan: ProcessPlan, pipe: Connection) -> None:
    """What the process does; never raises, it tells."""
    leave_signals_to_parent()
    try:
        ring = SlotRing.attach(plan.ring)
        with WorkerCommunicator(pipe, ring, deque(plan.ring.free)) as link:
            WorkerProcess(plan, SelfPlayWorker(plan.games), link).run()
    except BaseException:  # noqa: BLE001 - whatever it is, the learner shall know
        with suppress(OSError):
            pipe.send(Failure(traceback.format_exc()))
        sys.exit(1)

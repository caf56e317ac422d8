"""A worker: plays a share of a run's games with a copy of the network.

`SelfPlayWorker` plays; how weights reach it and experience leaves it depends on the transport. Here
that is a process on this machine (`WorkerProcess`): weights come through a buffer in shared memory,
experience goes through a ring of slots, commands and heartbeats through a pipe. On a Ray cluster it
is an actor (`keisei.selfplay.workers.ray_actor`).
"""

import os
import sys
import time
import traceback
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from multiprocessing.connection import Connection
from typing import Final, NamedTuple

from keisei.config_schema import AppConfig
from keisei.network.model_factory import make_network
from keisei.network.predictor import Weights
from keisei.ppo.buffer import Experience
from keisei.selfplay.rollout import RolloutStats, WorkerStats
from keisei.selfplay.source import ResetError, SelfPlay
from keisei.selfplay.workers.inference_server import RemotePredictor, ServerAddress
from keisei.selfplay.workers.messages import (
    Chunk,
    CommandKind,
    Failure,
    Heartbeat,
    RingPlan,
    SlotRing,
    WorkerCommunicator,
)
from keisei.selfplay.workers.model_sync import ModelSynchronizer, TensorMessage, unpack_weights
from keisei.system import leave_signals_to_parent, resident_megabytes
from keisei.timing import SectionTimer

HEARTBEAT_INTERVAL: Final = 1.0
"""Seconds between two heartbeats of a worker."""

MAX_UNACKNOWLEDGED: Final = 20
"""Heartbeats sent while the learner is busy: if the pipe were full, the worker would block."""

COMMAND_TIMEOUT: Final = 0.5
"""Seconds that a waiting worker waits for a command before it checks its heartbeat."""


class PoolSnapshots(NamedTuple):
    """The snapshots of the opponent pool, for a worker that starts in the middle of a run."""

    weights: tuple[Mapping[str, TensorMessage], ...]
    """Snapshots, the oldest first; empty without pool games."""

    version: int
    """Version of the network when the pool held exactly these."""


class GamesPlan(NamedTuple):
    """The games that a worker plays."""

    config_json: str
    """The settings of the run."""

    first_game: int
    """Number of the first game; the others follow it."""

    games: int
    threads: int
    """Threads of the worker's network."""

    snapshots: PoolSnapshots
    server: ServerAddress | None = None
    """Where the worker's positions are evaluated; None: by its own copy of the network."""


class SelfPlayWorker:
    """Plays its games with the weights that were loaded last."""

    def __init__(self, plan: GamesPlan) -> None:
        config = self.config = _worker_config(plan)
        self.network = make_network(config, config.device)
        self.version = -1
        """Version of the weights: the updates that went into them; negative before the first.

        An inference server has these weights or newer ones.
        """

        self._selfplay = SelfPlay(
            config,
            self.network,
            games=plan.games,
            first_game=plan.first_game,
            threads=config.env.threads or 1,
            predictor=None if plan.server is None else RemotePredictor(plan.server),
        )
        self._selfplay.pool.snapshots = [unpack_weights(one) for one in plan.snapshots.weights]
        self._pool_interval = config.selfplay.pool_interval
        self._interval = plan.snapshots.version // self._pool_interval
        """Number of the pool interval that the newest snapshot belongs to."""

    def load_weights(self, weights: Weights, version: int) -> None:
        """Play with these weights from now on."""
        self.network.load_weights(weights)
        # A worker may skip versions, so intervals are counted instead of taking every n-th version.
        if (interval := version // self._pool_interval) > self._interval:
            self._selfplay.pool.add(weights)
            self._interval = interval
        self.version = version

    def play(
        self,
        experience: Experience,
        timer: SectionTimer,
        on_ply: Callable[[], None] = lambda: None,
    ) -> RolloutStats:
        """Fill `experience`; `on_ply` is called before each ply."""
        return self._selfplay.collector.collect(experience, timer, on_ply=on_ply)

    def reset(self) -> None:
        """Abandon all games and start new ones."""
        self._selfplay.begin_again()


def _worker_config(plan: GamesPlan) -> AppConfig:
    """Return the settings of the run with the network on the CPU, without compilation."""
    config = AppConfig.model_validate_json(plan.config_json)
    device = config.device.model_copy(
        update={
            "device": "cpu",
            "mixed_precision": "off",
            "compile": "off",
            "threads": plan.threads,
        }
    )
    return config.model_copy(update={"device": device})


class ProcessPlan(NamedTuple):
    """Arguments of a worker process."""

    worker: int
    """Number of the worker."""

    games: GamesPlan
    first_chunk: int
    """Number of the update that the first chunk is for."""

    max_lag: int
    """Updates by which the weights may be behind."""

    weights_buffer: str
    """Name of the shared memory with the weights."""

    ring: RingPlan


class _StoppedError(Exception):
    """The learner has sent a stop command."""


class WorkerProcess:
    """Fills slots with the newest weights, and follows commands all the while.

    It starts to play when the first weights have been published, may be ahead of the learner by
    the permitted lag, and ends with a stop command or with the learner.
    """

    def __init__(self, plan: ProcessPlan, worker: SelfPlayWorker, link: WorkerCommunicator) -> None:
        self._plan = plan
        self._worker = worker
        self._link = link
        self._weights_buffer = ModelSynchronizer.attach(
            worker.network.weights(), plan.weights_buffer
        )
        self._chunk = plan.first_chunk
        self._newest_version = -1
        self._is_paused = self._must_reset = False
        self._start = self._last_heartbeat = time.perf_counter()
        self._unacknowledged = 0
        self._waited = 0.0
        self._plies = self._games = 0

    def run(self) -> None:
        """Play until the learner sends a stop command, or ends."""
        timer = SectionTimer()
        with (
            self._weights_buffer,
            suppress(_StoppedError, EOFError, BrokenPipeError, ConnectionResetError),
        ):
            self._send_heartbeat()
            while True:
                try:
                    self._play_chunk(timer)
                except ResetError:
                    self._worker.reset()

    def _play_chunk(self, timer: SectionTimer) -> None:
        self._wait_until(self._can_play)
        self._load_newest_weights()
        slot = self._link.free[0]
        timer.take()
        stats = self._worker.play(self._link.ring[slot], timer, on_ply=self._before_ply)
        self._link.free.popleft()
        self._plies += stats.plies
        self._games += len(stats.outcomes)
        self._link.send(Chunk(slot, self._worker.version, stats, timer.take()))
        self._chunk += 1

    def _can_play(self) -> bool:
        """Return whether there is a slot to fill, and weights that are new enough."""
        oldest_version = max(0, self._chunk - self._plan.max_lag)
        return bool(self._link.free) and self._newest_version >= oldest_version

    def _load_newest_weights(self) -> None:
        while self._worker.version != self._newest_version:
            weights = self._weights_buffer.read(self._newest_version)
            if weights is None:  # overwritten: the command with the newer version is on its way
                self._handle_commands(COMMAND_TIMEOUT)
            else:
                self._worker.load_weights(weights, self._newest_version)

    def _before_ply(self) -> None:
        """Follow commands, wait while paused, send heartbeats."""
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
                    self._newest_version = max(self._newest_version, command.argument)
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
            raise ResetError

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
    """Run the process of a worker; any error is sent to the learner as a `Failure`."""
    leave_signals_to_parent()
    try:
        ring = SlotRing.attach(plan.ring)
        with WorkerCommunicator(pipe, ring, deque(plan.ring.free)) as link:
            WorkerProcess(plan, SelfPlayWorker(plan.games), link).run()
    except BaseException:  # noqa: BLE001 - whatever it is, the learner has to know
        with suppress(OSError):
            pipe.send(Failure(traceback.format_exc()))
        sys.exit(1)

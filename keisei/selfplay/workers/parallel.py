"""Self-play by worker processes on this machine, from the learner's side.

Each worker has its own part of the games; an update takes one chunk of experience from each, so
what is learned does not depend on who is faster. Workers that fail are replaced: what they had
handed over stays, the games they were in the middle of are abandoned, and counted.
"""

import time
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from typing import Final, cast

from keisei.config_schema import AppConfig
from keisei.network.predictor import Network
from keisei.ppo.buffer import Experience
from keisei.ppo.learner import Ranks
from keisei.selfplay.rollout import RolloutStats
from keisei.selfplay.workers.inference_server import InferenceServer, is_served
from keisei.selfplay.workers.messages import (
    Chunk,
    Command,
    CommandKind,
    Failure,
    Heartbeat,
    SlotRing,
    WorkerStats,
)
from keisei.selfplay.workers.model_sync import ModelSynchronizer
from keisei.selfplay.workers.shared_memory import remove_orphans
from keisei.selfplay.workers.worker_pool import GameShares, WorkerPool
from keisei.selfplay.workers.worker_process import ProcessPlan, worker_main
from keisei.shogi.rules import Outcome
from keisei.system import spawn_context
from keisei.timing import SectionTimer

POLL_INTERVAL: Final = 1.0
"""How often one looks whether a worker hangs."""

STARTUP_TIMEOUT: Final = 300.0
"""How long a worker may take to come up: kernels may have to be compiled first."""

SHUTDOWN_TIMEOUT: Final = 3.0
"""How long workers may take to end by themselves."""


class ParallelSelfPlay(WorkerPool):
    """The workers of a run. Use it as a context: it leaves no process and no memory behind."""

    def __init__(
        self,
        config: AppConfig,
        *,
        workers: int,
        ranks: Ranks | None = None,
        rounds: int = 0,
        main: Callable[[ProcessPlan, Connection], None] = worker_main,
    ) -> None:
        """Set out the work; the workers are started with the first weights.

        Args:
            config: the settings of the run.
            workers: how many there are.
            ranks: all learners, of which this is one.
            rounds: how often games of all numbers have begun before.
            main: what the process of a worker does.
        """
        super().__init__(config)
        self._shares = GameShares(config, shares=workers, ranks=ranks or Ranks(), rounds=rounds)
        self.main = main
        self._slots = config.parallel.max_lag + 1
        self._number = workers
        self._workers: list[_Worker] = []
        self._weights_buffer: ModelSynchronizer | None = None
        self._server: InferenceServer | None = None
        self._is_paused = False

    def take_weights(self, network: Network, version: int) -> None:
        """Let all workers play with the network as it is now, after `version` updates.

        The first time they are started.
        """
        self._begin_version(network, version)
        if self._weights_buffer is None:
            remove_orphans()
            self._weights_buffer = ModelSynchronizer(network.weights())
            for number in range(self._number):  # one by one: `close` frees those there are
                self._workers.append(_Worker(self, number))
            if is_served(self._config, network):
                self._server = InferenceServer(
                    self._config, network, self._shares.games, self._number, self._weights_buffer
                )
            for worker in self._workers:
                worker.start(version)
        self._weights_buffer.publish(network.weights(), version)
        if self._server is not None:
            self._server.take_weights(version)
        for worker in self._workers:
            worker.send(CommandKind.WEIGHTS, version)

    def collect(
        self,
        experience: Experience,
        timer: SectionTimer,
        on_game_end: Callable[[Outcome, int], None] = lambda outcome, plies: None,
    ) -> RolloutStats:
        """Fill `experience` with one chunk of each worker.

        Raises:
            WorkersFailedError: Too many workers failed, one after the other.
        """
        with timer.section("waiting"):
            while not all(worker.chunks for worker in self._workers):
                self._receive()
        total = RolloutStats()
        for worker in self._workers:
            chunk = worker.chunks.popleft()
            experience.take(worker.ring[chunk.slot], worker.number * self._shares.games)
            worker.send(CommandKind.FREE, chunk.slot)
            worker.unread.discard(chunk.slot)
            total.add(chunk.rollout, lag=self._version - chunk.version, seconds=chunk.seconds)
        workers = tuple(worker.stats for worker in self._workers)
        return self._finished(total, experience, workers, on_game_end)

    def pause(self) -> None:
        """Let all workers stand still until `resume`."""
        self._is_paused = True
        self._send_all(CommandKind.PAUSE)

    def resume(self) -> None:
        """Let them go on."""
        self._is_paused = False
        self._send_all(CommandKind.RESUME)

    def reset(self) -> None:
        """Let all workers abandon their games and begin new ones."""
        self.abandoned_games += self._config.env.num_games
        self._send_all(CommandKind.RESET)

    def close(self) -> None:
        """End all workers and free all memory."""
        for worker in self._workers:
            worker.send(CommandKind.STOP)
        deadline = time.monotonic() + SHUTDOWN_TIMEOUT
        for worker in self._workers:
            worker.close(deadline)
        if self._server is not None:
            self._server.close()
        if self._weights_buffer is not None:
            self._weights_buffer.close()
        self._workers, self._weights_buffer, self._server = [], None, None

    def plan(self, worker: "_Worker", first_chunk: int) -> ProcessPlan:
        """What a worker is to do."""
        assert self._weights_buffer is not None
        server_address = None
        if self._server is not None:
            server_address = self._server.server_address(worker.number)
            worker.server_start = self._server.starts
        free = [slot for slot in range(self._slots) if slot not in worker.unread]
        return ProcessPlan(
            worker=worker.number,
            games=self._shares.next_plan(self._pool_snapshots, server_address),
            first_chunk=first_chunk,
            max_lag=self._config.parallel.max_lag,
            weights_buffer=self._weights_buffer.name,
            ring=worker.ring.plan(free),
        )

    def new_ring(self) -> SlotRing:
        """Slots for one worker."""
        return SlotRing(self._config.selfplay.rollout_plies, self._shares.games, self._slots)

    def _send_all(self, kind: CommandKind) -> None:
        for worker in self._workers:
            worker.send(kind)

    def _receive(self) -> None:
        """Take what workers have to say, and replace those that are gone or hang."""
        pipes = {worker.pipe: worker for worker in self._workers if worker.pipe is not None}
        for pipe in wait(list(pipes), POLL_INTERVAL):
            worker = pipes[cast("Connection", pipe)]  # of another class on Windows
            if (reason := self._receive_from(worker)) is not None:
                self._replace(worker, reason)
        for worker in self._workers:
            limit = self._config.parallel.hang_seconds if worker.is_up else STARTUP_TIMEOUT
            if worker.seconds_silent > limit:
                reason = f"no sign of life for {worker.seconds_silent:.0f} s"
                if self._server is not None and all(
                    other.seconds_silent > limit / 2 for other in self._workers
                ):  # they wait for an answer, all of them
                    self._server.kill()
                worker.kill()
                self._receive_from(worker)  # what it had handed over counts
                self._replace(worker, reason)

    def _receive_from(self, worker: "_Worker") -> str | None:
        """Take all that a worker has said; if it has ended, returns why."""
        assert worker.pipe is not None
        try:
            while worker.pipe.poll():
                message = worker.pipe.recv()
                worker.last_heard = time.monotonic()
                if isinstance(message, Chunk):
                    worker.chunks.append(message)
                    worker.unread.add(message.slot)
                    self._failures_in_a_row = 0
                elif isinstance(message, Heartbeat):
                    worker.stats = message.stats
                    worker.is_up = True
                    worker.send(CommandKind.ACKNOWLEDGE)
                elif isinstance(message, Failure):
                    return message.reason
        except (EOFError, OSError):
            return worker.exit_reason()
        return None

    def _replace(self, worker: "_Worker", reason: str) -> None:
        # A server that is gone takes all its workers with it: that is one failure.
        is_follower = self._server is not None and worker.server_start < self._server.starts
        self._count_failure(
            worker.number, reason, lost_games=self._shares.games, is_repeated=not is_follower
        )
        worker.kill()
        worker.start(self._version + len(worker.chunks))
        worker.send(CommandKind.WEIGHTS, self._version)
        if self._is_paused:
            worker.send(CommandKind.PAUSE)


class _Worker:
    """A worker process as the learner sees it."""

    def __init__(self, owner: ParallelSelfPlay, number: int) -> None:
        self.number = number
        self.ring = owner.new_ring()
        self.chunks: deque[Chunk] = deque()
        """Filled and not yet read, the oldest first."""

        self.unread: set[int] = set()
        """Their slots."""

        self.pipe: Connection | None = None
        self.stats = WorkerStats(number, 0)
        self.is_up = False
        self.last_heard = time.monotonic()
        self.server_start = 0
        """Which start of the inference server it asks, if there is one."""

        self._owner = owner
        self._process: SpawnProcess | None = None

    @property
    def seconds_silent(self) -> float:
        """Seconds since its last sign of life."""
        return time.monotonic() - self.last_heard

    def start(self, first_chunk: int) -> None:
        """Give it a new process."""
        if self.pipe is not None:
            self.pipe.close()
        context = spawn_context()
        self.pipe, other = context.Pipe()
        plan = self._owner.plan(self, first_chunk)
        self._process = context.Process(
            target=self._owner.main,
            args=(plan, other),
            name=f"keisei-worker-{self.number}",
            daemon=True,
        )
        self._process.start()
        other.close()
        self.is_up = False
        self.last_heard = time.monotonic()

    def send(self, kind: CommandKind, argument: int = 0) -> None:
        """Tell it something; one that is gone is noticed elsewhere."""
        if self.pipe is not None:
            with suppress(OSError):
                self.pipe.send(Command(kind, argument))

    def exit_reason(self) -> str:
        """Why its process ended, as far as one can tell."""
        if self._process is None:
            return "it was killed"
        self._process.join(1.0)
        return f"its process ended with exit code {self._process.exitcode}"

    def kill(self) -> None:
        """End its process for certain."""
        if self._process is not None:
            self._process.kill()
            self._process.join()
            self._process.close()
        self._process = None

    def close(self, deadline: float) -> None:
        """Wait for its end until `deadline`, and free its memory."""
        if self._process is not None:
            self._process.join(max(0.0, deadline - time.monotonic()))
        self.kill()
        if self.pipe is not None:
            self.pipe.close()
        self.ring.close()

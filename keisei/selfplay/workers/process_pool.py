"""Self-play by worker processes on this machine: the learner's side.

Each worker plays its own share of the games, and an update takes one chunk of experience from each,
so what is learned does not depend on which workers are fast. A worker that fails is replaced: the
chunks that it has sent are used, its games in progress are abandoned and counted.
"""

import time
from collections import deque
from collections.abc import Callable
from contextlib import ExitStack, suppress
from multiprocessing.connection import Connection, wait
from multiprocessing.context import SpawnProcess
from typing import Final, cast

from keisei.config_schema import AppConfig
from keisei.network.predictor import Network
from keisei.ppo.buffer import Experience
from keisei.ppo.learner import Ranks
from keisei.selfplay.rollout import RolloutStats, WorkerStats
from keisei.selfplay.source import WorkersFailedError
from keisei.selfplay.workers.inference_server import InferenceServer, uses_inference_server
from keisei.selfplay.workers.messages import (
    Chunk,
    Command,
    CommandKind,
    Failure,
    Heartbeat,
    SlotRing,
)
from keisei.selfplay.workers.model_sync import ModelSynchronizer
from keisei.selfplay.workers.worker import ProcessPlan, worker_main
from keisei.selfplay.workers.worker_pool import GameShares, WorkerPool
from keisei.shared_memory import SharedMemoryError, remove_orphans
from keisei.shogi.rules import Outcome
from keisei.system import ctrl_c_held_back, spawn_context
from keisei.timing import SectionTimer

POLL_INTERVAL: Final = 1.0
"""Seconds between two checks for workers that hang."""

STARTUP_TIMEOUT: Final = 300.0
"""Seconds that a worker may take to start: kernels may have to be compiled first."""

SHUTDOWN_TIMEOUT: Final = 3.0
"""Seconds that workers may take to end by themselves."""


class ParallelSelfPlay(WorkerPool):
    """The worker processes of a learner. Use it as a context: it frees all processes and memory."""

    def __init__(
        self,
        config: AppConfig,
        *,
        workers: int,
        ranks: Ranks | None = None,
        first_round: int = 0,
        main: Callable[[ProcessPlan, Connection], None] = worker_main,
    ) -> None:
        """Divide the games; the workers are started with the first weights.

        Args:
            config: the settings of the run.
            workers: number of workers.
            ranks: all learners of the run, of which this is one.
            first_round: number of rounds of games that were started before; see `GameShares`.
            main: main function of the worker processes.
        """
        super().__init__(config)
        self._shares = GameShares(
            config, shares=workers, ranks=ranks or Ranks(), first_round=first_round
        )
        self.main = main
        self._slots = config.parallel.max_lag + 1
        self._workers: list[_Worker] = []
        self._weights_buffer: ModelSynchronizer | None = None
        self._server: InferenceServer | None = None
        self._is_paused = False

    def sync_weights(self, network: Network, version: int) -> None:
        """Send the weights of the network, after `version` updates, to all workers.

        The first call starts the workers.

        Raises:
            WorkersFailedError: They cannot be started.
        """
        self._begin_version(network, version)
        if self._weights_buffer is None:
            try:
                self._weights_buffer = self._start_workers(network, version)
            except (OSError, SharedMemoryError) as error:
                raise WorkersFailedError(f"workers cannot be started: {error}") from error
        self._weights_buffer.publish(network.weights(), version)
        if self._server is not None:
            self._server.load_weights(version)
        self._send_all(CommandKind.WEIGHTS, version)

    def _start_workers(self, network: Network, version: int) -> ModelSynchronizer:
        """Start all workers; returns the buffer by which they get their weights."""
        remove_orphans()
        # Kept one by one, so that `close` frees what there is if the next fails.
        weights_buffer = self._weights_buffer = ModelSynchronizer(network.weights())
        for number in range(self._shares.shares):
            self._workers.append(_Worker(self, number))
        if uses_inference_server(self._config, network):
            self._server = InferenceServer(
                self._config, network, self._shares.games, self._shares.shares, weights_buffer
            )
        for worker in self._workers:
            worker.start(version)
        return weights_buffer

    def collect(
        self,
        experience: Experience,
        timer: SectionTimer,
        on_game_end: Callable[[Outcome, int], None] = lambda outcome, plies: None,
        is_paused: Callable[[], bool] = lambda: False,
        on_progress: Callable[[int], None] = lambda plies: None,
    ) -> RolloutStats:
        """Fill `experience` with one chunk of each worker; see `GameSource.collect`.

        Raises:
            WorkersFailedError: Too many workers failed in a row.
        """
        with timer.section("waiting"):
            self._pause_while(is_paused)
            while (ready := sum(bool(worker.chunks) for worker in self._workers)) < len(
                self._workers
            ):
                on_progress(len(experience) * ready // len(self._workers))
                self._receive()
                self._pause_while(is_paused)
        total = RolloutStats()
        for worker in self._workers:
            chunk = worker.chunks.popleft()
            experience.take(worker.ring[chunk.slot], worker.number * self._shares.games)
            worker.send(CommandKind.FREE, chunk.slot)
            worker.unread.discard(chunk.slot)
            total.add(chunk.rollout, lag=self._version - chunk.version, seconds=chunk.seconds)
        workers = tuple(worker.stats for worker in self._workers)
        return self._finish_rollout(total, experience, workers, on_game_end)

    def pause(self) -> None:
        """Pause all workers, within a ply, until `resume` is called."""
        self._is_paused = True
        self._send_all(CommandKind.PAUSE)

    def resume(self) -> None:
        """Let all workers continue."""
        self._is_paused = False
        self._send_all(CommandKind.RESUME)

    def reset(self) -> None:
        """Let all workers abandon their games and start new ones, within a ply."""
        self.abandoned_games += self._config.env.num_games
        self._send_all(CommandKind.RESET)

    def close(self) -> None:
        """End all workers and free all memory."""
        self._send_all(CommandKind.STOP)
        deadline = time.monotonic() + SHUTDOWN_TIMEOUT
        with ExitStack() as owned:  # the others are freed even if Ctrl-C ends the wait for one
            if self._weights_buffer is not None:
                owned.callback(self._weights_buffer.close)
            if self._server is not None:
                owned.callback(self._server.close)
            for worker in self._workers:
                owned.callback(worker.close, deadline)
            self._workers, self._weights_buffer, self._server = [], None, None

    def plan(self, worker: "_Worker", first_chunk: int) -> ProcessPlan:
        """Return what the process of a worker is started with."""
        assert self._weights_buffer is not None
        server = None
        if self._server is not None:
            server = self._server.address(worker.number)
            worker.server_start = self._server.starts
        free = [slot for slot in range(self._slots) if slot not in worker.unread]
        return ProcessPlan(
            worker=worker.number,
            games=self._shares.next_plan(self._pool_snapshots, server),
            first_chunk=first_chunk,
            max_lag=self._config.parallel.max_lag,
            weights_buffer=self._weights_buffer.name,
            ring=worker.ring.plan(free),
        )

    def new_ring(self) -> SlotRing:
        """Create the slots of one worker."""
        settings = self._config.selfplay
        return SlotRing(
            settings.rollout_plies, self._shares.games, self._slots, targets=settings.num_targets
        )

    def _send_all(self, kind: CommandKind, argument: int = 0) -> None:
        for worker in self._workers:
            worker.send(kind, argument)

    def _pause_while(self, is_paused: Callable[[], bool]) -> None:
        if not is_paused():
            return
        self.pause()
        while is_paused():
            self._receive()
        self.resume()

    def _receive(self) -> None:
        """Handle the messages of workers, and replace workers that have ended or hang."""
        pipes = {worker.pipe: worker for worker in self._workers if worker.pipe is not None}
        for pipe in wait(list(pipes), POLL_INTERVAL):
            worker = pipes[cast("Connection", pipe)]  # of another class on Windows
            if (reason := self._receive_from(worker)) is not None:
                self._replace(worker, reason)
        for worker in self._workers:
            limit = self._config.parallel.hang_seconds if worker.is_up else STARTUP_TIMEOUT
            if worker.seconds_silent > limit:
                reason = f"no heartbeat for {worker.seconds_silent:.0f} s"
                if self._server is not None and all(
                    other.seconds_silent > limit / 2 for other in self._workers
                ):  # all of them wait for predictions
                    self._server.kill()
                worker.kill()
                self._receive_from(worker)  # chunks that it had sent count
                self._replace(worker, reason)

    def _receive_from(self, worker: "_Worker") -> str | None:
        """Handle the messages of a worker; if it has ended, return the reason."""
        assert worker.pipe is not None
        try:
            while worker.pipe.poll():
                message = worker.pipe.recv()
                worker.last_message = time.monotonic()
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
        # An inference server that ends takes all its workers with it: that is one failure.
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
    """The learner's side of one worker process."""

    def __init__(self, owner: ParallelSelfPlay, number: int) -> None:
        self.number = number
        self.ring = owner.new_ring()
        self.chunks: deque[Chunk] = deque()
        """Chunks that have been received and not been read, the oldest first."""

        self.unread: set[int] = set()
        """Indices of their slots."""

        self.pipe: Connection | None = None
        self.stats = WorkerStats(number, 0)
        self.is_up = False
        """Whether the process has sent its first heartbeat."""

        self.last_message = time.monotonic()
        self.server_start = 0
        """Which start of the inference server it is connected to, if there is one."""

        self._owner = owner
        self._process: SpawnProcess | None = None

    @property
    def seconds_silent(self) -> float:
        """Seconds since its last message."""
        return time.monotonic() - self.last_message

    def start(self, first_chunk: int) -> None:
        """Start a new process.

        Raises:
            WorkersFailedError: The system refuses to.
        """
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
        try:
            with ctrl_c_held_back():
                self._process.start()
        except OSError as error:
            self._process = None
            raise WorkersFailedError(f"cannot start worker {self.number}: {error}") from error
        other.close()
        self.is_up = False
        self.last_message = time.monotonic()

    def send(self, kind: CommandKind, argument: int = 0) -> None:
        """Send a command; if the process has ended, `_receive` notices."""
        if self.pipe is not None:
            with suppress(OSError):
                self.pipe.send(Command(kind, argument))

    def exit_reason(self) -> str:
        """Return why its process ended, as far as is known."""
        if self._process is None:
            return "it was killed"
        self._process.join(1.0)
        return f"its process ended with exit code {self._process.exitcode}"

    def kill(self) -> None:
        """Kill its process."""
        if self._process is not None:
            self._process.kill()
            self._process.join()
            self._process.close()
        self._process = None

    def close(self, deadline: float) -> None:
        """Wait for the end of its process until `deadline`, then kill it, and free its memory."""
        try:
            if self._process is not None:
                self._process.join(max(0.0, deadline - time.monotonic()))
        finally:
            self.kill()
            if self.pipe is not None:
                self.pipe.close()
            self.ring.close()

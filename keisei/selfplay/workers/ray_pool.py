"""Self-play by workers on a Ray cluster: the learner's side.

The learner hands out work items to actors on any node, with a reference to the newest weights,
which Ray copies to each node once. Workers may come and go: nodes that join the cluster are used,
and the work items of a lost worker are given to another.
"""

import importlib.util
import logging
import os
import socket
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from keisei.config_schema import AppConfig
from keisei.network.predictor import Network
from keisei.ppo.buffer import Experience, experience_bytes
from keisei.ppo.learner import Ranks, largest_divisor
from keisei.selfplay.rollout import RolloutStats, WorkerStats
from keisei.selfplay.source import WorkersFailedError
from keisei.selfplay.workers.model_sync import pack_weights
from keisei.selfplay.workers.ray_actor import ActorStatus, PackedChunk, RayWorker, WeightsMessage
from keisei.selfplay.workers.worker_pool import GameShares, WorkerPool, WorkItems
from keisei.shogi.rules import Outcome
from keisei.timing import SectionTimer

logger = logging.getLogger(__name__)

POLL_INTERVAL: Final = 1.0
"""Seconds between two checks for workers that hang, and of the size of the cluster."""

STATUS_INTERVAL: Final = 2.0
"""Seconds between two requests for the status of a worker."""

GATHER_TIMEOUT: Final = 180.0
"""Seconds that the first work items wait for workers that have a node but have not started yet."""

STARTUP_TIMEOUT: Final = 300.0
"""Seconds without any worker before the run fails: kernels may have to be compiled first."""

CONNECT_TIMEOUT: Final = 10.0
"""Seconds that a cluster may take to accept a connection."""

LAST_RESULT_TIMEOUT: Final = 1.0
"""Seconds to wait for results that a lost worker may have finished."""

CONTROL: Final = "control"
"""Concurrency group of a worker's methods that run while it plays."""

MIN_OBJECT_STORE: Final = 80 << 20
"""Bytes; Ray refuses smaller object stores."""


class RaySelfPlay(WorkerPool):
    """The workers of a learner on a cluster. Use it as a context: it ends them, and its own Ray."""

    def __init__(
        self,
        config: AppConfig,
        *,
        local_cpus: int,
        ranks: Ranks | None = None,
        first_round: int = 0,
    ) -> None:
        """Join the cluster; the workers are started with the first weights.

        Args:
            config: the settings of the run.
            local_cpus: CPUs for workers if Ray is started on this machine.
            ranks: all learners of the run, of which this is one.
            first_round: number of rounds of games that were started before; see `GameShares`.

        Raises:
            WorkersFailedError: Ray is not installed, or the cluster cannot be joined.
            KeiseiError: The games cannot be divided evenly among the workers.
        """
        super().__init__(config)
        ranks = ranks or Ranks()
        parallel = config.parallel
        self._wanted = parallel.num_workers or "auto"
        self._threads = parallel.worker_threads or 1
        if self._wanted != "auto":
            GameShares(config, shares=self._wanted, ranks=ranks)  # raises if they are uneven
        self._ray = import_ray()
        self._has_joined = _join(self._ray, config, local_cpus)
        limit = max(1, self._capacity()) if self._wanted == "auto" else self._wanted
        shares = largest_divisor(config.env.num_games, limit=limit)
        self._shares = GameShares(config, shares=shares, ranks=ranks, first_round=first_round)
        self._work_items: WorkItems[PackedChunk] = WorkItems(
            shares=shares, max_lag=parallel.max_lag
        )
        self._weights: Any = None
        self._actors: dict[int, _Actor] = {}
        self._has_gathered = False
        self._is_paused = False
        self._start = self._last_up = self._last_check = time.monotonic()

    @property
    def games_in_progress(self) -> int:
        """Games that are lost if the pool is closed now."""
        return len(self._running()) * self._shares.games

    def sync_weights(self, network: Network, version: int) -> None:
        """Use the weights of the network, after `version` updates, from the next work item on.

        Raises:
            WorkersFailedError: The cluster failed.
        """
        self._begin_version(network, version)
        kind = self._config.parallel.compression
        messages = pack_weights(
            network.weights(), compress=kind.endswith("gzip"), half=kind.startswith("bf16")
        )
        with self._translated_errors():
            self._weights = self._ray.put(WeightsMessage(messages, version))
            self._work_items.begin_round()
            for actor in self._actors.values():
                actor.offer_weights(self._weights)
            if not self._actors:
                self._start = time.monotonic()
            self._adjust_actors()
            self._hand_out()

    def collect(
        self,
        experience: Experience,
        timer: SectionTimer,
        on_game_end: Callable[[Outcome, int], None] = lambda outcome, plies: None,
        is_paused: Callable[[], bool] = lambda: False,
        on_progress: Callable[[int], None] = lambda plies: None,
    ) -> RolloutStats:
        """Fill `experience` with the work items of one update; see `GameSource.collect`.

        Raises:
            WorkersFailedError: Too many workers failed in a row, or none started.
        """
        with timer.section("waiting"), self._translated_errors():
            self._work_items.begin_round()
            now = self._last_up = time.monotonic()
            for actor in self._actors.values():
                actor.last_progress = now  # no status was requested while the learner learned
            while (is_waiting := is_paused()) or not self._work_items.is_complete:
                if is_waiting != self._is_paused:
                    self.pause() if is_waiting else self.resume()
                if not is_waiting:
                    on_progress(len(experience) * self._work_items.completed // self._shares.shares)
                self._receive()
                if not is_waiting:
                    self._hand_out()
            if self._is_paused:
                self.resume()
            chunks = self._work_items.collect()
            # Nothing is handed out while the learner learns, so all that is permitted is now.
            self._hand_out(items_each=sys.maxsize)
        total = RolloutStats()
        for share, chunk in enumerate(chunks):
            experience.take(chunk.experience, share * self._shares.games)
            total.add(chunk.rollout, lag=self._version - chunk.version, seconds=chunk.seconds)
        stats = tuple(actor.stats for actor in self._running())
        return self._finish_rollout(total, experience, stats, on_game_end)

    def pause(self) -> None:
        """Pause all workers, within a ply, until `resume` is called."""
        self._pause(True)

    def resume(self) -> None:
        """Let all workers continue."""
        self._pause(False)

    def _pause(self, is_paused: bool) -> None:
        self._is_paused = is_paused
        now = time.monotonic()
        for actor in self._actors.values():
            actor.pause(is_paused)
            actor.last_progress = now

    def reset(self) -> None:
        """Let all workers abandon their games and start new ones, within a ply."""
        self.abandoned_games += self.games_in_progress
        for actor in self._actors.values():
            actor.reset()

    def close(self) -> None:
        """End all workers, and leave the cluster if it was joined here."""
        for actor in self._actors.values():
            actor.kill()
        self._actors.clear()
        if self._has_joined:
            self._ray.shutdown()
            self._has_joined = False

    @contextmanager
    def _translated_errors(self) -> Iterator[None]:
        """Turn errors of Ray into `WorkersFailedError`, which stops a run with a checkpoint."""
        try:
            yield
        except self._ray.exceptions.RayError as error:
            raise WorkersFailedError(f"the Ray cluster failed: {error}") from error

    def _capacity(self) -> int:
        """Return the number of workers that the cluster has CPUs for now."""
        return int(self._ray.cluster_resources().get("CPU", 0.0)) // self._threads

    def _running(self) -> "list[_Actor]":
        """Return the workers that have started, by number."""
        return [self._actors[n] for n in sorted(self._actors) if self._actors[n].is_up]

    def _adjust_actors(self) -> None:
        """Create or remove actors as the cluster grows or shrinks; running ones are kept."""
        if self._wanted == "auto":  # more could not all have a work item at the same time
            limit = self._work_items.shares * (self._config.parallel.max_lag + 1)
            wanted = min(self._capacity(), limit)
        else:
            wanted = self._wanted
        for number in [n for n, actor in self._actors.items() if not actor.is_up]:
            if len(self._actors) > wanted:  # the node that they were waiting for has left
                self._actors.pop(number).kill()
        while len(self._actors) < wanted:
            number = next(n for n in range(wanted) if n not in self._actors)
            self._actors[number] = _Actor(self._ray, number, self._new_handle(number))
            if self._is_paused:
                self._actors[number].pause(True)

    def _new_handle(self, number: int) -> Any:
        """Create an actor, whose games have unused numbers."""
        # Ray must not restart it: it would play the same games again.
        actor_class = self._ray.remote(
            num_cpus=self._threads, max_restarts=0, concurrency_groups={CONTROL: 1}
        )(RayWorker)
        plies = self._config.selfplay.rollout_plies
        return actor_class.remote(number, self._shares.next_plan(self._pool_snapshots), plies)

    def _hand_out(self, items_each: int = 1) -> None:
        """Give work items to workers that have fewer than `items_each`."""
        if not self._can_start():
            return
        running = self._running()
        while running and (least := min(running, key=_Actor.load)).load() < items_each:
            work_item = self._work_items.take()
            if work_item is None:
                return
            least.play(self._weights, work_item)

    def _can_start(self) -> bool:
        """Return whether enough workers have started: else the first would get all the work."""
        if not self._has_gathered:
            is_late = time.monotonic() - self._start > GATHER_TIMEOUT
            expected = min(len(self._actors), max(1, self._capacity()))
            self._has_gathered = is_late or len(self._running()) >= expected
        return self._has_gathered

    def _receive(self) -> None:
        """Take results, and replace workers that have ended or hang."""
        pending = {ref: actor for actor in self._actors.values() for ref in actor.pending()}
        for ref in self._wait_for(list(pending)):
            actor = pending[ref]
            if self._actors.get(actor.number) is not actor:
                continue  # it has just been replaced
            try:
                reply = self._ray.get(ref)
            except self._ray.exceptions.RayError as error:
                self._replace(actor, str(error))
                continue
            if isinstance(reply, PackedChunk):
                self._work_items.complete(reply.work_item, reply)
                self._failures_in_a_row = 0
            actor.receive(ref, reply)
        if time.monotonic() - self._last_check > POLL_INTERVAL:
            self._check_actors()

    def _wait_for(self, refs: list[Any]) -> list[Any]:
        """Return the references that are ready, waiting a little for the first."""
        if not refs:  # no worker has a node
            time.sleep(POLL_INTERVAL)
            return []
        ready, waiting = self._ray.wait(refs, num_returns=1, timeout=POLL_INTERVAL)
        if ready and waiting:
            ready += self._ray.wait(waiting, num_returns=len(waiting), timeout=0)[0]
        return list(ready)

    def _check_actors(self) -> None:
        """Replace workers that hang, follow the size of the cluster, fail if no worker starts."""
        now = self._last_check = time.monotonic()
        for actor in list(self._actors.values()):
            silent = now - actor.last_progress
            if actor.is_up and not self._is_paused and silent > self._config.parallel.hang_seconds:
                self._replace(actor, f"no heartbeat for {silent:.0f} s")
        self._adjust_actors()
        if self._running():
            self._last_up = now
        elif now - self._last_up > STARTUP_TIMEOUT:
            raise WorkersFailedError(
                f"no worker started within {STARTUP_TIMEOUT:.0f} s; the cluster has room for "
                f"{self._capacity()} workers of {self._threads} CPUs each, if it is not in use"
            )

    def _replace(self, actor: "_Actor", reason: str) -> None:
        """Keep the results that a lost worker had finished, and put its other work items back.

        The failure of a worker that had worked before, or whose node is lost, says nothing about
        the next worker. A node may take many workers with it, and the run must not stop for that.
        """
        del self._actors[actor.number]
        actor.kill()
        for ref, work_item in actor.work_items.items():
            try:
                self._work_items.complete(
                    work_item, self._ray.get(ref, timeout=LAST_RESULT_TIMEOUT)
                )
            except self._ray.exceptions.RayError:
                self._work_items.put_back(work_item)
        self._count_failure(
            actor.number,
            reason,
            lost_games=self._shares.games * actor.is_up,
            is_repeated=not (actor.stats.plies or self._is_node_lost(actor, reason)),
        )
        self._adjust_actors()

    def _is_node_lost(self, actor: "_Actor", reason: str) -> bool:
        """Return whether a worker was lost with its node: one that never started names it."""
        lost = [str(node["NodeID"]) for node in self._ray.nodes() if not node["Alive"]]
        return actor.node in lost or any(node in reason for node in lost)


class _Actor:
    """The learner's side of one worker."""

    def __init__(self, ray: Any, number: int, handle: Any) -> None:
        self.number = number
        self.stats = WorkerStats(number, 0)
        self.node = ""
        self.is_up = False
        """Whether it has replied to its first status request."""

        self.last_progress = time.monotonic()
        """When it was last known to be idle, or to have played a ply."""

        self.work_items: dict[Any, int] = {}
        """Its work items, by the reference of their result."""

        self._ray = ray
        self._handle = handle
        self._progress = -1
        self._last_request = time.monotonic()
        self._status: Any = self._request_status()

    def load(self) -> int:
        """Return the number of its work items."""
        return len(self.work_items)

    def offer_weights(self, weights: Any) -> None:
        """Offer newer weights, if it has work items that it has not started."""
        if self.load() > 1:
            self._in_control_group(self._handle.offer_weights).remote(weights)

    def pause(self, is_paused: bool) -> None:
        """Pause it, or let it continue."""
        self._in_control_group(self._handle.pause).remote(is_paused)

    def reset(self) -> None:
        """Let it abandon its games."""
        self._in_control_group(self._handle.reset).remote()

    def play(self, weights: Any, work_item: int) -> None:
        """Queue a work item."""
        if not self.work_items:
            self.last_progress = time.monotonic()
        self.work_items[self._handle.play.remote(weights, work_item)] = work_item

    def pending(self) -> list[Any]:
        """Return the references of all replies to come; from time to time requests the status."""
        if self._status is None and time.monotonic() - self._last_request > STATUS_INTERVAL:
            self._last_request = time.monotonic()
            self._status = self._request_status()
        return [*self.work_items, *([] if self._status is None else [self._status])]

    def receive(self, ref: Any, reply: PackedChunk | ActorStatus) -> None:
        """Update its state by a reply."""
        self.stats = reply.stats
        if isinstance(reply, PackedChunk):
            del self.work_items[ref]
            self.last_progress = time.monotonic()
            return
        self._status, self.node, self.is_up = None, reply.node, True
        if not self.work_items or reply.progress != self._progress:
            self.last_progress = time.monotonic()
        self._progress = reply.progress

    def kill(self) -> None:
        """Kill its process."""
        self._ray.kill(self._handle)

    def _request_status(self) -> Any:
        return self._in_control_group(self._handle.status).remote()

    def _in_control_group(self, method: Any) -> Any:
        """Return a method that does not wait for the work item that is being played."""
        return method.options(concurrency_group=CONTROL)


def import_ray() -> Any:
    """Return the package ray.

    Raises:
        WorkersFailedError: It is not installed; the message says how to install it.
    """
    if importlib.util.find_spec("ray") is None:
        raise WorkersFailedError(
            "parallel.backend=ray needs the package ray, which is not installed: "
            'python -m pip install "keisei[ray]"; or set parallel.backend to processes'
        )
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")  # no usage reports unless wanted
    import ray

    return ray


def _try_connection(address: str) -> None:
    """Connect to ``host:port`` once, for an error within seconds: Ray itself tries for minutes."""
    host, colon, port = address.rpartition(":")
    if colon and port.isdecimal() and "/" not in host:
        socket.create_connection((host, int(port)), CONNECT_TIMEOUT).close()


def _join(ray: Any, config: AppConfig, local_cpus: int) -> bool:
    """Start Ray here, or join the cluster of the settings; returns False if Ray was running."""
    if ray.is_initialized():
        return False
    address = config.parallel.ray_address
    quiet = {"log_to_driver": False, "logging_level": logging.WARNING}
    if address:
        try:
            _try_connection(address)
            ray.init(address=address, **quiet)
        except Exception as error:
            raise WorkersFailedError(
                f"cannot join the Ray cluster at {address!r}: {_first_line(error)}"
            ) from error
    else:
        settings = config.selfplay
        chunk = experience_bytes(settings.rollout_plies, config.env.num_games, settings.num_targets)
        store = 2 * (config.parallel.max_lag + 2) * chunk + MIN_OBJECT_STORE
        try:
            ray.init(
                "local",
                num_cpus=local_cpus,
                include_dashboard=False,
                object_store_memory=store,
                **quiet,
            )
        except Exception as error:
            raise WorkersFailedError(
                f"cannot start Ray on this machine: {_first_line(error)}"
            ) from error
    return True


def _first_line(error: Exception) -> str:
    """Return the first line of a message: Ray raises errors of any type, with logs of pages."""
    return next((line.strip() for line in str(error).splitlines() if line.strip()), repr(error))

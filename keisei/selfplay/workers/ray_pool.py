"""Self-play by workers on a Ray cluster, from the learner's side.

The learner hands out work_items to workers that may be anywhere, with a
reference to the newest weights, which Ray copies to each node once. Workers may come and go: nodes
that join are used, and what a lost worker had drawn is played by another.
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
from keisei.errors import KeiseiError
from keisei.network.predictor import Network
from keisei.ppo.buffer import Experience, experience_bytes
from keisei.ppo.learner import Ranks
from keisei.ppo.resources import fair_number
from keisei.selfplay.rollout import RolloutStats
from keisei.selfplay.workers.messages import WorkersFailedError, WorkerStats, WorkItems
from keisei.selfplay.workers.model_sync import pack_weights
from keisei.selfplay.workers.ray_actor import (
    ActorStatus,
    PackedChunk,
    RayWorker,
    WeightsMessage,
)
from keisei.selfplay.workers.worker_pool import GameShares, WorkerPool
from keisei.shogi.rules import Outcome
from keisei.timing import SectionTimer

logger = logging.getLogger(__name__)

POLL_INTERVAL: Final = 1.0
"""How often one looks who hangs, and how large the cluster is."""

STATUS_INTERVAL: Final = 2.0
"""How often a worker is asked for a sign of life."""

GATHER_TIMEOUT: Final = 180.0
"""How long the first work_items wait for workers that have a place but are not up yet."""

STARTUP_TIMEOUT: Final = 300.0
"""How long one puts up with having no worker at all: kernels may have to be compiled first."""

CONNECT_TIMEOUT: Final = 10.0
"""How long a cluster may take to answer at all."""

LAST_RESULT_TIMEOUT: Final = 1.0
"""How long one waits for what a lost worker may have finished."""

ASIDE: Final = "aside"
"""The thread of a worker that answers while it plays."""

MIN_OBJECT_STORE: Final = 80 << 20
"""Ray refuses object stores that are smaller."""


class RaySelfPlay(WorkerPool):
    """The workers of a run in a cluster. Use it as a context: it ends them, and its own Ray."""

    def __init__(
        self, config: AppConfig, *, local_cpus: int, ranks: Ranks | None = None, rounds: int = 0
    ) -> None:
        """Join the cluster. Workers begin with the first weights.

        Args:
            config: the settings of the run.
            local_cpus: what workers may use if Ray is started on this machine.
            ranks: all learners, of which this is one.
            rounds: how often games of all numbers have begun before.

        Raises:
            KeiseiError: There is no Ray, no cluster, or nobody could have a fair share.
        """
        super().__init__(config)
        parallel = config.parallel
        self._wanted = parallel.num_workers or "auto"
        self._threads = parallel.worker_threads or 1
        if self._wanted != "auto":
            GameShares(config, shares=self._wanted, ranks=Ranks())  # it says so if that cannot be
        self._ray = import_ray()
        self._has_joined = _join(self._ray, config, local_cpus)
        number = max(1, self._places()) if self._wanted == "auto" else self._wanted
        number = fair_number(number, config.env.num_games)
        self._shares = GameShares(config, shares=number, ranks=ranks or Ranks(), rounds=rounds)
        self._work_items: WorkItems[PackedChunk] = WorkItems(
            shares=number, max_lag=parallel.max_lag
        )
        self._weights: Any = None
        self._actors: dict[int, _Actor] = {}
        self._is_gathered = False
        self._start = self._last_up = self._last_look = time.monotonic()

    @property
    def games_in_progress(self) -> int:
        """That are lost if it is closed now."""
        return len(self._up()) * self._shares.games

    def take_weights(self, network: Network, version: int) -> None:
        """Play with the network as it is now, after `version` updates, from the next work_item on.

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
                actor.tell(self._weights)
            if not self._actors:
                self._start = time.monotonic()
            self._follow_cluster()
            self._hand_out()

    def collect(
        self,
        experience: Experience,
        timer: SectionTimer,
        on_game_end: Callable[[Outcome, int], None] = lambda outcome, plies: None,
    ) -> RolloutStats:
        """Fill `experience` with the work_items of one update.

        Raises:
            WorkersFailedError: Too many workers failed, one after the other, or none came up.
        """
        with timer.section("waiting"), self._translated_errors():
            self._work_items.begin_round()
            now = self._last_up = time.monotonic()
            for actor in self._actors.values():
                actor.last_heard = now  # while the learner learned, nobody was asked
            while not self._work_items.is_complete:
                self._receive()
                self._hand_out()
            chunks = self._work_items.collect()
            # The learner will be deaf while it learns, so nobody shall run out of work.
            self._hand_out(items_each=sys.maxsize)
        total = RolloutStats()
        for share, chunk in enumerate(chunks):
            experience.take(chunk.experience, share * self._shares.games)
            total.add(chunk.rollout, lag=self._version - chunk.version, seconds=chunk.seconds)
        stats = tuple(actor.stats for actor in self._up())
        return self._finished(total, experience, stats, on_game_end)

    def close(self) -> None:
        """End all workers; and leave the cluster, if it was joined here."""
        for actor in self._actors.values():
            actor.kill()
        self._actors.clear()
        if self._has_joined:
            self._ray.shutdown()
            self._has_joined = False

    @contextmanager
    def _translated_errors(self) -> Iterator[None]:
        """A cluster that fails stops the run like workers that fail: with a checkpoint."""
        try:
            yield
        except self._ray.exceptions.RayError as error:
            raise WorkersFailedError(f"the Ray cluster failed: {error}") from error

    def _places(self) -> int:
        """Workers that find room in the cluster as it is now."""
        return int(self._ray.cluster_resources().get("CPU", 0.0)) // self._threads

    def _up(self) -> "list[_Actor]":
        """Workers that have a place and are ready, by number."""
        return [self._actors[n] for n in sorted(self._actors) if self._actors[n].is_up]

    def _follow_cluster(self) -> None:
        """Have as many workers as there should be now; those that play are never taken away."""
        if self._wanted == "auto":  # more could not all have a work_item at the same time
            most = self._work_items.shares * (self._config.parallel.max_lag + 1)
            wanted = min(self._places(), most)
        else:
            wanted = self._wanted
        for number in [n for n, actor in self._actors.items() if not actor.is_up]:
            if len(self._actors) > wanted:  # they wait for a node that is no more
                self._actors.pop(number).kill()
        while len(self._actors) < wanted:
            number = next(n for n in range(wanted) if n not in self._actors)
            self._actors[number] = _Actor(self._ray, number, self._new_handle(number))

    def _new_handle(self, number: int) -> Any:
        """A new actor; it plays games of numbers that nobody had."""
        # Ray must not restart it: it would play the same games again.
        actor_class = self._ray.remote(
            num_cpus=self._threads, max_restarts=0, concurrency_groups={ASIDE: 1}
        )(RayWorker)
        plies = self._config.selfplay.rollout_plies
        return actor_class.remote(number, self._shares.next_plan(self._pool_snapshots), plies)

    def _hand_out(self, items_each: int = 1) -> None:
        """Give work_items to those who are up and have fewer than `items_each`."""
        if not self._have_gathered():
            return
        up = self._up()
        while up and len((least := min(up, key=_Actor.load)).work_items) < items_each:
            work_item = self._work_items.take()
            if work_item is None:
                return
            least.play(self._weights, work_item)

    def _have_gathered(self) -> bool:
        """Whether the run can begin: else the first worker that is up would play all by itself."""
        if not self._is_gathered:
            is_late = time.monotonic() - self._start > GATHER_TIMEOUT
            expected = min(len(self._actors), max(1, self._places()))
            self._is_gathered = is_late or len(self._up()) >= expected
        return self._is_gathered

    def _receive(self) -> None:
        """Take what has been played, and replace workers that are gone or hang."""
        replies = {ref: actor for actor in self._actors.values() for ref in actor.replies()}
        for ref in self._ready(list(replies)):
            actor = replies[ref]
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
            actor.take(ref, reply)
        if time.monotonic() - self._last_look > POLL_INTERVAL:
            self._look_around()

    def _ready(self, refs: list[Any]) -> list[Any]:
        """Those that can be had now; waits a little for the first."""
        if not refs:  # nobody has a place
            time.sleep(POLL_INTERVAL)
            return []
        ready, waiting = self._ray.wait(refs, num_returns=1, timeout=POLL_INTERVAL)
        if ready and waiting:
            ready += self._ray.wait(waiting, num_returns=len(waiting), timeout=0)[0]
        return list(ready)

    def _look_around(self) -> None:
        now = self._last_look = time.monotonic()
        for actor in list(self._actors.values()):
            silent = now - actor.last_heard
            if actor.is_up and silent > self._config.parallel.hang_seconds:
                self._replace(actor, f"no sign of life for {silent:.0f} s")
        self._follow_cluster()
        if self._up():
            self._last_up = now
        elif now - self._last_up > STARTUP_TIMEOUT:
            raise WorkersFailedError(
                f"no worker came up in {STARTUP_TIMEOUT:.0f} s; the cluster has room for "
                f"{self._places()} workers of {self._threads} CPUs each, if nobody else uses it"
            )

    def _replace(self, actor: "_Actor", reason: str) -> None:
        """Take what it had finished, and let others play what else it had drawn.

        One that had worked before, or whose node is gone, says nothing about the next one: a node
        may take many workers with it, and a run must not stop for that.
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
            is_repeated=not (actor.stats.plies or self._is_by_node(actor, reason)),
        )
        self._follow_cluster()

    def _is_by_node(self, actor: "_Actor", reason: str) -> bool:
        """Whether it was lost with its node, which Ray names if it never came up there."""
        lost = [str(node["NodeID"]) for node in self._ray.nodes() if not node["Alive"]]
        return actor.node in lost or any(node in reason for node in lost)


class _Actor:
    """A worker as the learner sees it."""

    def __init__(self, ray: Any, number: int, handle: Any) -> None:
        self.number = number
        self.stats = WorkerStats(number, 0)
        self.node = ""
        self.is_up = False
        self.last_heard = time.monotonic()
        """When it was last seen to be free, or to have come further."""

        self.work_items: dict[Any, int] = {}
        """What it has been given, by the reference of what it will hand in."""

        self._ray = ray
        self._handle = handle
        self._progress = -1
        self._last_question = time.monotonic()
        self._status: Any = self._ask()

    def load(self) -> int:
        """How many work_items it has."""
        return len(self.work_items)

    def tell(self, weights: Any) -> None:
        """Let it know of newer weights, if it has work_items that it has not begun."""
        if len(self.work_items) > 1:
            self._aside(self._handle.offer_weights).remote(weights)

    def play(self, weights: Any, work_item: int) -> None:
        """Give it a work_item; it plays one after the other."""
        if not self.work_items:
            self.last_heard = time.monotonic()
        self.work_items[self._handle.play.remote(weights, work_item)] = work_item

    def replies(self) -> list[Any]:
        """References of all that it has been asked; from time to time it is asked how it is."""
        if self._status is None and time.monotonic() - self._last_question > STATUS_INTERVAL:
            self._last_question = time.monotonic()
            self._status = self._ask()
        return [*self.work_items, *([] if self._status is None else [self._status])]

    def take(self, ref: Any, reply: PackedChunk | ActorStatus) -> None:
        """Hear what it has to say."""
        self.stats = reply.stats
        if isinstance(reply, PackedChunk):
            del self.work_items[ref]
            self.last_heard = time.monotonic()
            return
        self._status, self.node, self.is_up = None, reply.node, True
        if not self.work_items or reply.progress != self._progress:
            self.last_heard = time.monotonic()
        self._progress = reply.progress

    def kill(self) -> None:
        """End its process, wherever that is."""
        self._ray.kill(self._handle)

    def _ask(self) -> Any:
        return self._aside(self._handle.status).remote()

    def _aside(self, method: Any) -> Any:
        """A method that does not wait for the work_item under way."""
        return method.options(concurrency_group=ASIDE)


def import_ray() -> Any:
    """The package ray; a `KeiseiError` that says how to get it where it is missing."""
    if importlib.util.find_spec("ray") is None:
        raise KeiseiError(
            "parallel.backend=ray needs the package ray, which is not installed: "
            'python -m pip install "keisei[ray]"; or set parallel.backend to processes'
        )
    # Nobody who trains with Keisei asked for reports to the makers of Ray.
    os.environ.setdefault("RAY_USAGE_STATS_ENABLED", "0")
    import ray

    return ray


def _try_connection(address: str) -> None:
    """See whether anybody listens at ``host:port``: Ray itself would try for many minutes."""
    host, colon, port = address.rpartition(":")
    if colon and port.isdecimal() and "/" not in host:
        socket.create_connection((host, int(port)), CONNECT_TIMEOUT).close()


def _join(ray: Any, config: AppConfig, local_cpus: int) -> bool:
    """Start Ray here, or join the cluster of the settings; False if that was done already."""
    if ray.is_initialized():
        return False
    address = config.parallel.ray_address
    quiet = {"log_to_driver": False, "logging_level": logging.WARNING}
    if address:
        try:
            _try_connection(address)
            ray.init(address=address, **quiet)
        except (OSError, RuntimeError, ValueError) as error:
            raise KeiseiError(f"cannot join the Ray cluster at {address!r}: {error}") from error
    else:
        chunk = experience_bytes(config.selfplay.rollout_plies, config.env.num_games)
        store = 2 * (config.parallel.max_lag + 2) * chunk + MIN_OBJECT_STORE
        try:
            ray.init(
                "local",
                num_cpus=local_cpus,
                include_dashboard=False,
                object_store_memory=store,
                **quiet,
            )
        except (OSError, RuntimeError, ValueError) as error:
            raise KeiseiError(f"cannot start Ray on this machine: {error}") from error
    return True

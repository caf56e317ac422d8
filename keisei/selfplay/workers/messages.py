"""Who plays what when workers come and go: work_items.

A rollout is divided into shares of equal size, and a work_item is the order to play one of them. Any
worker may play any work_item, so their number may change at any time: a work_item whose worker is lost is
drawn again by another. Update `u` takes exactly the work_items ``u * shares`` and following, once
each; so nothing is lost or doubled, and weights are never older than permitted, whoever is fast.

>>> work_items = WorkItems[str](shares=2, max_lag=0)
>>> work_items.begin_round()
>>> work_items.take(), work_items.take(), work_items.take()
(0, 1, None)
>>> work_items.put_back(0)  # its worker died
>>> work_items.take()
0
>>> work_items.complete(1, "plies of 1")
>>> work_items.complete(0, "plies of 0")
>>> work_items.is_complete
True
>>> work_items.collect()
['plies of 0', 'plies of 1']
"""

import heapq
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from multiprocessing.connection import Connection
from multiprocessing.shared_memory import SharedMemory
from typing import Generic, NamedTuple, Self, TypeVar

from keisei.errors import KeiseiError
from keisei.ppo.buffer import Experience, experience_bytes
from keisei.selfplay.rollout import RolloutStats
from keisei.selfplay.workers.shared_memory import attach_block, create_block, release_block


class WorkersFailedError(KeiseiError):
    """Workers failed again and again; the message holds the last one's reason."""


class CommandKind(IntEnum):
    """What the learner tells a worker."""

    WEIGHTS = 0
    """There are new weights; the argument is their version."""

    FREE = 1
    """A slot has been read; the argument is its number."""

    ACKNOWLEDGE = 2
    """A sign of life has come."""

    PAUSE = 3
    RESUME = 4
    RESET = 5
    """Abandon all games and begin anew."""

    STOP = 6


class Command(NamedTuple):
    """A command with its argument."""

    kind: CommandKind
    argument: int = 0


@dataclass(frozen=True)
class WorkerStats:
    """How a worker is doing, by its own word."""

    worker: int
    process: int
    plies: int = 0
    """Played in all."""

    games: int = 0
    """Finished in all."""

    seconds: float = 0.0
    """Since it began to play."""

    waited: float = 0.0
    """Of them, waiting for a free slot, for weights, or paused."""

    version: int = -1
    """Of the weights that it plays with."""

    memory: float = 0.0
    """In MB."""

    @property
    def plies_per_second(self) -> float:
        """While it played."""
        played = self.seconds - self.waited
        return self.plies / played if played > 0.0 else 0.0


@dataclass(frozen=True)
class Chunk:
    """A slot that has been filled."""

    slot: int
    version: int
    """Of the weights that played it."""

    rollout: RolloutStats
    seconds: dict[str, float]
    """Where the worker's time went."""


@dataclass(frozen=True)
class Failure:
    """Why a worker ended."""

    reason: str
    """Its traceback."""


class Heartbeat(NamedTuple):
    """A sign of life."""

    stats: WorkerStats


class RingPlan(NamedTuple):
    """What a worker has to know to find its slots."""

    block: str
    plies: int
    games: int
    slots: int
    free: tuple[int, ...]
    """Those that may be filled at first."""


class SlotRing:
    """Slots of shared memory for the experience of one worker."""

    def __init__(
        self, plies: int, games: int, slots: int, block: SharedMemory | None = None
    ) -> None:
        self.plies, self.games, self.slots = plies, games, slots
        size = experience_bytes(plies, games)
        self._is_owner = block is None
        self._block = create_block(size * slots) if block is None else block
        memory = self._block.buf
        assert memory is not None
        self._experiences = [
            Experience(plies, games, memory[slot * size : (slot + 1) * size])
            for slot in range(slots)
        ]

    @classmethod
    def attach(cls, plan: RingPlan) -> Self:
        """The slots of the parent process."""
        return cls(plan.plies, plan.games, plan.slots, attach_block(plan.block))

    def plan(self, free: Sequence[int]) -> RingPlan:
        """For the worker; `free` are the slots that it may fill."""
        return RingPlan(self._block.name, self.plies, self.games, self.slots, tuple(free))

    def __getitem__(self, slot: int) -> Experience:
        return self._experiences[slot]

    def close(self) -> None:
        """Let go of the memory; who made it removes it."""
        self._experiences.clear()
        release_block(self._block, is_owner=self._is_owner)


@dataclass
class WorkerCommunicator:
    """The worker's end: commands in, chunks and signs of life out. Use it as a context."""

    pipe: Connection
    ring: SlotRing
    free: deque[int] = field(default_factory=deque)

    def commands(self, timeout: float = 0.0) -> list[Command]:
        """The commands that have come; waits for the first one for up to `timeout` seconds.

        Raises:
            EOFError: The learner is gone.
        """
        commands: list[Command] = []
        while self.pipe.poll(0.0 if commands else timeout):
            commands.append(Command(*self.pipe.recv()))
        return commands

    def send(self, message: "Chunk | Heartbeat | Failure") -> None:
        """Send a message; raises `OSError` if the learner is gone."""
        self.pipe.send(message)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Let go of the memory. The pipe stays: why a worker ends may have to be told."""
        self.ring.close()


Played = TypeVar("Played")


class WorkItems(Generic[Played]):
    """The work_items of a run, in the order of the updates that they are for."""

    def __init__(self, *, shares: int, max_lag: int) -> None:
        """Begin with the first update.

        Args:
            shares: work_items of one update.
            max_lag: how many updates ahead of the newest weights may be played.
        """
        self.shares = shares
        self._max_lag = max_lag
        self._update = 0
        """The one that is collected next."""

        self._newest = -1
        """The one that the newest weights are for; before the first weights, nothing is drawn."""

        self._next = 0
        self._returned: list[int] = []
        self._played: dict[int, Played] = {}

    def begin_round(self) -> None:
        """There are new weights; or there are none, and the old ones shall do once more."""
        self._newest = self._update

    def take(self) -> int | None:
        """The oldest work_item that may be played with the newest weights and that nobody has."""
        if self._returned:
            return heapq.heappop(self._returned)
        if self._newest < 0 or self._next // self.shares > self._newest + self._max_lag:
            return None
        self._next += 1
        return self._next - 1

    def put_back(self, number: int) -> None:
        """It was drawn, but will not be played."""
        heapq.heappush(self._returned, number)

    def complete(self, number: int, played: Played) -> None:
        """It has been played."""
        self._played[number] = played

    @property
    def is_complete(self) -> bool:
        """Whether all work_items of the next update have been played."""
        return all(number in self._played for number in self._numbers)

    def collect(self) -> list[Played]:
        """What was played for the next update, in the order of the work_items."""
        played = [self._played.pop(number) for number in self._numbers]
        self._update += 1
        return played

    @property
    def _numbers(self) -> range:
        return range(self._update * self.shares, (self._update + 1) * self.shares)

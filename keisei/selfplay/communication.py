"""What learner and worker say to each other, and where experience lies meanwhile.

Experience goes through slots of shared memory: the worker fills one, says so, and may use it again
once the learner has said that it is free. Nothing is ever dropped: without a free slot the worker
waits. Everything else is a few bytes through a pipe; when one end is gone, the other notices.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from multiprocessing.connection import Connection
from multiprocessing.shared_memory import SharedMemory
from typing import NamedTuple, Self

from keisei.errors import KeiseiError
from keisei.ppo.experience import Experience, experience_bytes
from keisei.selfplay.rollout import RolloutStats
from keisei.selfplay.shared_blocks import attach_block, create_block, release_block


class WorkersFailedError(KeiseiError):
    """Workers failed again and again; the message holds the last one's reason."""


class Command(IntEnum):
    """What the learner tells a worker."""

    WEIGHTS = 0
    """There are new weights; the argument is their version."""

    FREE = 1
    """A slot has been read; the argument is its number."""

    HEARD = 2
    """A sign of life has come."""

    PAUSE = 3
    RESUME = 4
    RESET = 5
    """Abandon all games and begin anew."""

    STOP = 6


class Order(NamedTuple):
    """A command with its argument."""

    command: Command
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


class Beat(NamedTuple):
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
    """The worker's end: orders in, chunks and signs of life out. Use it as a context."""

    pipe: Connection
    ring: SlotRing
    free: deque[int] = field(default_factory=deque)

    def orders(self, timeout: float = 0.0) -> list[Order]:
        """The orders that have come; waits for the first one for up to `timeout` seconds.

        Raises:
            EOFError: The learner is gone.
        """
        orders: list[Order] = []
        while self.pipe.poll(0.0 if orders else timeout):
            orders.append(Order(*self.pipe.recv()))
        return orders

    def tell(self, message: "Chunk | Beat | Failure") -> None:
        """Send a message; raises `OSError` if the learner is gone."""
        self.pipe.send(message)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Let go of the memory. The pipe stays: why a worker ends may have to be told."""
        self.ring.close()

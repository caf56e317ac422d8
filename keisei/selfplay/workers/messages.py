"""Messages between the learner and its worker processes, and the slots that carry experience.

Commands go to a worker, heartbeats and chunks come back, all of them a few bytes through a pipe.
The experience itself stays in shared memory: a ring of slots for each worker.
"""

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import IntEnum
from multiprocessing.connection import Connection
from typing import NamedTuple, Self

from keisei.ppo.buffer import Experience, experience_bytes
from keisei.selfplay.rollout import RolloutStats, WorkerStats
from keisei.shared_memory import SharedBlock


class CommandKind(IntEnum):
    """Kinds of commands that the learner sends to a worker."""

    WEIGHTS = 0
    """Load newer weights; the argument is their version."""

    FREE = 1
    """Reuse a slot, which has been read; the argument is its index."""

    ACKNOWLEDGE = 2
    """A heartbeat has been received."""

    PAUSE = 3
    RESUME = 4
    RESET = 5
    """Abandon all games and start new ones."""

    STOP = 6


class Command(NamedTuple):
    """A command with its argument."""

    kind: CommandKind
    argument: int = 0


@dataclass(frozen=True)
class Chunk:
    """Message of a worker: a slot has been filled."""

    slot: int
    version: int
    """Version of the weights that played it."""

    rollout: RolloutStats
    seconds: dict[str, float]
    """The worker's time by section."""


@dataclass(frozen=True)
class Failure:
    """Last message of a process that failed."""

    reason: str
    """Traceback of the error."""


class Heartbeat(NamedTuple):
    """Regular message of a worker: it is alive."""

    stats: WorkerStats


class RingPlan(NamedTuple):
    """Where a worker finds its slots, and which of them it may fill."""

    block: str
    """Name of the shared memory."""

    plies: int
    games: int
    targets: int
    slots: int
    free: tuple[int, ...]
    """Indices of the slots that may be filled at first."""


class SlotRing:
    """Slots of shared memory, each for one rollout of one worker's games."""

    def __init__(
        self,
        plies: int,
        games: int,
        slots: int,
        block: SharedBlock | None = None,
        *,
        targets: int = 0,
    ) -> None:
        """Create the slots, or with a `block` attach those of the parent process."""
        self.plies, self.games, self.targets, self.slots = plies, games, targets, slots
        size = experience_bytes(plies, games, targets)
        self._block = block or SharedBlock.create(size * slots)
        memory = [self._block.memory[slot * size : (slot + 1) * size] for slot in range(slots)]
        self._experiences = [Experience(plies, games, part, targets=targets) for part in memory]

    @classmethod
    def attach(cls, plan: RingPlan) -> Self:
        """Attach the slots of the parent process."""
        block = SharedBlock.attach(plan.block)
        return cls(plan.plies, plan.games, plan.slots, block, targets=plan.targets)

    def plan(self, free: Sequence[int]) -> RingPlan:
        """Return what the worker needs to attach the ring; it may fill the slots `free`."""
        sizes = (self.plies, self.games, self.targets, self.slots)
        return RingPlan(self._block.name, *sizes, tuple(free))

    def __getitem__(self, slot: int) -> Experience:
        return self._experiences[slot]

    def close(self) -> None:
        """Release the memory; the process that created it removes it."""
        self._experiences.clear()
        self._block.close()


@dataclass
class WorkerCommunicator:
    """The worker's end: commands in, chunks and heartbeats out. Use it as a context."""

    pipe: Connection
    ring: SlotRing
    free: deque[int] = field(default_factory=deque)
    """Indices of the slots that may be filled, the next one first."""

    def commands(self, timeout: float = 0.0) -> list[Command]:
        """Return the commands received so far, waiting up to `timeout` seconds for the first.

        Raises:
            EOFError: The learner has ended.
        """
        commands: list[Command] = []
        while self.pipe.poll(0.0 if commands else timeout):
            commands.append(Command(*self.pipe.recv()))
        return commands

    def send(self, message: Chunk | Heartbeat | Failure) -> None:
        """Send a message.

        Raises:
            OSError: The learner has ended.
        """
        self.pipe.send(message)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        """Release the memory. The pipe stays open: a failure may still have to be sent."""
        self.ring.close()

"""`Learner`: what the training loop knows of a network that learns, whatever computes it.

`PPOAgent` (`keisei.ppo.agent`) is the learner of the towers. Nothing here needs torch.
"""

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar

import numpy as np

from keisei.config_schema import AppConfig
from keisei.errors import KeiseiError
from keisei.network.model_factory import network_type, resolve
from keisei.network.predictor import Network
from keisei.ppo.buffer import ExperienceBuffer
from keisei.timing import Stopwatch

if TYPE_CHECKING:
    from keisei.network.loading import StoredNetwork

Item = TypeVar("Item")


class TrainingDivergedError(KeiseiError):
    """The loss has been non-finite for too long: the run stops, its last checkpoint is good."""


class RankLostError(KeiseiError):
    """Another learner is gone, so this one cannot continue."""


class LearnSettings(NamedTuple):
    """What the schedules have decided for one update."""

    learning_rate: float
    entropy_weight: float


@dataclass(frozen=True)
class UpdateStats:
    """Metrics of an update, averaged over its minibatches."""

    metrics: dict[str, float]
    samples: int
    """Samples that the network was trained on, over all epochs, in all ranks."""


class Ranks:
    """All learners of a run, of which this process is one.

    This class is the usual case, a single learner. Several learners, started by ``torchrun``,
    are a `keisei.ppo.distributed.TorchRanks`: there every method waits for all ranks, so all have
    to call the same ones in the same order.
    """

    def __init__(
        self, rank: int = 0, size: int = 1, *, local_rank: int = 0, local_size: int = 1
    ) -> None:
        self.rank, self.size = rank, size
        self.local_rank, self.local_size = local_rank, local_size
        """The same, among those on this machine."""

    @property
    def is_first(self) -> bool:
        """Whether this rank writes, evaluates and decides."""
        return self.rank == 0

    def __str__(self) -> str:
        return f"learner {self.rank + 1} of {self.size}"

    def any(self, is_true: bool) -> bool:
        """Whether it is true for some rank."""
        return self.all_min(int(not is_true)) == 0

    def is_same(self, number: int) -> bool:
        """Whether all ranks pass the same number."""
        return self.all_min(number) == -self.all_min(-number)

    def means(self, numbers: Sequence[float]) -> list[float]:
        """Each number, averaged over all ranks."""
        return [total / self.size for total in self.sums(numbers)]

    def broadcast(self, decision: Item) -> Item:
        """What the first rank passes."""
        return self.all_gather(decision if self.is_first else None)[0]  # type: ignore[return-value]

    def all_min(self, number: int) -> int:
        """The smallest number of all ranks."""
        return number

    def sums(self, numbers: Sequence[float]) -> list[float]:
        """Each number, summed over all ranks."""
        return list(numbers)

    def all_gather(self, item: Item) -> list[Item]:
        """What each rank passes, by rank."""
        return [item]

    def leave(self) -> None:
        """Leave the group: from here on no rank waits for another."""


class UpdateProfiler(Protocol):
    """Records an update and writes what took how long."""

    def start(self) -> None:
        """Begin before the first update."""
        ...

    def step(self) -> None:
        """Count an update."""
        ...

    def stop(self) -> None:
        """End, whether anything was recorded or not."""
        ...


class Learner(Protocol):
    """A network under training: its weights, its optimizer, and how it learns from experience."""

    random: np.random.Generator
    """Decides the order of samples."""

    ranks: Ranks
    stopwatch: Stopwatch
    """Runs while the network computes, acting or learning."""

    @property
    def network(self) -> Network:
        """The network under training, which plays its own games: always the newest weights."""
        ...

    @property
    def best_network(self) -> Network:
        """The network to evaluate: the averaged weights where there are any."""
        ...

    def learn(
        self,
        buffer: ExperienceBuffer,
        settings: LearnSettings,
        on_epoch: Callable[[int], None] = ...,
    ) -> UpdateStats:
        """Improve the network by the experience of a finished rollout.

        Raises:
            TrainingDivergedError: The loss has been non-finite for too long.
        """
        ...

    def start_from(self, stored: "StoredNetwork") -> None:
        """Begin with the weights of a network that was trained before, perhaps on other planes."""
        ...

    def join_ranks(self) -> None:
        """Begin with the weights of the first rank in all of them."""
        ...

    def stay_together(self) -> None:
        """Take the first rank's weights again where those of others have become unlike them."""
        ...

    def state(self) -> dict[str, Any]:
        """Everything that learning depends on: plain values and arrays.

        ``model`` are the weights, ``ema`` the averaged ones where there are any.
        """
        ...

    def restore(self, state: Mapping[str, Any]) -> None:
        """Go back to what `state` returned."""
        ...

    def facts(self) -> dict[str, Any]:
        """Sizes, device and versions, for the record of the run."""
        ...

    def profiler(self, directory: Path) -> UpdateProfiler:
        """A profiler of updates, which writes into `directory`."""
        ...


def make_learner(
    config: AppConfig, *, seed: int, random: np.random.Generator, ranks: Ranks
) -> Learner:
    """The learner for the network type of a configuration.

    Args:
        config: the settings of the run.
        seed: of the first weights.
        random: decides the order of samples.
        ranks: all learners, of which this is one.
    """
    name = config.model.type
    make = resolve(network_type(name).learner, f"training a network of type {name!r}")
    learner: Learner = make(config, seed=seed, random=random, ranks=ranks)
    return learner


def require_launched(*, ddp: bool) -> None:
    """Refuse ``--ddp`` without torchrun, and several processes of torchrun without ``--ddp``."""
    number = os.environ.get("WORLD_SIZE", "")
    is_launched = "RANK" in os.environ and bool(number)
    if ddp and not is_launched:
        raise KeiseiError(
            "several learners are started by torchrun: "
            "torchrun --nproc-per-node 2 -m keisei train --ddp ...; "
            "to train with one, add --set parallel.ddp=false"
        )
    if not ddp and is_launched and number != "1":
        raise KeiseiError(
            f"torchrun has started {number} processes, which would all train the same run; "
            "add --ddp, so that they learn together"
        )

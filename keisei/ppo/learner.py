"""`Learner`: the interface between the training loop and a network under training.

Also here, because trainer and learners share them: `Ranks`, the learners of a run; schedules, which
turn the progress of a run into the settings of an update; and how learners and workers share the
cores of a machine. `PPOAgent` (`keisei.ppo.agent`) is the learner of the towers,
`SparseLearner` (`keisei.ppo.sparse_learner`) that of the sparse network. Nothing here needs
torch.
"""

import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from keisei.config_schema import AppConfig, Shape
from keisei.errors import KeiseiError
from keisei.network.model_factory import network_type, resolve
from keisei.network.predictor import Network
from keisei.ppo.buffer import ExperienceBuffer
from keisei.system import usable_cpus
from keisei.timing import Stopwatch

if TYPE_CHECKING:
    from keisei.network.loading import StoredNetwork

Item = TypeVar("Item")


class TrainingDivergedError(KeiseiError):
    """The loss was NaN or infinite for too long: the run stops; its last checkpoint is good."""


class RankLostError(KeiseiError):
    """Another learner is gone, so this one has to stop."""


class LearnSettings(NamedTuple):
    """Settings of one update that follow schedules."""

    learning_rate: float
    entropy_weight: float


@dataclass(frozen=True)
class UpdateStats:
    """Result of an update."""

    metrics: dict[str, float]
    """Means over the minibatches of all ranks, by the names of `keisei.metric_names`."""

    samples: int
    """Samples that the network was trained on, in all epochs and ranks."""


class Ranks:
    """All learners of a run, of which this process is one.

    This class is the usual case, a single learner. Several learners, started by ``torchrun``, use
    `keisei.ppo.distributed.TorchRanks`, whose methods are collectives: each waits for all ranks, so
    all ranks have to call the same ones in the same order.
    """

    def __init__(
        self, rank: int = 0, size: int = 1, *, local_rank: int = 0, local_size: int = 1
    ) -> None:
        self.rank, self.size = rank, size
        self.local_rank, self.local_size = local_rank, local_size
        """Rank and number of learners on this machine."""

    @property
    def is_first(self) -> bool:
        """Whether this is rank 0, which writes, evaluates and decides."""
        return self.rank == 0

    def __str__(self) -> str:
        return f"learner {self.rank + 1} of {self.size}"

    def any(self, is_true: bool) -> bool:
        """Return whether `is_true` in any rank."""
        return self.all_min(int(not is_true)) == 0

    def is_same(self, number: int) -> bool:
        """Return whether all ranks pass the same number."""
        return self.all_min(number) == -self.all_min(-number)

    def means(self, numbers: Sequence[float]) -> list[float]:
        """Mean of each number over all ranks."""
        return [total / self.size for total in self.sums(numbers)]

    def broadcast(self, item: Item) -> Item:
        """Return the item of the first rank."""
        return self.all_gather(item if self.is_first else None)[0]  # type: ignore[return-value]

    def all_min(self, number: int) -> int:
        """Smallest number of all ranks."""
        return number

    def sums(self, numbers: Sequence[float]) -> list[float]:
        """Sum of each number over all ranks."""
        return list(numbers)

    def all_gather(self, item: Item) -> list[Item]:
        """Items of all ranks, in the order of the ranks."""
        return [item]

    def average_arrays(self, arrays: Sequence[npt.NDArray[np.float32]]) -> None:
        """Replace each array by its mean over all ranks, in place."""

    def max_arrays(self, arrays: Sequence[npt.NDArray[np.uint8]]) -> None:
        """Replace each element by the largest one of all ranks, in place."""

    def broadcast_arrays(self, arrays: Sequence[npt.NDArray[np.float32]]) -> None:
        """Replace each array by that of the first rank, in place."""

    def leave(self) -> None:
        """Leave the group: from here on no rank waits for another."""


class UpdateProfiler(Protocol):
    """Records an update and writes where the time went."""

    def start(self) -> None:
        """Start before the first update."""
        ...

    def step(self) -> None:
        """Mark the end of an update."""
        ...

    def stop(self) -> None:
        """Stop, whether anything was recorded or not."""
        ...


class Learner(Protocol):
    """A network under training, with its optimizer."""

    random: np.random.Generator
    """Decides the order of samples."""

    ranks: Ranks
    """All learners, of which this is one."""

    stopwatch: Stopwatch
    """Runs while the network computes, acting or learning."""

    @property
    def network(self) -> Network:
        """The network under training, which always has the newest weights; it plays the games."""
        ...

    @property
    def evaluation_network(self) -> Network:
        """The network to evaluate: with the averaged weights if there are any."""
        ...

    def learn(
        self,
        buffer: ExperienceBuffer,
        settings: LearnSettings,
        on_epoch: Callable[[int], None] = ...,
        on_samples: Callable[[int, int], None] = ...,
    ) -> UpdateStats:
        """Train on a finished rollout.

        Args:
            buffer: the rollout, with advantages and returns.
            settings: learning rate and entropy weight of this update.
            on_epoch: called with the number of each epoch, from 0, when it is over.
            on_samples: called after each minibatch with the samples so far and in all epochs.

        Raises:
            TrainingDivergedError: The loss was NaN or infinite for too long.
        """
        ...

    def start_from(self, stored: "StoredNetwork") -> None:
        """Start with the weights of a trained network, which may read other planes."""
        ...

    def join_ranks(self) -> None:
        """Give all ranks the weights of the first rank."""
        ...

    def stay_together(self) -> None:
        """Give all ranks the weights of the first rank again if they have diverged."""
        ...

    def state(self) -> dict[str, Any]:
        """Everything that training depends on, as plain values and arrays, for a checkpoint.

        ``model`` has the weights, ``ema`` the averaged ones if there are any. Arrays may be the
        learner's own: copy them to keep them.
        """
        ...

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restore what `state` returned."""
        ...

    def prepare(self, buffer: ExperienceBuffer) -> None:
        """Make room in the buffer of the run for what acting computes and learning needs again."""
        ...

    def facts(self) -> dict[str, Any]:
        """Sizes, device and versions, for the record of the run."""
        ...

    def profiler(self, directory: Path) -> UpdateProfiler:
        """Make a profiler of updates that writes into `directory`."""
        ...


def make_learner(
    config: AppConfig, *, seed: int, random: np.random.Generator, ranks: Ranks
) -> Learner:
    """Make the learner of the network type of a configuration.

    Args:
        config: the settings of the run.
        seed: of the initial weights.
        random: decides the order of samples.
        ranks: all learners, of which this is one.
    """
    learner: Learner = learner_maker(config)(config, seed=seed, random=random, ranks=ranks)
    return learner


def learner_maker(config: AppConfig) -> Callable[..., Any]:
    """Return the function that makes the learner of a configuration, with its code imported.

    Raises:
        TorchMissingError: It needs torch, which is not installed.
    """
    name = config.model.type
    return resolve(network_type(name).learner, f"training a network of type {name!r}")


def require_launched(*, ddp: bool) -> None:
    """Raise `KeiseiError` for ``--ddp`` without torchrun, and for torchrun without ``--ddp``."""
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


PATIENCE: Final = 0.2
"""Fraction of the time limit by which a run may fall behind before its schedules notice."""


def schedule_fraction(plies: float, time: float) -> float:
    """Return the fraction of a run, 0 to 1, that its schedules follow.

    It is the fraction of its plies, and nothing else, as long as the run keeps pace with its time
    limit: then it can be repeated and resumed bit by bit, whatever the clock says. On a machine too
    slow for all plies, a clock takes over that starts `PATIENCE` late and reaches 1 with the limit,
    so that schedules end with the run there as well. Neither of the two jumps, so the larger one
    does not either; and a run whose plies keep pace with its time is always ahead of that clock.

    Args:
        plies: fraction of the run's plies that were played.
        time: fraction of its time limit that has passed, 0 without a limit.
    """
    return min(max(plies, (time - PATIENCE) / (1.0 - PATIENCE)), 1.0)


def scheduled(shape: Shape, start: float, end: float, done: float, *, warmup: float = 0.0) -> float:
    """Value of a schedule when the fraction `done` of a run is over.

    During the fraction `warmup` it rises from 0 to `start`; then it moves to `end` along `shape`.
    """
    done = min(max(done, 0.0), 1.0)
    if done < warmup:
        return start * done / warmup
    done = (done - warmup) / (1.0 - warmup) if warmup < 1.0 else 1.0
    if shape == "constant":
        return start
    if shape == "cosine":
        done = (1.0 - math.cos(math.pi * done)) / 2.0
    return start + (end - start) * done


def fading(start: float, end: float, done: float) -> float:
    """Value that falls linearly from `start` at the beginning of a run to 0 at fraction `end`."""
    if done >= end:
        return 0.0
    return start * (1.0 - done / end)


def learn_settings(config: AppConfig, done: float) -> LearnSettings:
    """Return the settings of an update when the fraction `done` of a run is over."""
    ppo = config.ppo
    return LearnSettings(
        learning_rate=scheduled(
            ppo.learning_rate_schedule,
            ppo.learning_rate,
            ppo.learning_rate_end,
            done,
            warmup=ppo.warmup,
        ),
        entropy_weight=scheduled(ppo.entropy_schedule, ppo.entropy, ppo.entropy_end, done),
    )


def finish_rollout(buffer: ExperienceBuffer, config: AppConfig, done: float) -> None:
    """Compute advantages and returns of a rollout when the fraction `done` of a run is over."""
    ppo, selfplay = config.ppo, config.selfplay
    buffer.finish(
        gamma=ppo.gamma,
        gae_lambda=scheduled("linear", ppo.gae_lambda, ppo.gae_lambda_end, done),
        value_lambda=ppo.value_lambda,
        shaping=fading(selfplay.shaping, selfplay.shaping_end, done),
    )


def largest_divisor(number: int, *, limit: int) -> int:
    """Return the largest divisor of `number` that is at most `limit`.

    >>> largest_divisor(256, limit=7)
    4
    """
    return next(divisor for divisor in range(limit, 0, -1) if number % divisor == 0)


def learner_cores(ranks: Ranks) -> int:
    """Return the cores for one learner and its workers: learners on a machine share them evenly."""
    return max(1, usable_cpus() // ranks.local_size)


def worker_cores(ranks: Ranks, *, on_cpu: bool) -> int:
    """Return the cores for a learner's workers: all but one if the learner is on the CPU itself."""
    return max(1, learner_cores(ranks) - on_cpu)


def number_of_workers(config: AppConfig, ranks: Ranks, *, on_cpu: bool) -> int:
    """Return the number of workers; 0: the learner plays the games itself.

    ``auto`` is one worker for each core that the learner leaves to them, or fewer if the games
    cannot be divided evenly.
    """
    wanted = config.parallel.num_workers
    if wanted == 0 and config.parallel.backend == "ray":
        wanted = "auto"
    if wanted != "auto":
        return wanted
    threads = config.parallel.worker_threads or 1
    limit = max(1, worker_cores(ranks, on_cpu=on_cpu) // threads)
    return largest_divisor(config.env.num_games, limit=limit)


def learner_threads(config: AppConfig, ranks: Ranks, *, on_cpu: bool) -> int:
    """Return the threads of the learner's network: one for each core that no worker takes.

    Workers on a Ray cluster may all be on other machines, so they take none.
    """
    if config.device.threads:
        return config.device.threads
    cores = learner_cores(ranks)
    is_cluster = config.parallel.backend == "ray" and bool(config.parallel.ray_address)
    if is_cluster or not on_cpu:
        return cores
    workers = number_of_workers(config, ranks, on_cpu=on_cpu)
    return max(1, cores - workers * (config.parallel.worker_threads or 1))

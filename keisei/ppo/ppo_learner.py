"""`PPOLearner`: the part of PPO that does not depend on how a network computes.

Epochs and minibatches, normalized advantages, the agreement of several learners about each step,
the guard against NaN, the early stop at a KL divergence, and the metrics. Subclasses compute the
gradient of a minibatch and move the weights: `keisei.ppo.agent` with torch,
`keisei.ppo.sparse_learner` with kernels. Nothing here needs torch.
"""

import logging
import math
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from enum import IntEnum
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from keisei import metric_names as metrics
from keisei.config_schema import PPOConfig
from keisei.errors import KeiseiError
from keisei.ppo.buffer import ExperienceBuffer, Floats
from keisei.ppo.learner import LearnSettings, Ranks, TrainingDivergedError, UpdateStats
from keisei.ppo.minibatch_size import MinibatchSizer
from keisei.timing import Stopwatch

logger = logging.getLogger(__name__)


class BackwardResult(IntEnum):
    """The result of a backward pass; the smallest one of all ranks decides for all of them."""

    OUT_OF_MEMORY = 0
    NON_FINITE = 1
    OK = 2


class LossFigures(NamedTuple):
    """The loss of a minibatch, its terms, and what is measured along with it."""

    total: float
    policy: float
    value: float
    entropy: float
    ema_kl: float
    approx_kl: float
    clip_fraction: float


class PolicySamples(NamedTuple):
    """What the policy learns from in a minibatch of ``B`` samples."""

    advantages: Floats
    """``[B]``: normalized over the samples of all learners, if the settings say so, and clipped."""

    divisor: float
    """Divisor of sums over these samples, so that their mean over all learners is the mean over all
    samples: the number of samples that the policy is trained on, per learner."""


class LossMeans:
    """Means of the loss terms over the minibatches of an update, by metric name."""

    def __init__(self) -> None:
        self.samples = 0
        """Samples of all minibatches that were not skipped."""

        self._skipped = 0
        self._minibatches = 0
        self._sums: dict[str, float] = {}

    def add(self, figures: LossFigures, grad_norm: float, samples: int) -> None:
        """Add a minibatch; one with a non-finite gradient norm is only counted as skipped."""
        if not math.isfinite(grad_norm):
            self._skipped += 1
            return
        self.samples += samples
        self._minibatches += 1
        for name, value in (
            (metrics.TOTAL_LOSS, figures.total),
            (metrics.POLICY_LOSS, figures.policy),
            (metrics.VALUE_LOSS, figures.value),
            (metrics.ENTROPY, figures.entropy),
            (metrics.EMA_KL, figures.ema_kl),
            (metrics.APPROX_KL, figures.approx_kl),
            (metrics.CLIP_FRACTION, figures.clip_fraction),
            (metrics.GRAD_NORM, grad_norm),
        ):
            self._sums[name] = self._sums.get(name, 0.0) + value

    def means(self) -> dict[str, float]:
        """Mean of each term, and the number of skipped minibatches."""
        means = {name: total / self._minibatches for name, total in self._sums.items()}
        means[metrics.SKIPPED_MINIBATCHES] = float(self._skipped)
        return means


class PPOLearner(ABC):
    """Trains a network on rollouts, minibatch by minibatch."""

    def __init__(self, settings: PPOConfig, random: np.random.Generator, ranks: Ranks) -> None:
        self.settings = settings
        self.random = random
        self.ranks = ranks
        """All learners; the gradients of all are averaged before each step of the optimizer."""

        self.stopwatch = Stopwatch()
        """Runs while the network computes, acting or learning."""

        self.minibatch_size = 0
        """Samples per minibatch, set by `_begin_minibatches`."""

        self._sizer: MinibatchSizer | None = None
        """Chooses the size of minibatches if it is ``auto``."""

        self.bad_minibatches = 0
        """Minibatches in a row whose loss or gradient was non-finite."""

    @abstractmethod
    def _backward(
        self,
        buffer: ExperienceBuffer,
        indices: npt.NDArray[np.int64],
        policy: PolicySamples,
        settings: LearnSettings,
    ) -> tuple[LossFigures | None, BackwardResult]:
        """Compute the gradient of the samples at flat `indices`; no figures if memory ran out.

        It may fail in one rank only, so it must not wait for other ranks.
        """

    @abstractmethod
    def _step(self, settings: LearnSettings) -> float:
        """Average the gradient over all ranks, clip it and move the weights; return its norm.

        A non-finite norm means that no step was taken, and is the same in all ranks.
        """

    @abstractmethod
    def _drop_gradient(self) -> None:
        """Forget the gradient of a minibatch that is skipped."""

    @abstractmethod
    def _out_of_memory(self) -> KeiseiError:
        """Return the error for minibatches that are too large and cannot shrink."""

    @abstractmethod
    def _free_memory(self) -> float:
        """Return the share of the device's memory that is free, 0 to 1."""

    def _begin_minibatches(
        self, first: int, *, smallest: int, largest: int, modest: int = 0
    ) -> None:
        """Use the size of the settings; if it is ``auto``, begin with `first` and adapt it.

        The arguments are those of `MinibatchSizer`.
        """
        size = self.settings.minibatch_size
        self.minibatch_size = first if size == "auto" else size
        if size == "auto":
            self._sizer = MinibatchSizer(first, smallest=smallest, largest=largest, modest=modest)

    def _shrink_minibatch(self) -> None:
        """Halve an automatic minibatch after memory ran out; raise an error otherwise."""
        if self._sizer is None or not self._sizer.shrink():
            raise self._out_of_memory()
        self._drop_gradient()
        self.minibatch_size = self._sizer.size
        logger.warning("out of memory: the minibatch size is now %d", self.minibatch_size)

    def _adapt_minibatch(self, samples: int, seconds: float, epoch: int) -> None:
        """Choose the size of the next update's minibatches, the same in all ranks.

        Args:
            samples: samples of the last update.
            seconds: its duration.
            epoch: samples of an epoch.
        """
        if self._sizer is None:
            return
        (speed,) = self.ranks.means([samples / max(seconds, 1e-9)])
        permille = self.ranks.all_min(int(1000 * self._free_memory()))
        self._sizer.adapt(
            speed=speed, free_memory=permille / 1000, samples=self.ranks.all_min(epoch)
        )
        if self._sizer.size != self.minibatch_size:
            logger.info(
                "the minibatch size is now %d, instead of %d at %.0f samples/s",
                self._sizer.size,
                self.minibatch_size,
                speed,
            )
            self.minibatch_size = self._sizer.size

    @abstractmethod
    def prepare(self, buffer: ExperienceBuffer) -> None:
        """Make room in the buffer for what learning can use again; see `Learner.prepare`."""

    @abstractmethod
    def _update_average(self) -> None:
        """Update the moving average of the weights, if there is one."""

    def learn(
        self,
        buffer: ExperienceBuffer,
        settings: LearnSettings,
        on_epoch: Callable[[int], None] = lambda epoch: None,
        on_samples: Callable[[int, int], None] = lambda done, total: None,
    ) -> UpdateStats:
        """Train on a finished rollout, for all epochs or until ``ppo.target_kl`` is exceeded.

        Args:
            buffer: the rollout, with advantages and returns.
            settings: learning rate and entropy weight of this update.
            on_epoch: called with the number of each epoch, from 0, when it is over.
            on_samples: called after each minibatch with the samples so far and in all epochs.

        Raises:
            TrainingDivergedError: ``ppo.nan_limit`` minibatches in a row had a non-finite loss.
        """
        losses = LossMeans()
        epochs_done = 0
        start = time.perf_counter()
        for epoch in range(self.settings.epochs):
            is_near = self._learn_epoch(epoch, buffer, settings, losses, on_samples)
            epochs_done += 1
            on_epoch(epoch)
            if not is_near:
                break
        size = self.minibatch_size
        self._adapt_minibatch(
            losses.samples, time.perf_counter() - start, losses.samples // epochs_done
        )
        self._update_average()
        figures = losses.means()
        figures[metrics.EXPLAINED_VARIANCE] = explained_variance(
            buffer.values[buffer.learns_value], buffer.returns[buffer.learns_value]
        )
        figures = dict(zip(figures, self.ranks.means(list(figures.values())), strict=True))
        figures[metrics.LEARNING_RATE] = settings.learning_rate
        figures[metrics.ENTROPY_WEIGHT] = settings.entropy_weight
        figures[metrics.MINIBATCH_SIZE] = float(size)
        figures[metrics.EPOCHS_DONE] = float(epochs_done)
        return UpdateStats(figures, losses.samples * self.ranks.size)

    def _learn_epoch(
        self,
        epoch: int,
        buffer: ExperienceBuffer,
        settings: LearnSettings,
        losses: LossMeans,
        on_samples: Callable[[int, int], None],
    ) -> bool:
        """Train on each sample once; return False if ``ppo.target_kl`` was exceeded on the way."""
        order = buffer.sample_order(self.random, self.settings.learn_share)
        # All ranks take the same number of steps: a rank with more would wait forever.
        order = order[: self.ranks.all_min(len(order))]
        start = 0
        while start < len(order):
            indices = order[start : start + self.minibatch_size]
            policy = self.policy_samples(buffer, indices)
            figures, result = self._backward(buffer, indices, policy, settings)
            result = BackwardResult(self.ranks.all_min(result))
            if result is BackwardResult.OUT_OF_MEMORY:
                self._shrink_minibatch()
                continue
            assert figures is not None
            losses.add(figures, self._guarded_step(result, settings), len(indices))
            start += len(indices)
            on_samples(epoch * len(order) + start, self.settings.epochs * len(order))
            target = self.settings.target_kl
            if target is not None and self.ranks.means([figures.approx_kl])[0] > target:
                return False
        return True

    def policy_samples(
        self, buffer: ExperienceBuffer, indices: npt.NDArray[np.int64]
    ) -> PolicySamples:
        """Normalize and clip the advantages of a minibatch, with the statistics of all ranks."""
        advantages = buffer.advantages.reshape(-1)[indices]
        learns = buffer.learns_policy.reshape(-1)[indices]
        counted = advantages[learns].astype(np.float64)
        samples, total, squares = self.ranks.sums(
            (float(len(counted)), float(counted.sum()), float((counted**2).sum()))
        )
        if self.settings.normalize_advantages and samples >= 2:
            mean = total / samples
            deviation = math.sqrt(max(0.0, squares / samples - mean**2))
            limit = self.settings.advantage_clip
            normal = (advantages - np.float32(mean)) / np.float32(deviation + 1e-8)
            advantages = np.clip(normal, -limit, limit).astype(np.float32)
        return PolicySamples(advantages, max(samples, 1.0) / self.ranks.size)

    def _guarded_step(self, result: BackwardResult, settings: LearnSettings) -> float:
        """Take one step, the same in all ranks; return the gradient's norm.

        The step is skipped and counted, and NaN returned, if loss or gradient are non-finite.
        """
        if result is BackwardResult.NON_FINITE:
            self._skip("the loss is NaN or infinite")
            return math.nan
        grad_norm = self._step(settings)
        if not math.isfinite(grad_norm):
            self._skip("the gradient is NaN or infinite")
            return math.nan
        self.bad_minibatches = 0
        return grad_norm

    def _restore_counts(self, state: Mapping[str, Any]) -> None:
        """Restore bad minibatches and, if it is ``auto``, the size of minibatches."""
        self.bad_minibatches = int(state["bad_minibatches"])
        if self.settings.minibatch_size == "auto":
            self.minibatch_size = int(state["minibatch_size"])
            if self._sizer is not None:
                self._sizer.size = self.minibatch_size

    def _skip(self, reason: str) -> None:
        self._drop_gradient()
        self.bad_minibatches += 1
        logger.warning("minibatch skipped: %s (%d in a row)", reason, self.bad_minibatches)
        if self.bad_minibatches >= self.settings.nan_limit:
            raise TrainingDivergedError(
                f"{reason}, {self.bad_minibatches} minibatches in a row; the last checkpoint is "
                "good: resume from it. A lower ppo.learning_rate or ppo.max_grad_norm usually helps"
            )


def explained_variance(values: npt.NDArray[Any], returns: npt.NDArray[Any]) -> float:
    """Share of the returns' variance that the values explain: at most 1; 0 for constant returns."""
    if not returns.size:
        return 0.0
    variance = float(returns.var(dtype=np.float64))
    if variance == 0.0:
        return 0.0
    return 1.0 - float((returns - values).var(dtype=np.float64)) / variance

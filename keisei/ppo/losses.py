"""The PPO loss of a minibatch, term by term, and the means of these terms over an update."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor

from keisei import metric_names as metrics


def entropy(log_probs: Tensor) -> Tensor:
    """Entropy ``[B]`` in nats of log-probabilities ``[B, M]``; minus infinity is padding."""
    finite = log_probs.masked_fill(log_probs.isinf(), 0.0)
    return -(log_probs.exp() * finite).sum(dim=1)


def kl_divergence(log_probs: Tensor, other_log_probs: Tensor) -> Tensor:
    """KL divergence ``[B]`` of the first distributions ``[B, M]`` from the second ones."""
    padding = log_probs.isinf()
    gap = log_probs.masked_fill(padding, 0.0) - other_log_probs.masked_fill(padding, 0.0)
    return (log_probs.exp() * gap).sum(dim=1)


@dataclass(frozen=True)
class LossWeights:
    """Clip range of the surrogate, and the factors of the other terms of the loss."""

    clip_range: float
    value: float
    entropy: float
    ema_kl: float = 0.0


@dataclass(frozen=True)
class LossTerms:
    """The loss, its terms, and what is measured along with it; all scalars."""

    total: Tensor
    policy: Tensor
    value: Tensor
    entropy: Tensor
    ema_kl: Tensor
    approx_kl: Tensor
    clip_fraction: Tensor


class PolicySums(NamedTuple):
    """Sums over the minibatches of all learners, to normalize with the statistics of all."""

    samples: float
    """Number of samples that the policy is trained on."""

    advantages: float
    """Sum of their advantages."""

    squares: float
    """Sum of the squares of their advantages."""

    @property
    def mean(self) -> float:
        """Mean advantage."""
        return self.advantages / self.samples

    @property
    def deviation(self) -> float:
        """Standard deviation of the advantages."""
        return math.sqrt(max(0.0, self.squares / self.samples - self.mean**2))


def ppo_loss(
    *,
    log_probs: Tensor,
    old_log_probs: Tensor,
    advantages: Tensor,
    entropies: Tensor,
    value_losses: Tensor,
    ema_kls: Tensor | None,
    learns_policy: Tensor,
    weights: LossWeights,
    divisor: float | None = None,
) -> LossTerms:
    """Clipped surrogate, value loss and entropy bonus of ``B`` samples; all tensors are ``[B]``.

    Samples without `learns_policy`, such as forced moves, count for the value only. The approximate
    KL divergence is the mean of ``r - 1 - log r``, which is never negative (Schulman, 2020).

    Args:
        log_probs: of the moves played, by the model under training.
        old_log_probs: of the same moves, by the network that played them.
        advantages: of the moves, normalized or not.
        entropies: of the policy in these positions.
        value_losses: of the value head.
        ema_kls: KL divergence from the policy of the averaged weights; None: leave that term out.
        learns_policy: which samples the policy is trained on.
        weights: factors of the terms.
        divisor: of the sums over these samples; None: their number.
    """
    counted = learns_policy.float()
    number = counted.sum().clamp(min=1.0) if divisor is None else divisor

    def mean(samples: Tensor) -> Tensor:
        return (samples * counted).sum() / number

    log_ratio = log_probs - old_log_probs
    ratio = log_ratio.exp()
    clipped = ratio.clamp(1.0 - weights.clip_range, 1.0 + weights.clip_range)
    policy = -mean(torch.minimum(ratio * advantages, clipped * advantages))
    value = value_losses.mean()
    bonus = mean(entropies)
    pull = mean(ema_kls) if ema_kls is not None else torch.zeros_like(policy)
    total = policy + weights.value * value - weights.entropy * bonus + weights.ema_kl * pull
    with torch.no_grad():
        approx_kl = mean(ratio - 1.0 - log_ratio)
        clip_fraction = mean(((ratio - 1.0).abs() > weights.clip_range).float())
    return LossTerms(total, policy, value, bonus, pull, approx_kl, clip_fraction)


def normalized(advantages: Tensor, learns_policy: Tensor, sums: PolicySums | None = None) -> Tensor:
    """Scale advantages ``[B]`` so that those with `learns_policy` have mean 0 and deviation 1.

    With `sums` the mean and deviation are those over all learners. Fewer than two samples are
    returned as they are.
    """
    if sums is not None:
        if sums.samples < 2:
            return advantages
        return (advantages - sums.mean) / (sums.deviation + 1e-8)
    counted = advantages[learns_policy]
    if counted.numel() < 2:
        return advantages
    return (advantages - counted.mean()) / (counted.std(unbiased=False) + 1e-8)


def explained_variance(values: Tensor, returns: Tensor) -> float:
    """Share of the returns' variance that the values explain: at most 1; 0 for constant returns."""
    if not returns.numel():
        return 0.0
    variance = returns.var(unbiased=False)
    if float(variance) == 0.0:
        return 0.0
    return float(1.0 - (returns - values).var(unbiased=False) / variance)


class LossMeans:
    """Means of the loss terms over the minibatches of an update, by metric name."""

    def __init__(self) -> None:
        self.samples = 0
        """Samples of all minibatches that were not skipped."""

        self._skipped = 0
        self._minibatches = 0
        self._sums: dict[str, float] = {}

    def add(self, terms: LossTerms, grad_norm: float, samples: int) -> None:
        """Add a minibatch; one with a non-finite gradient norm is only counted as skipped."""
        if not math.isfinite(grad_norm):
            self._skipped += 1
            return
        self.samples += samples
        self._minibatches += 1
        for name, value in (
            (metrics.TOTAL_LOSS, terms.total),
            (metrics.POLICY_LOSS, terms.policy),
            (metrics.VALUE_LOSS, terms.value),
            (metrics.ENTROPY, terms.entropy),
            (metrics.EMA_KL, terms.ema_kl),
            (metrics.APPROX_KL, terms.approx_kl),
            (metrics.CLIP_FRACTION, terms.clip_fraction),
            (metrics.GRAD_NORM, grad_norm),
        ):
            number = value.item() if isinstance(value, Tensor) else value
            self._sums[name] = self._sums.get(name, 0.0) + number

    def means(self) -> dict[str, float]:
        """Mean of each term, and the number of skipped minibatches."""
        means = {name: total / self._minibatches for name, total in self._sums.items()}
        means[metrics.SKIPPED_MINIBATCHES] = float(self._skipped)
        return means

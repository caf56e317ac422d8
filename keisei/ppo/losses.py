"""The PPO loss, term by term, for one minibatch."""

import math
from dataclasses import dataclass
from typing import NamedTuple

import torch
from torch import Tensor


def entropy(log_probs: Tensor) -> Tensor:
    """Entropy ``[B]`` of rows of log-probabilities, padding included."""
    finite = log_probs.masked_fill(log_probs.isinf(), 0.0)
    return -(log_probs.exp() * finite).sum(dim=1)


def kl_divergence(log_probs: Tensor, other_log_probs: Tensor) -> Tensor:
    """KL divergence ``[B]`` of the first distribution from the second, over legal moves."""
    padding = log_probs.isinf()
    gap = log_probs.masked_fill(padding, 0.0) - other_log_probs.masked_fill(padding, 0.0)
    return (log_probs.exp() * gap).sum(dim=1)


@dataclass(frozen=True)
class LossWeights:
    """What the terms of the loss are multiplied by."""

    clip_range: float
    value: float
    entropy: float
    ema_kl: float = 0.0


@dataclass(frozen=True)
class LossTerms:
    """The loss and what it is made of, all scalars."""

    total: Tensor
    policy: Tensor
    value: Tensor
    entropy: Tensor
    ema_kl: Tensor
    approx_kl: Tensor
    clip_fraction: Tensor


class PolicySums(NamedTuple):
    """What several learners add up, so that each scales its part as one would the whole."""

    number: float
    """Samples that the policy learns from."""

    advantages: float
    squares: float
    """Of their advantages."""

    @property
    def mean(self) -> float:
        """The mean advantage."""
        return self.advantages / self.number

    @property
    def deviation(self) -> float:
        """The advantages' standard deviation."""
        return math.sqrt(max(0.0, self.squares / self.number - self.mean**2))


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
    number: float | None = None,
) -> LossTerms:
    """The clipped surrogate, value loss and entropy bonus of ``B`` samples, all arguments ``[B]``.

    Samples without `learns_policy` (forced moves) count for the value only; `number` is what sums
    over the others are divided by, if not by how many they are. The approximate KL divergence is
    the mean of ``r - 1 - log r``, which is never negative (Schulman, 2020).
    """
    counted = learns_policy.float()
    divisor = counted.sum().clamp(min=1.0) if number is None else number

    def mean(samples: Tensor) -> Tensor:
        return (samples * counted).sum() / divisor

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
    """Advantages scaled so that those that are learned from have mean 0 and deviation 1.

    With `sums`, those of all learners together.
    """
    if sums is not None:
        if sums.number < 2:
            return advantages
        return (advantages - sums.mean) / (sums.deviation + 1e-8)
    counted = advantages[learns_policy]
    if counted.numel() < 2:
        return advantages
    return (advantages - counted.mean()) / (counted.std(unbiased=False) + 1e-8)


def explained_variance(values: Tensor, returns: Tensor) -> float:
    """How much of the returns' variance the values explain: 1 all of it, 0 none, below 0 harm."""
    if not returns.numel():
        return 0.0
    variance = returns.var(unbiased=False)
    if float(variance) == 0.0:
        return 0.0
    return float(1.0 - (returns - values).var(unbiased=False) / variance)

"""Minibatches and the PPO loss: the samples of a minibatch on the device, the loss term by term."""

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from keisei.constants import MAX_LEGAL_MOVES
from keisei.network.towers.device import Compute
from keisei.network.towers.torch_predictor import planes_tensor
from keisei.ppo.buffer import ExperienceBuffer, Floats
from keisei.ppo.ppo_learner import LossFigures
from keisei.shogi.features import FeatureSpec
from keisei.shogi.packed import legal_from_packed, padded_width
from keisei.shogi.position import new_positions


class Minibatch(NamedTuple):
    """``B`` samples to train on."""

    planes: Tensor  # [B, C, 9, 9]
    legal: Tensor  # [B, M] int64: legal actions
    counts: Tensor  # [B]: number of legal actions
    legal_indices: Tensor  # [B] int64: the action played, as an index into `legal`
    log_probs: Tensor  # [B]: of that action, when it was played
    advantages: Tensor  # [B]
    returns: Tensor  # [B]
    learns_policy: Tensor  # [B] bool
    targets: Tensor | None  # [B, M]: probabilities by a search; None without one


class MinibatchMaker:
    """Makes minibatches in its own buffers; each minibatch overwrites the one before."""

    def __init__(self, spec: FeatureSpec, compute: Compute) -> None:
        self.spec = spec
        self.compute = compute
        self._scratch = new_positions(2)
        self._planes = np.empty((0, *spec.shape), dtype=np.float32)
        self._legal = np.zeros((0, MAX_LEGAL_MOVES), dtype=np.uint16)
        self._counts = np.zeros(0, dtype=np.int32)

    def make(
        self, buffer: ExperienceBuffer, indices: npt.NDArray[np.int64], advantages: Floats
    ) -> Minibatch:
        """Make the minibatch of the samples at flat `indices` of a finished rollout.

        Args:
            buffer: the rollout.
            indices: ``[B]``, its samples.
            advantages: ``[B]``, their advantages, normalized.
        """
        batch = len(indices)
        if len(self._planes) < batch:
            self._planes = np.empty((batch, *self.spec.shape), dtype=np.float32)
            self._legal = np.zeros((batch, MAX_LEGAL_MOVES), dtype=np.uint16)
            self._counts = np.zeros(batch, dtype=np.int32)
        packed = buffer.packed.reshape(-1)[indices]
        planes = self.spec.encode(packed, self._planes[:batch])
        legal_from_packed(packed, self._legal, self._counts, self._scratch, 0, batch)
        counts = self._counts[:batch]
        width = padded_width(counts, MAX_LEGAL_MOVES)
        legal = self._legal[:batch, :width].astype(np.int64)
        actions = buffer.actions.reshape(-1)[indices].astype(np.int64)
        # Beyond its count a row holds old entries, which may equal the action: they come later.
        legal_indices = np.argmax(legal == actions[:, None], axis=1)
        return Minibatch(
            planes=planes_tensor(planes, self.compute),
            legal=self._tensor(legal),
            counts=self._tensor(counts),
            legal_indices=self._tensor(legal_indices),
            log_probs=self._tensor(buffer.log_probs.reshape(-1)[indices]),
            advantages=self._tensor(advantages),
            returns=self._tensor(buffer.returns.reshape(-1)[indices]),
            learns_policy=self._tensor(buffer.learns_policy.reshape(-1)[indices]),
            targets=self._targets(buffer, indices, legal, counts),
        )

    def _targets(
        self,
        buffer: ExperienceBuffer,
        indices: npt.NDArray[np.int64],
        legal: npt.NDArray[np.int64],
        counts: npt.NDArray[np.int32],
    ) -> Tensor | None:
        """Spread the target policies of a search over the legal moves."""
        if not buffer.targets:
            return None
        actions = buffer.target_actions.reshape(len(buffer), -1)[indices].astype(np.int64)
        probs = buffer.target_probs.reshape(len(buffer), -1)[indices]
        targets = np.zeros(legal.shape, dtype=np.float32)
        is_legal = np.arange(legal.shape[1]) < counts[:, None]
        for k in range(buffer.targets):
            targets += np.where(is_legal & (legal == actions[:, k, None]), probs[:, k, None], 0.0)
        return self._tensor(targets)

    def _tensor(self, array: npt.NDArray[np.generic]) -> Tensor:
        return torch.from_numpy(array).to(self.compute.device, non_blocking=True)


def entropy(log_probs: Tensor) -> Tensor:
    """Entropy ``[B]`` in nats of log-probabilities ``[B, M]``; minus infinity is padding."""
    finite = log_probs.masked_fill(log_probs.isinf(), 0.0)
    return -(log_probs.exp() * finite).sum(dim=1)


def cross_entropy(log_probs: Tensor, targets: Tensor) -> Tensor:
    """Cross-entropy ``[B]`` of target probabilities ``[B, M]`` and log-probabilities."""
    return -(targets * log_probs.masked_fill(log_probs.isinf(), 0.0)).sum(dim=1)


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
    dual_clip: float = float("inf")
    """Ratio beyond which bad moves are not pushed further down (Ye et al., 2020)."""


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

    def figures(self) -> LossFigures:
        """Return the terms as plain numbers."""
        terms = [getattr(self, name).detach().float() for name in LossFigures._fields]
        return LossFigures(*torch.stack(terms).tolist())  # at once: a device is waited for


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
    cross_entropies: Tensor | None = None,
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
        cross_entropies: of the policy and a search's; they take the place of the surrogate.
    """
    counted = learns_policy.float()
    number = counted.sum().clamp(min=1.0) if divisor is None else divisor

    def mean(samples: Tensor) -> Tensor:
        return (samples * counted).sum() / number

    log_ratio = log_probs - old_log_probs
    ratio = log_ratio.exp()
    clipped = ratio.clamp(1.0 - weights.clip_range, 1.0 + weights.clip_range)
    surrogate = torch.minimum(ratio * advantages, clipped * advantages)
    lowest = torch.where(advantages < 0.0, weights.dual_clip * advantages, surrogate)
    policy = -mean(torch.maximum(surrogate, lowest))
    if cross_entropies is not None:
        policy = mean(cross_entropies)
    value = value_losses.mean()
    bonus = mean(entropies)
    pull = mean(ema_kls) if ema_kls is not None else torch.zeros_like(policy)
    total = policy + weights.value * value - weights.entropy * bonus + weights.ema_kl * pull
    with torch.no_grad():
        approx_kl = mean(ratio - 1.0 - log_ratio)
        clip_fraction = mean(((ratio - 1.0).abs() > weights.clip_range).float())
        if cross_entropies is not None:  # the moves were not drawn from the policy
            approx_kl, clip_fraction = torch.zeros_like(policy), torch.zeros_like(policy)
    return LossTerms(total, policy, value, bonus, pull, approx_kl, clip_fraction)

"""The sparse network and its loss in torch, in float64, from lists of rows."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor
from torch.nn import functional

from keisei.network.sparse.active_rows import ActiveRows
from keisei.network.sparse.forward import SparseWeights
from keisei.ppo.losses import (
    LossTerms,
    LossWeights,
    cross_entropy,
    entropy,
    kl_divergence,
    ppo_loss,
)


class Targets(NamedTuple):
    """What ``B`` samples are trained towards."""

    legal_indices: Tensor  # [B]
    old_log_probs: Tensor  # [B]
    advantages: Tensor  # [B]
    returns: Tensor  # [B]
    learns_policy: Tensor  # [B] bool
    policy: Tensor | None = None  # [B, M]: by a search; it takes the place of the surrogate


class TorchSparse:
    """The network; its parameters have the names of `SparseWeights`."""

    def __init__(self, weights: SparseWeights) -> None:
        self.parameters = {
            name: torch.tensor(array, dtype=torch.float64, requires_grad=True)
            for name, array in weights._asdict().items()
        }

    def __call__(self, rows: Sequence[ActiveRows]) -> tuple[Tensor, Tensor]:
        """Return log-probabilities ``[B, M]``, padded with minus infinity, and raw values."""
        outputs = [self._evaluate(active) for active in rows]
        width = max(len(log_probs) for log_probs, _ in outputs)
        padded = [
            functional.pad(log_probs, (0, width - len(log_probs)), value=-torch.inf)
            for log_probs, _ in outputs
        ]
        return torch.stack(padded), torch.stack([value for _, value in outputs])

    def _evaluate(self, rows: ActiveRows) -> tuple[Tensor, Tensor]:
        p = self.parameters
        sums = bag(p["position_table"], [rows.position])[0] + p["position_bias"]
        accumulators = torch.cat([sums[:1], sums[1:].clamp(0.0, 1.0)])
        hidden = (accumulators @ p["hidden_weight"] + p["hidden_bias"]).clamp(0.0, 1.0)
        value = hidden @ p["value_weight"] + p["value_bias"][0] + sums[0]
        context = hidden @ p["context_weight"] + p["context_bias"]
        half = len(context) // 2
        features = bag(p["move_table"], rows.moves)
        bilinear = features[:, :half] @ context[:half]
        rectified = (features[:, half:] + context[half:]).relu()
        return (bilinear + rectified @ p["move_weight"]).log_softmax(0), value

    def loss(
        self,
        rows: Sequence[ActiveRows],
        targets: Targets,
        weights: LossWeights,
        reference: "TorchSparse | None" = None,
        divisor: float | None = None,
    ) -> LossTerms:
        """The PPO loss of the towers; the value loss is the cross-entropy of winning chances."""
        log_probs, values = self(rows)
        ema_kls = None
        if reference is not None:
            with torch.no_grad():
                averaged, _ = reference(rows)
            ema_kls = kl_divergence(log_probs, averaged)
        return ppo_loss(
            log_probs=log_probs.gather(1, targets.legal_indices[:, None])[:, 0],
            old_log_probs=targets.old_log_probs,
            advantages=targets.advantages,
            entropies=entropy(log_probs),
            value_losses=functional.binary_cross_entropy_with_logits(
                2.0 * values, (1.0 + targets.returns) / 2.0, reduction="none"
            ),
            ema_kls=ema_kls,
            learns_policy=targets.learns_policy,
            weights=weights,
            divisor=divisor,
            cross_entropies=(
                None if targets.policy is None else cross_entropy(log_probs, targets.policy)
            ),
        )

    def gradient(self, loss: Tensor) -> dict[str, npt.NDArray[np.float64]]:
        """Derivatives of a loss by all parameters."""
        names, parameters = zip(*self.parameters.items(), strict=True)
        found = torch.autograd.grad(loss, parameters)
        return {name: slope.numpy() for name, slope in zip(names, found, strict=True)}


def bag(table: Tensor, bags: Sequence[Sequence[int]]) -> Tensor:
    """Sum the rows of each list: ``[bags, width]``."""
    indices = torch.tensor([row for rows in bags for row in rows], dtype=torch.int64)
    offsets = torch.tensor(np.cumsum([0, *map(len, bags)])[:-1], dtype=torch.int64)
    return functional.embedding_bag(indices, table, offsets, mode="sum")

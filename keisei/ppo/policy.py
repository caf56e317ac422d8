"""Distributions over legal moves only: rows of logits, of which the first ``counts`` are legal."""

import torch
from torch import Tensor


def legal_mask(counts: Tensor, width: int) -> Tensor:
    """``bool[B, width]``: which entries of each row are legal moves."""
    return torch.arange(width, device=counts.device) < counts[:, None]


def legal_log_probs(logits: Tensor, counts: Tensor) -> Tensor:
    """Log-probabilities ``[B, M]`` of the legal moves, in float32; minus infinity beyond them."""
    logits = logits.float()
    padding = ~legal_mask(counts, logits.shape[1])
    return torch.log_softmax(logits.masked_fill(padding, -torch.inf), dim=1)


def entropy(log_probs: Tensor) -> Tensor:
    """Entropy ``[B]`` of rows of log-probabilities, padding included."""
    finite = log_probs.masked_fill(log_probs.isinf(), 0.0)
    return -(log_probs.exp() * finite).sum(dim=1)


def kl_divergence(log_probs: Tensor, other_log_probs: Tensor) -> Tensor:
    """KL divergence ``[B]`` of the first distribution from the second, over legal moves."""
    padding = log_probs.isinf()
    gap = log_probs.masked_fill(padding, 0.0) - other_log_probs.masked_fill(padding, 0.0)
    return (log_probs.exp() * gap).sum(dim=1)

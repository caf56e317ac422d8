"""PPO as a bare PyTorch loop over minibatches that are ready: what an update is measured against.

Nothing is chosen, checked, timed or reported; the arithmetic is that of `keisei.ppo`.
"""

from collections.abc import Sequence

import torch

from keisei.config_schema import PPOConfig
from keisei.models.compute import Compute
from keisei.models.network import ActorCritic
from keisei.ppo.minibatch import Minibatch


def bare_update(
    model: ActorCritic,
    optimizer: torch.optim.Optimizer,
    minibatches: Sequence[Minibatch],
    settings: PPOConfig,
    compute: Compute,
) -> int:
    """Learn from each minibatch once; returns the number of samples."""
    for batch in minibatches:
        with compute.autocast():
            output = model(batch.planes, batch.legal)
        columns = torch.arange(batch.legal.shape[1], device=batch.legal.device)
        padding = columns >= batch.counts[:, None]
        log_probs = output.logits.masked_fill(padding, -1e9).log_softmax(dim=1)
        ratio = (log_probs.gather(1, batch.columns[:, None])[:, 0] - batch.log_probs).exp()
        advantages = batch.advantages - batch.advantages.mean()
        advantages = advantages / (advantages.std() + 1e-8)
        clipped = ratio.clamp(1 - settings.clip_range, 1 + settings.clip_range)
        policy_loss = -torch.minimum(ratio * advantages, clipped * advantages).mean()
        entropy = -(log_probs.exp() * log_probs).sum(dim=1).mean()
        value_loss = model.value_loss(output.value, batch.returns).mean()
        loss = policy_loss + settings.value_weight * value_loss - settings.entropy * entropy
        optimizer.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), settings.max_grad_norm)
        optimizer.step()
    return sum(len(batch.columns) for batch in minibatches)

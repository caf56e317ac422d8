"""Legal-only distributions and the PPO loss against dense, obvious float64 references."""

import numpy as np
import pytest
import torch
from torch import Tensor

from keisei.constants import NUM_ACTIONS
from keisei.network.predictor import sample_policy
from keisei.network.towers.model import legal_log_probs
from keisei.ppo.losses import (
    LossWeights,
    entropy,
    kl_divergence,
    ppo_loss,
)

WIDTH = 24


@pytest.fixture
def batch() -> dict[str, Tensor]:
    chance = torch.Generator().manual_seed(3)
    size = 16
    counts = torch.randint(1, WIDTH + 1, (size,), generator=chance)
    counts[0] = 1  # a position with a single legal move
    return {
        "logits": torch.randn(size, WIDTH, generator=chance, dtype=torch.float64),
        "other": torch.randn(size, WIDTH, generator=chance, dtype=torch.float64),
        "counts": counts,
        "actions": torch.stack(
            [torch.randperm(NUM_ACTIONS, generator=chance)[:WIDTH] for _ in range(size)]
        ),
    }


def dense(logits: Tensor, batch: dict[str, Tensor]) -> Tensor:
    """Masked softmax over all 13,527 actions, the usual way."""
    full = torch.full((len(logits), NUM_ACTIONS), -1e9, dtype=torch.float64)
    for row, count in enumerate(batch["counts"].tolist()):
        full[row, batch["actions"][row, :count]] = logits[row, :count]
    return torch.log_softmax(full, dim=1)


def test_log_probs_and_entropy_equal_a_dense_masked_softmax(batch: dict[str, Tensor]) -> None:
    log_probs = legal_log_probs(batch["logits"], batch["counts"])
    reference = dense(batch["logits"], batch)
    for row, count in enumerate(batch["counts"].tolist()):
        expected = reference[row, batch["actions"][row, :count]]
        assert torch.allclose(log_probs[row, :count].double(), expected, atol=1e-6)
        assert torch.isinf(log_probs[row, count:]).all()
    dense_entropy = -(reference.exp() * reference).sum(dim=1)
    assert torch.allclose(entropy(log_probs).double(), dense_entropy, atol=1e-5)
    assert float(entropy(log_probs)[0]) == 0.0


def test_kl_divergence_equals_the_dense_one(batch: dict[str, Tensor]) -> None:
    first, second = dense(batch["logits"], batch), dense(batch["other"], batch)
    expected = (first.exp() * (first - second)).sum(dim=1)
    fast = kl_divergence(
        legal_log_probs(batch["logits"], batch["counts"]),
        legal_log_probs(batch["other"], batch["counts"]),
    )
    assert torch.allclose(fast.double(), expected, atol=1e-5)
    assert (fast >= -1e-6).all()


def test_gradients_reach_legal_logits_only(batch: dict[str, Tensor]) -> None:
    logits = batch["logits"].float().requires_grad_()
    log_probs = legal_log_probs(logits, batch["counts"])
    loss = log_probs[:, 0].sum() + entropy(log_probs).sum()
    loss.backward()  # type: ignore[no-untyped-call]
    assert logits.grad is not None
    assert torch.isfinite(logits.grad).all()
    for row, count in enumerate(batch["counts"].tolist()):
        assert (logits.grad[row, count:] == 0).all()


def test_draws_follow_the_distribution() -> None:
    log_probs = np.log(np.array([[0.7, 0.2, 0.1]], dtype=np.float32)).repeat(20_000, axis=0)
    legal_indices = sample_policy(log_probs, np.random.default_rng(0))
    assert np.allclose(np.bincount(legal_indices) / 20_000, [0.7, 0.2, 0.1], atol=0.015)
    padded = np.array([[0.0, -np.inf, -np.inf]], dtype=np.float32).repeat(100, axis=0)
    assert (sample_policy(padded, np.random.default_rng(0)) == 0).all()


def reference_loss(
    new: list[float],
    old: list[float],
    gains: list[float],
    learns: list[bool],
    clip: float,
    dual_clip: float,
) -> tuple[float, float, float]:
    """(policy loss, approximate KL, clip fraction) by a plain loop."""
    losses, kls, clipped = [], [], []
    for new_lp, old_lp, gain, learn in zip(new, old, gains, learns, strict=True):
        if learn:
            ratio = float(np.exp(new_lp - old_lp))
            limited = min(max(ratio, 1 - clip), 1 + clip)
            surrogate = min(ratio * gain, limited * gain)
            losses.append(-(max(surrogate, dual_clip * gain) if gain < 0 else surrogate))
            kls.append(ratio - 1 - (new_lp - old_lp))
            clipped.append(float(abs(ratio - 1) > clip))
    return float(np.mean(losses)), float(np.mean(kls)), float(np.mean(clipped))


@pytest.mark.parametrize("dual_clip", [1.5, float("inf")])
def test_the_ppo_loss_equals_a_plain_loop(dual_clip: float) -> None:
    chance = np.random.default_rng(5)
    new, old = chance.normal(-3, 0.4, 32), chance.normal(-3, 0.4, 32)
    gains, learns = chance.normal(size=32), chance.random(32) < 0.7
    values, entropies = chance.random(32), chance.random(32)
    terms = ppo_loss(
        log_probs=torch.tensor(new),
        old_log_probs=torch.tensor(old),
        advantages=torch.tensor(gains),
        entropies=torch.tensor(entropies),
        value_losses=torch.tensor(values),
        ema_kls=torch.tensor(entropies * 2),
        learns_policy=torch.tensor(learns),
        weights=LossWeights(
            clip_range=0.2, value=0.5, entropy=0.01, ema_kl=0.1, dual_clip=dual_clip
        ),
    )
    policy, kl, clipped = reference_loss(
        new.tolist(), old.tolist(), gains.tolist(), learns.tolist(), 0.2, dual_clip
    )
    assert float(terms.policy) == pytest.approx(policy, abs=1e-6)
    assert float(terms.approx_kl) == pytest.approx(kl, abs=1e-6)
    assert float(terms.clip_fraction) == pytest.approx(clipped, abs=1e-6)
    assert float(terms.value) == pytest.approx(values.mean())
    bonus = entropies[learns].mean()
    expected = policy + 0.5 * values.mean() - 0.01 * bonus + 0.1 * 2 * bonus
    assert float(terms.total) == pytest.approx(expected, abs=1e-6)


def test_a_batch_of_forced_moves_teaches_the_value_only() -> None:
    log_probs = torch.zeros(3, requires_grad=True)
    values = torch.ones(3, requires_grad=True)
    terms = ppo_loss(
        log_probs=log_probs,
        old_log_probs=torch.zeros(3),
        advantages=torch.ones(3),
        entropies=torch.zeros(3),
        value_losses=values,
        ema_kls=None,
        learns_policy=torch.zeros(3, dtype=torch.bool),
        weights=LossWeights(clip_range=0.2, value=0.5, entropy=0.01),
    )
    terms.total.backward()  # type: ignore[no-untyped-call]
    assert log_probs.grad is not None
    assert values.grad is not None
    assert (log_probs.grad == 0).all()
    assert (values.grad > 0).all()


@pytest.mark.parametrize(
    ("ratio", "advantage", "is_pushed"),
    [
        (2.9, -1.0, True),
        (3.1, -1.0, False),
        (0.9, -1.0, True),
        (0.7, -1.0, False),
        (3.1, 1.0, False),
        (1.1, 1.0, True),
        (0.1, 1.0, True),
    ],
)
def test_the_second_clip_is_for_bad_moves_that_have_become_much_likelier(
    ratio: float, advantage: float, is_pushed: bool
) -> None:
    log_probs = torch.tensor([np.log(ratio)], requires_grad=True)
    terms = ppo_loss(
        log_probs=log_probs,
        old_log_probs=torch.zeros(1),
        advantages=torch.tensor([advantage]),
        entropies=torch.zeros(1),
        value_losses=torch.zeros(1),
        ema_kls=None,
        learns_policy=torch.ones(1, dtype=torch.bool),
        weights=LossWeights(clip_range=0.2, value=0.5, entropy=0.0, dual_clip=3.0),
    )
    terms.total.backward()  # type: ignore[no-untyped-call]
    assert log_probs.grad is not None
    assert bool(log_probs.grad[0] != 0.0) is is_pushed

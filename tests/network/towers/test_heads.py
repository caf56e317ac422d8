"""The heads against slow, obvious references."""

import math

import numpy as np
import pytest
import torch

from keisei.constants import NUM_ACTIONS, NUM_SQUARES
from keisei.network.towers.model import (
    FlatPolicy,
    FromToPolicy,
    TanhValue,
    ValueHead,
    WinDrawLossValue,
)
from keisei.shogi.actions import PolicyOutputMapper
from keisei.shogi.types import Color

WIDTH = 6
RETURNS = [1.0, -1.0, 0.0, 0.3, -0.7, 0.999]


@pytest.fixture
def squares() -> torch.Tensor:
    return torch.randn(2, NUM_SQUARES, WIDTH)


def test_from_to_is_the_query_of_the_origin_times_the_key_of_the_target(
    squares: torch.Tensor,
) -> None:
    head = FromToPolicy(WIDTH, 4, "relu")
    with torch.no_grad():
        for parameter in head.parameters():
            parameter.normal_()
        logits = head.all_logits(squares).numpy()
        query = head.query(squares).numpy()
        key = head.key(squares).numpy().reshape(2, NUM_SQUARES, 2, 4)
        drop = head.drop(squares).numpy()
    mapper = PolicyOutputMapper()
    expected = np.empty_like(logits)
    for b in range(2):
        for action in range(NUM_ACTIONS):
            move = mapper.move(action, Color.BLACK)  # Black's squares are the mover's
            if move.drop is not None:
                expected[b, action] = drop[b, move.to_square, int(move.drop)]
            else:
                origin, target = query[b, move.from_square], key[b, move.to_square]
                expected[b, action] = origin @ target[int(move.promote)] / math.sqrt(4)
    np.testing.assert_allclose(logits, expected, rtol=1e-4, atol=1e-5)


def test_the_flat_head_looks_at_the_legal_actions_only(squares: torch.Tensor) -> None:
    head = FlatPolicy(WIDTH, 4, "silu")
    legal = torch.tensor([[0, 13_526, 9_054], [7, 7, 12_960]])
    torch.testing.assert_close(
        head(squares, legal), head.all_logits(squares).gather(1, legal), rtol=1e-5, atol=1e-6
    )
    loss = head(squares, legal).sum()
    loss.backward()
    assert head.actions.weight.grad is not None
    touched = head.actions.weight.grad.abs().sum(1).nonzero().flatten()
    assert touched.tolist() == [0, 7, 9_054, 12_960, 13_526]


def test_tanh_values_and_losses() -> None:
    head = TanhValue(WIDTH, 4, "relu")
    output = head(5 * torch.randn(len(RETURNS), NUM_SQUARES, WIDTH))
    assert output.shape == (len(RETURNS),)
    assert head.values(output) is output
    losses = head.loss(output, torch.tensor(RETURNS))
    expected = [(v - r) ** 2 for v, r in zip(output.tolist(), RETURNS, strict=True)]
    np.testing.assert_allclose(losses.detach(), expected, rtol=1e-5, atol=1e-7)


def test_win_draw_loss_values_and_losses() -> None:
    head = WinDrawLossValue(WIDTH, 4, "relu")
    output = 2 * torch.randn(len(RETURNS), 3)
    losses = head.loss(output, torch.tensor(RETURNS))
    for logits, value, loss, r in zip(
        output.tolist(), head.values(output).tolist(), losses.tolist(), RETURNS, strict=True
    ):
        total = sum(math.exp(logit) for logit in logits)
        win, draw, lost = (math.exp(logit) / total for logit in logits)
        assert value == pytest.approx(win - lost, abs=1e-6)
        cross_entropy = -(
            max(r, 0.0) * math.log(win)
            + (1 - abs(r)) * math.log(draw)
            + max(-r, 0.0) * math.log(lost)
        )
        assert loss == pytest.approx(cross_entropy, rel=1e-5)


def test_win_draw_loss_takes_returns_beyond_one_as_one() -> None:
    """Shaping rewards and bootstraps can add up to a little more."""
    head = WinDrawLossValue(WIDTH, 4, "relu")
    output = torch.randn(2, 3)
    beyond = head.loss(output, torch.tensor([1.2, -1.2]))
    assert torch.equal(beyond, head.loss(output, torch.tensor([1.0, -1.0])))


@pytest.mark.parametrize("head", [TanhValue(WIDTH, 4, "relu"), WinDrawLossValue(WIDTH, 4, "relu")])
def test_losses_are_float32_whatever_comes_in(head: ValueHead) -> None:
    returns = torch.tensor(RETURNS)
    exact = head(torch.randn(len(RETURNS), NUM_SQUARES, WIDTH)).detach()
    for output, target in ((exact.bfloat16(), returns), (exact.half(), returns.half())):
        with torch.autocast("cpu", dtype=torch.bfloat16):  # no matrix products in here
            losses = head.loss(output, target)
            assert losses.dtype == torch.float32
            assert head.values(output.float()).dtype == torch.float32
        torch.testing.assert_close(losses, head.loss(output.float(), target.float()))


def test_the_best_win_draw_loss_answer_is_the_return() -> None:
    head = WinDrawLossValue(WIDTH, 4, "relu")
    returns = torch.tensor([0.6])
    output = torch.zeros(1, 3, requires_grad=True)
    optimizer = torch.optim.Adam([output], lr=0.05)
    for _ in range(1000):
        optimizer.zero_grad()
        torch.autograd.backward(head.loss(output, returns).sum())
        optimizer.step()
    assert head.values(output).item() == pytest.approx(0.6, abs=0.01)

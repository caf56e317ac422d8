"""States of torch as plain arrays, through a checkpoint and back."""

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest
import torch

from keisei.errors import KeiseiError
from keisei.ppo.torch_state import (
    restore_torch_rng,
    to_arrays,
    to_tensors,
    torch_rng_state,
)
from tests.checkpoints.states import same
from tests.checkpoints.test_state_tree import round_trip


@pytest.fixture(autouse=True)
def _global_generator_stays_as_it_is() -> Iterator[None]:
    before = torch.get_rng_state()
    yield
    torch.set_rng_state(before)


def stored(state: Any) -> Any:
    """The state as it comes out of a checkpoint."""
    return to_tensors(round_trip(to_arrays(state)))


def test_optimizer_and_scaler_states() -> None:
    model = torch.nn.Sequential(torch.nn.Conv2d(2, 3, 3), torch.nn.Flatten())
    optimizer = torch.optim.AdamW(model.parameters(), lr=torch.tensor(1e-3), amsgrad=True)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, 2)
    scaler = torch.amp.GradScaler("cpu", init_scale=128.0)
    scaler.scale(model(torch.randn(4, 2, 5, 5)).square().mean()).backward()
    scaler.step(optimizer)
    scaler.update()
    scheduler.step()
    for owner in (model, optimizer, scheduler, scaler):
        state = owner.state_dict()
        again = stored(state)
        assert same(to_arrays(state), to_arrays(again))
        owner.load_state_dict(again)
        assert same(to_arrays(state), to_arrays(owner.state_dict()))


def test_tensors_share_no_memory_with_their_arrays() -> None:
    """Arrays may be read-only, and may be loaded by several agents."""
    array = np.arange(3.0)
    array.flags.writeable = False
    tensor = to_tensors({"a": [array]})["a"][0]
    tensor.zero_()
    assert array.tolist() == [0.0, 1.0, 2.0]


def test_the_global_generator_continues() -> None:
    torch.randn(3)
    saved = stored(torch_rng_state())
    expected = torch.randn(5)
    assert not torch.equal(torch.randn(5), expected)
    restore_torch_rng(saved)
    assert torch.equal(torch.randn(5), expected)


@pytest.mark.parametrize("state", [{}, {"cpu": torch.zeros(3, dtype=torch.uint8), "cuda": []}])
def test_states_of_something_else_are_refused(state: dict[str, Any]) -> None:
    with pytest.raises(KeiseiError, match="not one of torch"):
        restore_torch_rng(state)


def test_cuda_devices_are_restored_if_they_are_the_same_number(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    states = [torch.tensor([1], dtype=torch.uint8), torch.tensor([2], dtype=torch.uint8)]
    restored: list[torch.Tensor] = []
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(torch.cuda, "get_rng_state_all", lambda: states)
    monkeypatch.setattr(torch.cuda, "set_rng_state_all", restored.extend)
    saved = stored(torch_rng_state())
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    restore_torch_rng(saved)
    assert restored == states
    assert not caplog.records

    monkeypatch.setattr(torch.cuda, "device_count", lambda: 0)
    restore_torch_rng(saved)
    assert len(restored) == 2
    assert "2 CUDA devices, but 0 are here" in caplog.text

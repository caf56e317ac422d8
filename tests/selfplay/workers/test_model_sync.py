"""Weights on their way: exact, versioned, compressed where wanted."""

import pytest
import torch
from torch import nn

from keisei.errors import KeiseiError
from keisei.selfplay.workers.model_sync import (
    ModelSynchronizer,
    pack_tensor,
    pack_weights,
    unpack_tensor,
    unpack_weights,
)


def network(seed: int) -> nn.Module:
    torch.manual_seed(seed)
    return nn.Sequential(nn.Conv2d(3, 5, 3), nn.BatchNorm2d(5), nn.Linear(7, 2))


def same(one: nn.Module, other: nn.Module) -> bool:
    pairs = zip(one.state_dict().values(), other.state_dict().values(), strict=True)
    return all(torch.equal(a, b) for a, b in pairs)


@pytest.mark.parametrize("compress", [False, True])
def test_a_round_trip_gives_identical_parameters(compress: bool) -> None:
    messages = pack_weights(network(1).state_dict(), compress=compress)
    assert set(messages["0.weight"]) == {"data", "shape", "dtype", "compressed"}
    assert messages["0.weight"]["compressed"] is compress
    other = network(2)
    other.load_state_dict(unpack_weights(messages))
    assert same(network(1), other)


@pytest.mark.parametrize(
    "tensor",
    [
        torch.zeros(()),
        torch.zeros(0, 4),
        torch.arange(6, dtype=torch.int64).reshape(2, 3),
        torch.rand(3, 4).t(),
        torch.rand(5).bfloat16(),
        torch.tensor([True, False]),
    ],
)
def test_all_kinds_of_tensors(tensor: torch.Tensor) -> None:
    back = unpack_tensor(pack_tensor(tensor, compress=True))
    assert back.dtype == tensor.dtype
    assert torch.equal(back, tensor)


def test_half_precision_halves_and_rounds() -> None:
    tensor = torch.rand(1000)
    whole, half = (pack_tensor(tensor, compress=False, half=half) for half in (False, True))
    assert len(half["data"]) * 2 == len(whole["data"])
    assert torch.allclose(unpack_tensor(half).float(), tensor, rtol=0.01)


def test_compression_is_real() -> None:
    message = pack_tensor(torch.zeros(10_000), compress=True)
    assert len(message["data"]) < 1_000


@pytest.mark.parametrize(
    "message",
    [
        {},
        {"data": b"123", "shape": [1], "dtype": "float32", "compressed": False},
        {"data": b"1234", "shape": [2], "dtype": "float32", "compressed": False},
        {"data": b"1234", "shape": [1], "dtype": "float33", "compressed": False},
        {"data": b"1234", "shape": [1], "dtype": "float32", "compressed": True},
    ],
)
def test_what_is_no_message_is_refused(message: object) -> None:
    with pytest.raises(KeiseiError, match="holds no tensor"):
        unpack_tensor(message)  # type: ignore[arg-type]


def test_the_slab_hands_over_the_newest_weights_only() -> None:
    learner, worker = network(1), network(2)
    with (
        ModelSynchronizer(learner) as slab,
        ModelSynchronizer.attach(worker, slab.name) as other,
    ):
        assert other.read(0) is None, "nothing has been published"
        slab.publish(learner, 0)
        load(worker, other.read(0))
        assert same(learner, worker)
        for version in (1, 2):
            learner = network(10 + version)
            slab.publish(learner, version)
        assert other.read(0) is None, "its place has been taken by version 2"
        load(worker, other.read(2))
        assert same(learner, worker)
        load(worker, other.read(1))
        assert same(network(11), worker)


def load(module: nn.Module, weights: dict[str, torch.Tensor] | None) -> None:
    assert weights is not None
    module.load_state_dict(weights)

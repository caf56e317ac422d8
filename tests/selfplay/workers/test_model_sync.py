"""Weights arrive exactly, with their version, compressed on request."""

import pickle
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
import torch

from keisei.errors import KeiseiError
from keisei.network.model_factory import make_network
from keisei.network.predictor import Weights
from keisei.ppo.buffer import Experience
from keisei.ppo.learner import Ranks
from keisei.selfplay.workers.model_sync import (
    ModelSynchronizer,
    pack_tensor,
    pack_weights,
    unpack_tensor,
    unpack_weights,
)
from keisei.selfplay.workers.worker import PoolSnapshots, SelfPlayWorker
from keisei.selfplay.workers.worker_pool import GameShares
from keisei.timing import SectionTimer
from tests.tiny import tiny_config


def weights_of(seed: int) -> Weights:
    random = np.random.default_rng(seed)
    return {
        "0.weight": random.random((5, 3, 3, 3), dtype=np.float32),
        "1.count": np.array(seed),
        "2.bias": random.random(7),
    }


def same(one: Weights, other: Weights | None) -> bool:
    return other is not None and all(np.array_equal(one[name], other[name]) for name in one)


@pytest.mark.parametrize("compress", [False, True])
def test_a_round_trip_gives_identical_parameters(compress: bool) -> None:
    messages = pack_weights(weights_of(1), compress=compress)
    assert set(messages["0.weight"]) == {"data", "shape", "dtype", "compressed"}
    assert messages["0.weight"]["compressed"] is compress
    back = unpack_weights(messages)
    assert same(weights_of(1), back)
    assert all(back[name].dtype == array.dtype for name, array in weights_of(1).items())


@pytest.mark.parametrize(
    "array",
    [
        np.zeros(()),
        np.zeros((0, 4)),
        np.arange(6).reshape(2, 3),
        np.random.default_rng(0).random((3, 4), dtype=np.float32).T,
        np.array([True, False]),
    ],
)
def test_all_kinds_of_arrays(array: npt.NDArray[Any]) -> None:
    back = unpack_tensor(pack_tensor(array, compress=True))
    assert back.dtype == array.dtype
    assert np.array_equal(back, array)


def test_half_precision_halves_and_rounds_as_torch_does() -> None:
    random = np.random.default_rng(0)
    bits = random.integers(0, 1 << 32, 100_000, dtype=np.uint32)
    array = np.concatenate([bits.view(np.float32), random.random(1000, dtype=np.float32)])
    whole, half = (pack_tensor(array, compress=False, half=half) for half in (False, True))
    assert len(half["data"]) * 2 == len(whole["data"])
    expected = torch.from_numpy(array).bfloat16().float().numpy()
    assert np.array_equal(unpack_tensor(half), expected, equal_nan=True)


@pytest.mark.parametrize("half", [False, True])
def test_a_worker_plays_with_the_weights_of_a_compressed_message(family: str, half: bool) -> None:
    config = tiny_config(family)
    network = make_network(config, config.device)
    weights = {name: array + np.float32(0.01) for name, array in network.weights().items()}
    plan = GameShares(config, shares=1, ranks=Ranks()).next_plan(PoolSnapshots((), 0))
    worker = SelfPlayWorker(plan)
    messages = pickle.loads(pickle.dumps(pack_weights(weights, compress=True, half=half)))
    worker.load_weights(unpack_weights(messages), 1)
    for name, array in worker.network.weights().items():
        tolerance = np.abs(weights[name]) * (2**-8 if half else 0.0)
        assert np.all(np.abs(array - weights[name]) <= tolerance), name
    experience = Experience(config.selfplay.rollout_plies, config.env.num_games)
    assert worker.play(experience, SectionTimer()).plies == len(experience)
    assert worker.version == 1


def test_compression_is_real() -> None:
    message = pack_tensor(np.zeros(10_000), compress=True)
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
def test_a_malformed_message_is_refused(message: object) -> None:
    with pytest.raises(KeiseiError, match="malformed weights message"):
        unpack_tensor(message)  # type: ignore[arg-type]


def test_the_newest_weights_are_read() -> None:
    with (
        ModelSynchronizer(weights_of(1)) as learner,
        ModelSynchronizer.attach(weights_of(2), learner.name) as worker,
    ):
        assert worker.read(0) is None, "nothing has been published"
        learner.publish(weights_of(1), 0)
        assert same(weights_of(1), worker.read(0))
        for version in (1, 2):
            learner.publish(weights_of(10 + version), version)
        assert worker.read(0) is None, "it has been overwritten by version 2"
        assert same(weights_of(12), worker.read(2))
        assert same(weights_of(11), worker.read(1))

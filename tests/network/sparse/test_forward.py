"""Predictions against the same network in torch."""

import numpy as np
import pytest
import torch

from tests.network.sparse.samples import rows_of, small_network, some_positions
from tests.oracles.torch_sparse import TorchSparse
from tests.sampling import sample


@pytest.mark.kernels
@pytest.mark.parametrize(
    ("position_rows", "move_rows"),
    [
        ("all", "all"),
        ("all-threats-mate_threat", "all-mate_defence-exchange"),
        ("check", "origin"),  # positions and moves without any row
        ("pieces+hands", "gives_check+capture"),
    ],
)
def test_predictions_equal_those_of_torch(position_rows: str, move_rows: str) -> None:
    network = small_network(position_rows=position_rows, move_rows=move_rows)
    positions = some_positions(sample(40, 3))
    log_probs, values = network.predict(positions)
    with torch.no_grad():
        expected, raw_values = TorchSparse(network.arrays)(rows_of(network, positions))
    assert np.allclose(values, np.tanh(raw_values.numpy()), atol=1e-5)
    width = expected.shape[1]
    assert np.array_equal(np.isinf(log_probs[:, :width]), np.isinf(expected.numpy()))
    assert np.isneginf(log_probs[:, width:]).all()
    legal = np.isfinite(expected.numpy())
    assert np.allclose(log_probs[:, :width][legal], expected.numpy()[legal], atol=1e-5)


@pytest.mark.kernels
def test_the_units_are_tested_on_both_sides_of_their_limits() -> None:
    network = small_network()
    positions = some_positions(sample(20, 5))
    found = set()
    for index in range(len(positions.packed)):
        network.predict(positions.take(slice(index, index + 1)))
        work = network._workspaces[0]
        for layer in (work.accumulators[1:], work.hidden):
            found |= set(np.sign(layer) + np.sign(layer - 1))
            assert ((layer >= 0) & (layer <= 1)).all()
    assert found == {-1.0, 0.0, 1.0}


@pytest.mark.kernels
def test_probabilities_add_up_to_one() -> None:
    log_probs, values = small_network().predict(some_positions(sample(40, 3)))
    assert np.allclose(np.exp(log_probs).sum(axis=1), 1.0, atol=1e-5)
    assert (np.abs(values) <= 1.0).all()

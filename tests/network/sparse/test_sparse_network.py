"""`SparseNetwork` as a `Network`: weights in and out, copies, threads, batches, plug-ins."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from keisei.config_schema import DeviceConfig, ModelConfig
from keisei.errors import CheckpointError, DeviceError, WeightsError
from keisei.network.loading import load_network
from keisei.network.predictor import Prediction
from keisei.network.sparse.sparse_network import make_network
from keisei.shogi import row_groups
from keisei.shogi.packed import DamagedPositionError, Positions
from keisei.shogi.row_groups import registered_rows
from keisei.shogi.row_numbering import Table
from tests.network.sparse.samples import rows_of, small_network, some_positions
from tests.oracles.torch_sparse import TorchSparse
from tests.sampling import sample
from tests.tiny import tiny_config, tiny_trainer


def is_same(one: Prediction, other: Prediction) -> bool:
    return all(map(np.array_equal, one, other))


@pytest.mark.parametrize("threads", [2, 3])
def test_threads_predict_the_same_bit_by_bit(threads: int) -> None:
    positions = some_positions(100)
    assert is_same(
        small_network().predict(positions), small_network(threads=threads).predict(positions)
    )


@pytest.mark.kernels
def test_a_prediction_does_not_depend_on_the_rest_of_the_batch() -> None:
    network = small_network()
    number = sample(40, 4)
    positions = some_positions(number)
    together = network.predict(positions)
    order = np.random.default_rng(0).permutation(number)
    for rows in (order, order[: number // 2], *np.arange(number)[:, None]):
        apart = network.predict(positions.take(rows))
        width = apart.log_probs.shape[1]
        assert np.array_equal(apart.values, together.values[rows])
        assert np.array_equal(apart.log_probs, together.log_probs[rows, :width])
        assert np.isneginf(together.log_probs[rows, width:]).all()


@pytest.mark.kernels
def test_positions_without_legal_moves_have_a_value() -> None:
    network = small_network()
    packed, legal, counts = some_positions(3)
    counts[:] = 0
    log_probs, values = network.predict(Positions(packed, legal, counts))
    assert log_probs.shape == (3, 0)
    assert np.isfinite(values).all()


def test_damage_and_too_many_moves_are_refused() -> None:
    network = small_network()
    packed, legal, counts = some_positions(2)
    with pytest.raises(ValueError, match="more than 593 legal moves"):
        network.predict(Positions(packed, np.zeros((2, 1024), np.uint16), counts + 600))
    packed.board[1] = 29
    with pytest.raises(DamagedPositionError, match="position 1"):
        network.predict(Positions(packed, legal, counts))


def test_weights_are_copied_in() -> None:
    network, other = small_network(seed=0), small_network(seed=1)
    positions = some_positions(5)
    network.load_weights(other.weights())
    assert is_same(network.predict(positions), other.predict(positions))
    expected = other.predict(positions)
    for array in network.weights().values():
        array[...] = 0.0
    assert is_same(other.predict(positions), expected)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"move_table": None}, "they lack move_table"),
        ({"tower": np.zeros(1)}, "a sparse one has no tower"),
        ({"hidden_bias": np.zeros(9)}, r"hidden_bias: the weights have shape \(9,\)"),
    ],
)
def test_weights_of_another_network_are_refused(change: dict[str, Any], message: str) -> None:
    network = small_network()
    before = {name: array.copy() for name, array in network.weights().items()}
    weights = {**small_network(seed=1).weights(), **change}
    with pytest.raises(WeightsError, match=message):
        network.load_weights({name: array for name, array in weights.items() if array is not None})
    assert all(np.array_equal(network.weights()[name], array) for name, array in before.items())


def test_a_copy_is_independent() -> None:
    network, positions = small_network(threads=2), some_positions(5)
    expected = network.predict(positions)
    copy = network.copy()
    assert (copy.threads, copy.spec, copy.position_spec) == (2, network.spec, network.position_spec)
    assert is_same(copy.predict(positions), expected)
    for array in copy.weights().values():
        array[...] = 0.0
    assert is_same(network.predict(positions), expected)
    assert not is_same(copy.predict(positions), expected)


def test_a_new_network_is_nearly_uniform_and_nearly_neutral() -> None:
    config = tiny_config("model.type=sparse")
    network = make_network(config, DeviceConfig(device="cpu", threads=1))
    positions = some_positions(50)
    log_probs, values = network.predict(positions)
    uniform = -np.log(positions.legal_counts)[:, None]
    finite = np.isfinite(log_probs)
    assert np.abs((log_probs - uniform)[finite]).max() < 0.8
    assert np.abs(values).max() < 0.3
    with pytest.raises(DeviceError, match=r"not on cuda: set device.device=cpu"):
        make_network(config, DeviceConfig(device="cuda", threads=1))


@pytest.mark.parametrize("setting", ["device.mixed_precision=bf16", "device.compile=on"])
def test_what_only_towers_have_is_refused(setting: str) -> None:
    config = tiny_config("model.type=sparse", setting)
    with pytest.raises(DeviceError, match=f"{setting} is for towers"):
        make_network(config, config.device)


@pytest.mark.parametrize(
    "rows", [("all", "all"), ("all-threats", "all-exchange"), ("check", "origin")]
)
def test_sizes_follow_the_settings(rows: tuple[str, str]) -> None:
    network = small_network(position_rows=rows[0], move_rows=rows[1])
    assert len(network.arrays.position_table) == network.position_spec.num_rows
    assert len(network.arrays.move_table) == network.move_spec.num_rows
    assert np.isfinite(network.predict(some_positions(3)).values).all()


def test_unknown_rows_are_named() -> None:
    with pytest.raises(ValueError, match="no group 'mover_pawns'"):
        ModelConfig(position_rows="all+mover_pawns")


@pytest.mark.kernels
@pytest.mark.usefixtures("plugins")
def test_a_network_reads_the_rows_of_plug_ins() -> None:
    network = small_network(position_rows="pieces+mover_pawns", move_rows="target+drops")
    positions = some_positions(sample(30, 3))
    rows = rows_of(network, positions)
    first = network.position_spec.first_row("mover_pawns")
    for active, packed in zip(rows, positions.packed, strict=True):
        assert active.position[-1] == first + (packed.board == 1).sum()
    oracle_log_probs, raw_values = TorchSparse(network.arrays)(rows)
    log_probs, values = network.predict(positions)
    assert np.allclose(values, np.tanh(raw_values.detach().numpy()), atol=1e-5)
    expected = oracle_log_probs.detach().numpy()
    finite = np.isfinite(expected)
    assert np.allclose(log_probs[:, : expected.shape[1]][finite], expected[finite], atol=1e-5)


@pytest.mark.usefixtures("plugins")
def test_a_checkpoint_names_the_plug_in_that_is_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    trainer = tiny_trainer(
        tmp_path / "run",
        "model.type=sparse", "model.accumulators=8", "model.hidden=8", "model.context=8",
        "model.position_rows=all+mover_pawns", "model.move_rows=all+drops", "env.num_games=4",
    )  # fmt: skip
    trainer.train_step()
    trainer.save()
    positions = some_positions(4)
    loaded = load_network(tmp_path / "run").predictor.predict(positions)
    assert is_same(loaded, trainer.learner.evaluation_network.predict(positions))
    missing: tuple[tuple[Table, str], ...] = (("move", "drops"), ("position", "mover_pawns"))
    for table, name in missing:
        groups = [group for group in registered_rows(table) if group.name != name]
        monkeypatch.setitem(row_groups._registry, table, groups)
        with pytest.raises(
            CheckpointError, match=f"model.{table}_rows.* there is no group '{name}'"
        ):
            load_network(tmp_path / "run")

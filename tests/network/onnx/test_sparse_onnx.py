"""Sparse networks as ONNX: the same predictions, from rows that any program can make."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnxruntime  # type: ignore[import-untyped]
import pytest

from keisei.errors import KeiseiError
from keisei.network.loading import device_config, load_network
from keisei.network.onnx import sparse_onnx
from keisei.network.onnx.onnx_model import OnnxError, load_onnx
from keisei.network.onnx.sparse_onnx import export_sparse_onnx, row_inputs
from keisei.shogi.packed import Positions
from keisei.shogi.row_groups import MOVE_ROWS, POSITION_ROWS
from keisei.shogi.vector import VectorShogi
from tests.network.onnx.signatures import signed
from tests.network.sparse_stored import stored_sparse


@pytest.fixture(scope="module")
def sound(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("exported") / "mine.onnx"
    path.write_bytes(export_sparse_onnx(stored_sparse()))
    return path


def sample_positions(games: int) -> Positions:
    return VectorShogi(games, seed=3, opening_plies=50).observe()


@pytest.mark.parametrize("games", [1, 7, 40])
def test_a_file_predicts_as_the_kernels(sound: Path, games: int) -> None:
    positions = sample_positions(games)
    expected = stored_sparse().network(device_config("cpu", 1)).predict(positions)
    found = load_network(sound, threads=1).predictor.predict(positions)
    np.testing.assert_allclose(np.exp(found.log_probs), np.exp(expected.log_probs), atol=1e-5)
    np.testing.assert_allclose(found.values, expected.values, atol=1e-5)
    np.testing.assert_array_equal(np.isinf(found.log_probs), np.isinf(expected.log_probs))


def test_another_program_needs_only_the_rows(sound: Path) -> None:
    positions = sample_positions(5)
    session = onnxruntime.InferenceSession(sound, providers=["CPUExecutionProvider"])
    log_probs, values = session.run(["log_probs", "value"], row_inputs(positions))
    expected = stored_sparse().network(device_config("cpu", 1)).predict(positions)
    np.testing.assert_allclose(np.exp(log_probs), np.exp(expected.log_probs), atol=1e-5)
    np.testing.assert_allclose(values, expected.values, atol=1e-5)


def test_rows_are_numbers_of_the_tables_padded_with_minus_one() -> None:
    positions = sample_positions(6)
    inputs = row_inputs(positions)
    for rows, spec in (
        (inputs["position_rows"], POSITION_ROWS),
        (inputs["move_rows"], MOVE_ROWS),
    ):
        assert rows.dtype == np.int64
        assert rows.min() == -1
        assert 0 <= rows.max() < spec.num_rows
        is_padding = rows == -1
        assert (is_padding[..., 1:] >= is_padding[..., :-1]).all()  # only at the end
        assert not is_padding[..., -1].all()  # no wider than needed
    used = (inputs["move_rows"] != -1).any(axis=2).sum(axis=1)
    np.testing.assert_array_equal(used, positions.legal_counts)
    np.testing.assert_array_equal(inputs["legal_counts"], positions.legal_counts)


def test_the_sum_of_the_rows_is_what_the_network_adds_up() -> None:
    stored, positions = stored_sparse(), sample_positions(3)
    table = np.vstack([stored.weights["position_table"], np.zeros((1, 16), np.float32)])
    sums = table[row_inputs(positions)["position_rows"]].sum(axis=1)
    clipped = np.clip(sums + stored.weights["position_bias"], 0.0, 1.0)
    linear = (sums + stored.weights["position_bias"])[:, 0]
    clipped[:, 0] = linear
    hidden = np.clip(
        clipped @ stored.weights["hidden_weight"] + stored.weights["hidden_bias"], 0.0, 1.0
    )
    raw = hidden @ stored.weights["value_weight"] + stored.weights["value_bias"] + linear
    expected = stored.network(device_config("cpu", 1)).predict(positions).values
    np.testing.assert_allclose(np.tanh(raw), expected, atol=1e-5)


def test_groups_that_were_left_out_stay_out(tmp_path: Path) -> None:
    stored = stored_sparse(position_rows="all-threats", move_rows="target+capture")
    path = tmp_path / "few.onnx"
    path.write_bytes(export_sparse_onnx(stored))
    positions = sample_positions(4)
    expected = stored.network(device_config("cpu", 1)).predict(positions)
    found = load_network(path, threads=1).predictor.predict(positions)
    np.testing.assert_allclose(np.exp(found.log_probs), np.exp(expected.log_probs), atol=1e-5)


def test_name_and_settings_come_from_the_run(sound: Path) -> None:
    loaded = load_network(sound, threads=1)
    assert loaded.name == "mine@192.onnx"
    assert (loaded.temperature, loaded.mate_plies, loaded.ply_limit) == (0.5, 3, 300)


def test_the_file_is_valid_and_always_the_same(sound: Path) -> None:
    onnx.checker.check_model(onnx.load(sound), full_check=True)
    assert export_sparse_onnx(stored_sparse()) == sound.read_bytes()


def test_a_file_that_would_predict_something_else_is_not_written(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    build = sparse_onnx._model_proto

    def wrong(onnx_module: Any, weights: Any) -> Any:
        return build(onnx_module, {**weights, "value_bias": weights["value_bias"] + 0.1})

    monkeypatch.setattr(sparse_onnx, "_model_proto", wrong)
    with pytest.raises(OnnxError, match="predictions would differ by up to"):
        export_sparse_onnx(stored_sparse())


def set_network(proto: Any, old: str, new: str) -> None:
    (entry,) = (entry for entry in proto.metadata_props if entry.key == "keisei.network")
    assert old in entry.value
    entry.value = entry.value.replace(old, new)


def drop_network(proto: Any) -> None:
    kept = [entry for entry in proto.metadata_props if entry.key != "keisei.network"]
    del proto.metadata_props[:]
    proto.metadata_props.extend(kept)


def drop_an_output(proto: Any) -> None:
    del proto.graph.output[1]


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (drop_network, "not a network of Keisei, or damaged"),
        (lambda proto: set_network(proto, '"pieces"', '"dragons"'), "'dragons' are unknown here"),
        (lambda proto: set_network(proto, '"square",81', '"square",80'), "'pieces' differ from"),
        (lambda proto: set_network(proto, '"run":"mine"', '"run":1'), "damaged metadata: run"),
        (drop_an_output, "a trial prediction failed: .*value"),
    ],
)
def test_files_that_are_not_what_they_should_be(
    sound: Path, tmp_path: Path, damage: Callable[[Any], None], message: str
) -> None:
    proto = onnx.load(sound)
    damage(proto)
    path = tmp_path / "bad.onnx"
    path.write_bytes(signed(proto).SerializeToString())
    with pytest.raises(KeiseiError, match=rf"(?s)bad\.onnx: .*{message}"):
        load_onnx(path, threads=1)

"""Network files: what is written is read, and nothing else is."""

import hashlib
import io
import json
import os
import time
import tracemalloc
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.numpy
from hypothesis import given, settings
from hypothesis import strategies as st

from keisei.constants import WeightType
from keisei.errors import KeiseiError
from keisei.network.loading import device_config, load_network, open_network, read_network
from keisei.network.network_file import (
    MAX_HEADER,
    NetworkFileError,
    export_network_file,
    parse_network_file,
    read_network_file,
)
from keisei.shogi.vector import VectorShogi
from tests.network.sparse_stored import stored_sparse

Header = dict[str, Any]


@pytest.fixture(scope="module")
def contents() -> bytes:
    return export_network_file(stored_sparse())


@pytest.fixture
def sound(contents: bytes, tmp_path: Path) -> Path:
    path = tmp_path / "mine.keisei"
    path.write_bytes(contents)
    return path


@cache
def small_file() -> bytes:
    return export_network_file(stored_sparse(position_rows="pins+check", move_rows="evasion"))


def split(contents: bytes) -> tuple[Header, bytes]:
    size = int.from_bytes(contents[:8], "little")
    return json.loads(contents[8 : 8 + size]), contents[8 + size :]


def join(header: Header | bytes, data: bytes) -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return len(text).to_bytes(8, "little") + text + data


def facts_of(header: Header) -> dict[str, Any]:
    facts: dict[str, Any] = json.loads(header["__metadata__"]["keisei"])
    return facts


def with_facts(contents: bytes, change: Callable[[dict[str, Any]], object]) -> bytes:
    header, data = split(contents)
    facts = facts_of(header)
    change(facts)
    header["__metadata__"]["keisei"] = json.dumps(facts)
    return join(header, data)


def with_header(contents: bytes, change: Callable[[Header], object]) -> bytes:
    header, data = split(contents)
    change(header)
    return join(header, data)


def with_weight(contents: bytes, value: float) -> bytes:
    """Change one weight, and the digest with it."""
    header, data = split(contents)
    start = header["hidden_bias"]["data_offsets"][0]
    data = data[:start] + np.float32(value).tobytes() + data[start + 4 :]
    digest = hashlib.sha256(data).hexdigest()
    return with_facts(join(header, data), lambda facts: facts.update(weights_sha256=digest))


def parse(contents: bytes) -> None:
    parse_network_file(io.BytesIO(contents), len(contents))


def test_a_file_predicts_as_its_network(sound: Path) -> None:
    stored = stored_sparse()
    loaded = load_network(sound, threads=1)
    positions = VectorShogi(32, opening_plies=30).observe()
    expected = stored.network(device_config("cpu", 1)).predict(positions)
    found = loaded.predictor.predict(positions)
    np.testing.assert_array_equal(found.log_probs, expected.log_probs)
    np.testing.assert_array_equal(found.values, expected.values)
    assert loaded.name == "mine@192.keisei"
    assert loaded.identity.startswith("mine@192.keisei#")
    assert (loaded.temperature, loaded.mate_plies, loaded.ply_limit) == (0.5, 3, 300)


def test_the_same_network_gives_the_same_bytes(contents: bytes) -> None:
    assert export_network_file(stored_sparse()) == contents


def test_a_file_can_be_read_like_a_checkpoint(sound: Path) -> None:
    stored = read_network(sound)
    assert (stored.run, stored.timestep) == ("mine", 192)
    assert stored.config.model.accumulators == 16
    assert export_network_file(stored) == sound.read_bytes()
    assert open_network(sound)(1).name == "mine@192.keisei"


def test_groups_that_were_left_out_stay_out(tmp_path: Path) -> None:
    stored = stored_sparse(position_rows="pieces+hands", move_rows="all-exchange")
    path = tmp_path / "few.keisei"
    path.write_bytes(export_network_file(stored))
    weights = read_network(path).weights
    assert weights["position_table"].shape == stored.weights["position_table"].shape
    load_network(path, threads=1).predictor.predict(VectorShogi(2).observe())


@pytest.mark.parametrize(("dtype", "size"), [(WeightType.FLOAT16, 0.52), (WeightType.INT8, 0.33)])
def test_a_smaller_file_for_nearly_the_same_predictions(
    contents: bytes, tmp_path: Path, dtype: WeightType, size: float
) -> None:
    stored = stored_sparse()
    smaller = export_network_file(stored, dtype=dtype)
    assert len(smaller) < size * len(contents)
    path = tmp_path / "smaller.keisei"
    path.write_bytes(smaller)
    positions = VectorShogi(32, opening_plies=30).observe()
    exact = stored.network(device_config("cpu", 1)).predict(positions)
    close = load_network(path, threads=1).predictor.predict(positions)
    assert np.abs(np.exp(exact.log_probs) - np.exp(close.log_probs)).max() < 0.01
    assert all(array.dtype == np.float32 for array in read_network(path).weights.values())


def test_rounding_that_changes_predictions_is_refused() -> None:
    stored = stored_sparse()
    # float16 has no number between 8,992 and 9,000, nor between that and 9,008
    stored.weights["position_bias"][0] = 9000.0
    stored.weights["value_bias"][0] = -9003.0
    assert export_network_file(stored)
    for dtype in (WeightType.FLOAT16, WeightType.INT8):
        with pytest.raises(NetworkFileError, match="export it as float32"):
            export_network_file(stored, dtype=dtype)


@pytest.mark.parametrize(
    ("name", "array", "message"),
    [
        ("position_table", np.float32, "position_table: int8 tables, and only they, have scales"),
        ("hidden_bias", np.int8, "hidden_bias: int8 tables, and only they, have scales"),
        ("move_table_scales", None, "move_table: int8 tables, and only they, have scales"),
        ("move_table_scales", np.nan, "move_table: a weight is NaN, infinite or"),
        ("move_table_scales", 1e30, "move_table: a weight is NaN, infinite or"),
    ],
)
def test_int8_tables_and_only_they_have_scales(name: str, array: Any, message: str) -> None:
    small = export_network_file(stored_sparse(), dtype=WeightType.INT8)
    arrays = safetensors.numpy.load(small)
    if array is None:
        del arrays[name]
    elif isinstance(array, float):
        arrays[name][3] = array
    else:
        arrays[name] = arrays[name].astype(array)
    facts = facts_of(split(small)[0])
    _, data = split(safetensors.numpy.save(arrays))
    facts["weights_sha256"] = hashlib.sha256(data).hexdigest()
    changed = safetensors.numpy.save(arrays, {"keisei": json.dumps(facts)})
    with pytest.raises(NetworkFileError, match=message):
        parse(changed)


@pytest.mark.parametrize("value", [np.nan, np.inf, 1e9])
def test_weights_that_are_not_finite_are_not_written(value: float) -> None:
    stored = stored_sparse()
    stored.weights["hidden_weight"][3, 3] = value
    with pytest.raises(NetworkFileError, match="hidden_weight: a weight is NaN, infinite or"):
        export_network_file(stored)


def test_only_the_cpu_computes_it(sound: Path) -> None:
    with pytest.raises(KeiseiError, match="computes on the CPU, not on cuda"):
        load_network(sound, device="cuda")


DAMAGES: dict[str, tuple[Callable[[bytes], bytes], str]] = {
    "empty": (lambda data: b"", "not a network of Keisei, or damaged"),
    "text": (lambda data: b"not a network at all\n" * 99, "not a network of Keisei, or damaged"),
    "shifted": (lambda data: b"\0" + data, "not a network of Keisei, or damaged"),
    "half": (lambda data: data[: len(data) // 2], "truncated: .* bytes instead of"),
    "one byte short": (lambda data: data[:-1], "truncated"),
    "one byte long": (lambda data: data + b"\0", "too long"),
    "a weight changed": (
        lambda data: data[:-100] + b"\1" + data[-99:],
        "damaged: the SHA-256 of its weights differs",
    ),
    "huge header": (
        lambda data: (1 << 60).to_bytes(8, "little") + data[8:],
        "not a network of Keisei, or damaged",
    ),
    "long header": (
        lambda data: join(b" " * (MAX_HEADER + 1), b""),
        "not a network of Keisei, or damaged",
    ),
    "deep header": (lambda data: join(b"[" * 100_000, b""), "not a network of Keisei"),
    "list as header": (lambda data: join(b"[]", b""), "not a network of Keisei"),
    "no metadata": (
        lambda data: with_header(data, lambda header: header.pop("__metadata__")),
        "not a network of Keisei",
    ),
    "metadata that are a number": (
        lambda data: with_header(data, lambda header: header.update(__metadata__={"keisei": 1})),
        "not a network of Keisei",
    ),
    "deep metadata": (
        lambda data: with_header(
            data, lambda header: header.update(__metadata__={"keisei": "[" * 100_000})
        ),
        "not a network of Keisei",
    ),
    "other version": (
        lambda data: with_facts(data, lambda facts: facts.update(format_version=2)),
        "format version 2, but this Keisei reads version 1",
    ),
    "other type": (
        lambda data: with_facts(data, lambda facts: facts.update(type="resnet")),
        "damaged metadata: type",
    ),
    "no run": (
        lambda data: with_facts(data, lambda facts: facts.pop("run")),
        "damaged metadata: run: Field required",
    ),
    "escape sequence": (
        lambda data: with_facts(data, lambda facts: facts.update(run="a\x1b[31m")),
        "damaged metadata: run",
    ),
    "hot": (
        lambda data: with_facts(data, lambda facts: facts.update(temperature=float("nan"))),
        "damaged metadata",
    ),
    "a size of 2**62": (
        lambda data: with_facts(data, lambda facts: facts.update(accumulators=1 << 62)),
        "damaged metadata: accumulators",
    ),
    "another size": (
        lambda data: with_facts(data, lambda facts: facts.update(accumulators=4096)),
        r"position_table: shape \[\d+, 16\], the network needs \[\d+, 4096\]",
    ),
    "huge shapes": (
        lambda data: with_header(
            data, lambda header: header["position_table"].update(shape=[1 << 40, 1 << 20])
        ),
        "position_table: shape .* the network needs",
    ),
    "other numbers": (
        lambda data: with_header(data, lambda header: header["move_table"].update(dtype="I64")),
        "move_table: weights must be float32, float16 or int8",
    ),
    "an array less": (
        lambda data: with_header(data, lambda header: header.pop("hidden_bias")),
        "its arrays are not those of a sparse network",
    ),
    "an array more": (
        lambda data: with_header(data, lambda header: header.update(more=header["move_table"])),
        "its arrays are not those of a sparse network",
    ),
    "overlapping arrays": (
        lambda data: with_header(
            data, lambda header: header["hidden_bias"].update(data_offsets=[0, 32])
        ),
        "not a valid safetensors file",
    ),
    "unknown rows": (
        lambda data: with_facts(
            data, lambda facts: facts["position_groups"][0].update(name="dragons")
        ),
        "its position rows 'dragons' are unknown here",
    ),
    "other rows": (
        lambda data: with_facts(
            data, lambda facts: facts["move_groups"][0].update(axes=[["square", 81]])
        ),
        "its move rows 'target' differ from those of this Keisei",
    ),
    "rows in another order": (
        lambda data: with_facts(data, lambda facts: facts["position_groups"].reverse()),
        "its position rows are in another order|the network needs",
    ),
    "rows twice": (
        lambda data: with_facts(
            data, lambda facts: facts["move_groups"].append(facts["move_groups"][0])
        ),
        "damaged metadata: model.move_rows: .*twice",
    ),
    "no rows": (
        lambda data: with_facts(data, lambda facts: facts.update(position_groups=[])),
        "damaged metadata: model.position_rows",
    ),
    "NaN": (lambda data: with_weight(data, np.nan), "hidden_bias: a weight is NaN, infinite"),
    "infinite": (lambda data: with_weight(data, -np.inf), "hidden_bias: a weight is NaN"),
    "enormous": (lambda data: with_weight(data, 1e30), "hidden_bias: a weight .* beyond 10,000"),
}


@pytest.mark.parametrize("name", DAMAGES)
def test_damaged_and_hostile_files_are_refused(name: str, contents: bytes, tmp_path: Path) -> None:
    damage, message = DAMAGES[name]
    path = tmp_path / "bad.keisei"
    path.write_bytes(damage(contents))
    with pytest.raises(NetworkFileError, match=rf"(?s)bad\.keisei: {message}"):
        load_network(path, threads=1)


def test_a_changed_weight_is_only_found_by_its_digest(contents: bytes) -> None:
    parse(with_weight(contents, 0.25))


@settings(max_examples=200, deadline=None)
@given(st.data())
def test_no_change_of_a_file_is_believed_or_ends_in_another_error(data: st.DataObject) -> None:
    contents = small_file()
    header_end = 8 + int.from_bytes(contents[:8], "little")
    start = data.draw(st.integers(0, header_end + 64))
    stop = data.draw(st.integers(start, start + 64))
    new = data.draw(st.binary(max_size=64))
    changed = contents[:start] + new + contents[stop:]
    try:
        parse(changed)
    except KeiseiError:
        return
    assert len(changed) == len(contents)  # other letters in free text, or nothing


def test_a_large_file_is_refused_before_it_is_read(contents: bytes, tmp_path: Path) -> None:
    path = tmp_path / "large.keisei"
    with path.open("wb") as file:
        file.write(contents)
        file.truncate(1 << 34)  # sparse: takes no space on the disk
    tracemalloc.start()
    with pytest.raises(NetworkFileError, match="too long"):
        read_network_file(path)
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 1 << 23


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="this system has no named pipes")
def test_a_pipe_is_not_waited_for(tmp_path: Path) -> None:
    path = tmp_path / "pipe.keisei"
    os.mkfifo(path)
    start = time.monotonic()
    with pytest.raises(NetworkFileError, match=r"pipe\.keisei: not a regular file"):
        load_network(path)
    assert time.monotonic() - start < 5


def test_a_file_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(NetworkFileError, match=r"cannot read .*none\.keisei: No such file"):
        load_network(tmp_path / "none.keisei")

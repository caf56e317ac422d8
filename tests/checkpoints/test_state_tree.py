"""Nested state as JSON and named arrays: exact, and harmless whatever a file says."""

import enum
import json
from collections import OrderedDict
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pytest
import safetensors.numpy
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st

from keisei.checkpoints.state_tree import flatten, unflatten
from tests.checkpoints.states import same, values


def round_trip(value: object) -> Any:
    arrays: dict[str, npt.NDArray[Any]] = {}
    text = json.dumps(flatten(value, arrays), allow_nan=False)
    return unflatten(json.loads(text), {name: array.copy() for name, array in arrays.items()})


@settings(deadline=None, max_examples=100)
@given(value=values)
@example(value={1: 0, "1": np.zeros(2), "$tuple": (), "a/b": {"a": {"b": np.zeros(2)}}})
@example(value={"a/b": np.zeros(1), "a": {"b": np.ones(1), "b~2": np.ones(2)}})
@example(value={"__metadata__": np.zeros(1)})
@example(value=[-0.0, 5e-324, 2**53 + 1, -(2**128), "\ud800", "", b"", (), [], {}])
@example(value=np.zeros((2, 3), np.dtype([("a", "u1"), ("b", "<f8", (2, 2))], align=True)))
@example(value=np.array((1, 2.0), "i1,f4")[()])
@example(value=np.empty((2, 0), "V0"))
def test_what_goes_in_comes_out(value: object) -> None:
    assert same(value, round_trip(value))


INNER = np.dtype([("a", "u1"), ("b", "<u4")], align=True)
PADDED = np.dtype([("c", "u1"), ("d", INNER, (2,)), ("e", "<f8")], align=True)


def test_bytes_between_fields_are_zero() -> None:
    """They are whatever was in that memory before."""
    heap = np.full(3 * PADDED.itemsize, 0xAA, np.uint8)
    array = heap.view(PADDED)
    for name in ("c", "e"):
        array[name] = 7
    array["d"]["a"], array["d"]["b"] = 1, 2
    clean = np.zeros(3, PADDED)
    clean["c"], clean["e"] = 7, 7
    clean["d"]["a"], clean["d"]["b"] = 1, 2
    tensors: dict[str, npt.NDArray[Any]] = {}
    flatten({"padded": array}, tensors)
    assert tensors["padded"].tobytes() == clean.tobytes()


def test_integers_of_any_size() -> None:
    """Also those that Python refuses to write in decimal."""
    assert round_trip(10**5000) == 10**5000


def test_loaded_arrays_can_be_written_to() -> None:
    array = round_trip({"a": np.arange(3)})["a"]
    array += 1
    assert array.tolist() == [1, 2, 3]


class Pair(NamedTuple):
    a: int
    b: int


class Colour(enum.IntEnum):
    RED = 1


@pytest.mark.parametrize(
    "value",
    [
        object(),
        {1, 2},
        1j,
        Pair(1, 2),
        Colour.RED,
        {1.5: 0},
        {True: 0},
        {(1, 2): 0},
        torch.zeros(2),
        np.zeros(2, np.complex64),
        np.array([object()]),
        np.array([(1, object())], "i4,O"),
        np.array(["2020-01-01"], "M8[D]"),
        np.zeros(2, np.dtype({"names": ["a"], "formats": ["i4"], "titles": ["title"]})),
        np.ma.masked_array([1, 2]),
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_cannot_be_stored_is_refused_by_its_path(value: object) -> None:
    with pytest.raises(TypeError, match=r"^outer/1(/f1)?: "):
        flatten({"outer": [0, value]}, {})


def test_any_mapping_comes_back_as_a_dictionary() -> None:
    assert same(OrderedDict(b=1, a=2), round_trip(OrderedDict(b=1, a=2)))


texts = ["|O", "O", "<f8", "|b1", "|V0", "|V99999999999", "<M8[s]", "bytes", "floats"]
tags = ["$int", "$float", "$bytes", "$tuple", "$dict", "$array", "$scalar", "$what"]
fields = ["dtype", "shape", "base", "fields", "offsets", "itemsize", "plain"]
hostile = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from(texts),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(tags + fields), inner, max_size=4)
    ),
    max_leaves=10,
)


@settings(deadline=None, max_examples=80)
@given(tree=hostile, dtype=hostile, shape=hostile)
@example(tree=None, dtype="|O", shape=[1])
@example(tree=None, dtype={"fields": [["a", "|O"]], "offsets": [0], "itemsize": 8}, shape=[1])
@example(tree=None, dtype={"base": "|O8", "shape": [1]}, shape=[1])
@example(tree=None, dtype="|b1", shape=[8])
@example(tree=None, dtype="<i8", shape=[-1, -1])
@example(tree=None, dtype="|V0", shape=[10**30])
@example(tree={"$dict": [[[], 1]]}, dtype="", shape=[])
@example(tree={"$int": "x" * 5000}, dtype="", shape=[])
@example(tree={"$float": "00"}, dtype="", shape=[])
@example(tree={"$what": 1}, dtype="", shape=[])
@example(tree={"$bytes": "?"}, dtype="", shape=[])
@example(tree={"$scalar": "floats"}, dtype="", shape=[])
def test_hostile_json_is_refused_or_harmless(tree: object, dtype: object, shape: object) -> None:
    of_bytes, of_floats = (
        {"$array": name, "dtype": dtype, "shape": shape} for name in ("bytes", "floats")
    )
    for each in (tree, of_bytes, of_floats):
        arrays: dict[str, npt.NDArray[Any]] = {
            "bytes": np.full(8, 2, np.uint8),
            "floats": np.zeros((1, 2), np.float32),
        }
        try:
            value = unflatten(each, arrays)
        except ValueError:
            continue
        if isinstance(value, np.ndarray):
            assert not value.dtype.hasobject


def test_an_array_cannot_be_used_twice() -> None:
    arrays = safetensors.numpy.load(safetensors.numpy.save({"a": np.zeros(3)}))
    with pytest.raises(ValueError, match=r"malformed \$array"):
        unflatten([{"$array": "a"}, {"$array": "a"}], arrays)

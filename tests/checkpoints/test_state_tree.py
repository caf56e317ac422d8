"""Nested state as JSON and tensors: exact, and harmless whatever a file says."""

import enum
import json
from collections import OrderedDict
from typing import Any, NamedTuple

import numpy as np
import pytest
import safetensors.torch
import torch
from hypothesis import example, given, settings
from hypothesis import strategies as st

from keisei.checkpoints.state_tree import flatten, unflatten
from tests.checkpoints.states import same, values


def round_trip(value: object) -> Any:
    tensors: dict[str, torch.Tensor] = {}
    text = json.dumps(flatten(value, tensors), allow_nan=False)
    return unflatten(json.loads(text), {name: tensor.clone() for name, tensor in tensors.items()})


@settings(deadline=None, max_examples=100)
@given(value=values)
@example(value={1: 0, "1": torch.zeros(2), "$tuple": (), "a/b": {"a": {"b": np.zeros(2)}}})
@example(value={"a/b": torch.zeros(1), "a": {"b": torch.ones(1), "b~2": torch.ones(2)}})
@example(value={"__metadata__": torch.zeros(1)})
@example(value=[-0.0, 5e-324, 2**53 + 1, -(2**128), "\ud800", "", b"", (), [], {}])
@example(value=np.zeros((2, 3), np.dtype([("a", "u1"), ("b", "<f8", (2, 2))], align=True)))
@example(value=np.array((1, 2.0), "i1,f4")[()])
@example(value=np.empty((2, 0), "V0"))
def test_what_goes_in_comes_out(value: object) -> None:
    assert same(value, round_trip(value))


def test_integers_of_any_size() -> None:
    """Also those that Python refuses to write in decimal."""
    assert round_trip(10**5000) == 10**5000


def test_tensors_lie_in_memory_as_they_did() -> None:
    last = torch.channels_last
    for tensor in (
        torch.randn(4, 3, 5, 5).contiguous(memory_format=last),
        torch.randn(4, 3, 1, 1).contiguous(memory_format=last),
        torch.randn(4, 1, 3, 3).contiguous(memory_format=last),
        torch.randn(3, 4).t(),
        torch.empty(0, 3, 2, 2).contiguous(memory_format=last),
    ):
        assert round_trip(tensor).stride() == tensor.stride()


def test_loaded_arrays_can_be_written_to() -> None:
    array = round_trip({"a": np.arange(3)})["a"]
    array += 1
    assert array.tolist() == [1, 2, 3]


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
        assert same(owner.state_dict(), round_trip(owner.state_dict()))


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
        torch.zeros(2, dtype=torch.complex64),
        torch.zeros(2, device="meta"),
        torch.zeros(2, 2).to_sparse(),
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
tags = ["$int", "$float", "$bytes", "$tuple", "$dict", "$tensor", "$array", "$scalar", "$what"]
fields = ["dtype", "shape", "order", "base", "fields", "offsets", "itemsize", "plain"]
hostile = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.sampled_from(texts),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(tags + fields), inner, max_size=4)
    ),
    max_leaves=10,
)


@settings(deadline=None, max_examples=80)
@given(tree=hostile, dtype=hostile, shape=hostile, order=hostile)
@example(tree=None, dtype="|O", shape=[1], order=[0, 0])
@example(
    tree=None, dtype={"fields": [["a", "|O"]], "offsets": [0], "itemsize": 8}, shape=[1], order={}
)
@example(tree=None, dtype={"base": "|O8", "shape": [1]}, shape=[1], order="ab")
@example(tree=None, dtype="|b1", shape=[8], order=[True, False])
@example(tree=None, dtype="<i8", shape=[-1, -1], order=[1.0, 0.0])
@example(tree=None, dtype="|V0", shape=[10**30], order=None)
@example(tree={"$dict": [[[], 1]]}, dtype="", shape=[], order=None)
@example(tree={"$int": "x" * 5000}, dtype="", shape=[], order=None)
@example(tree={"$float": "00"}, dtype="", shape=[], order=None)
@example(tree={"$what": 1}, dtype="", shape=[], order=None)
@example(tree={"$bytes": "?"}, dtype="", shape=[], order=None)
def test_hostile_json_is_refused_or_harmless(
    tree: object, dtype: object, shape: object, order: object
) -> None:
    array = {"$array": "bytes", "dtype": dtype, "shape": shape}
    for each in (tree, array, {"$tensor": "floats", "order": order}):
        tensors = {"bytes": torch.full((8,), 2, dtype=torch.uint8), "floats": torch.zeros(1, 2)}
        try:
            value = unflatten(each, tensors)
        except ValueError:
            continue
        if isinstance(value, np.ndarray):
            assert not value.dtype.hasobject


def test_a_tensor_cannot_be_used_twice() -> None:
    tensors = safetensors.torch.load(safetensors.torch.save({"a": torch.zeros(3)}))
    with pytest.raises(ValueError, match=r"malformed \$tensor"):
        unflatten([{"$tensor": "a"}, {"$tensor": "a"}], tensors)

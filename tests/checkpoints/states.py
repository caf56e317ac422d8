"""States of all kinds for tests of checkpoints: random ones, and when two are the same."""

import struct
from collections.abc import Mapping
from typing import Any

import numpy as np
import numpy.typing as npt
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

WEIGHT_DTYPES = ("f8", "f4", "f2", "i8", "i4", "i2", "i1", "u8", "u4", "u2", "u1", "?")


def same(first: Any, second: Any) -> bool:
    """Whether two values are equal in type, shape and every bit; any mapping equals a dict."""
    if isinstance(first, Mapping):
        return (
            type(second) is dict
            and [(type(key), key) for key in first] == [(type(key), key) for key in second]
            and all(same(first[key], second[key]) for key in first)
        )
    if type(first) is not type(second):
        return False
    if isinstance(first, list | tuple):
        return len(first) == len(second) and all(map(same, first, second))
    if isinstance(first, np.ndarray | np.generic):
        return same_arrays(np.asarray(first), np.asarray(second))
    if type(first) is float:
        return struct.pack("d", first) == struct.pack("d", second)
    return bool(first == second)


def same_arrays(first: npt.NDArray[Any], second: npt.NDArray[Any]) -> bool:
    """The bytes between the fields of a structured dtype don't matter."""
    if first.dtype != second.dtype or first.shape != second.shape:
        return False
    if first.dtype.names is not None:
        return all(same_arrays(first[name], second[name]) for name in first.dtype.names)
    return first.tobytes() == second.tobytes()


@st.composite
def weight_arrays(draw: st.DrawFn) -> npt.NDArray[Any]:
    """Any bits, any shape up to 4 dimensions, 0-d and empty too; with gaps and permuted."""
    dtype = np.dtype(draw(st.sampled_from(WEIGHT_DTYPES)))
    shape = draw(hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=3))
    array: npt.NDArray[Any]
    if dtype == np.bool_:
        array = draw(hnp.arrays(np.bool_, shape))
    else:
        array = draw(hnp.arrays(f"u{dtype.itemsize}", shape)).view(dtype)
    match draw(st.integers(0, 4)):
        case 0 if shape:
            return array[::2]
        case 1:
            return array.transpose(draw(st.permutations(range(len(shape)))))
        case 2:
            return np.asfortranarray(array) if shape else array
        case 3:
            return np.broadcast_to(array, (2, *shape))
    return array


plain_dtypes = st.one_of(
    hnp.boolean_dtypes(),
    hnp.integer_dtypes(endianness="?"),
    hnp.unsigned_integer_dtypes(endianness="?"),
    hnp.floating_dtypes(endianness="?"),
    hnp.byte_string_dtypes(),
    hnp.unicode_string_dtypes(),
)


@st.composite
def structured_dtypes(draw: st.DrawFn) -> np.dtype[Any]:
    """Records of numbers, texts, small arrays and other records, with and without padding."""
    fields: list[Any] = []
    for name in draw(st.lists(st.text("abcß駒", min_size=1), min_size=1, max_size=4, unique=True)):
        dtype = draw(plain_dtypes if draw(st.booleans()) else structured_dtypes())
        fields.append((name, dtype, draw(st.sampled_from([(), (2,), (1, 3)]))))
    return np.dtype(fields, align=draw(st.booleans()))


dtypes = plain_dtypes | structured_dtypes()
arrays = hnp.arrays(dtypes, hnp.array_shapes(min_dims=0, min_side=0, max_dims=3, max_side=3))


@st.composite
def numpy_scalars(draw: st.DrawFn) -> Any:
    array = draw(hnp.arrays(plain_dtypes, (1,)))
    return array.dtype.type(array[0])


integers = st.integers() | st.integers(-(2**200), 2**200)
floats = st.floats() | st.just(struct.unpack(">d", bytes.fromhex("fff8000000000abc"))[0])
texts = st.text(st.characters(exclude_categories=())) | st.sampled_from(["$int", "a/b", "1"])
leaves = st.one_of(
    weight_arrays(),
    arrays,
    numpy_scalars(),
    integers,
    floats,
    st.booleans(),
    texts,
    st.none(),
    st.binary(),
)
keys = texts | st.integers(-3, 3) | st.integers()
values = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.lists(inner, max_size=4),
        st.lists(inner, max_size=4).map(tuple),
        st.dictionaries(keys, inner, max_size=4),
    ),
    max_leaves=12,
)
weights = st.dictionaries(texts, weight_arrays(), max_size=3)
states = st.builds(
    lambda rest, own: {**rest, **own},
    st.dictionaries(texts.filter(lambda key: key not in ("model", "ema")), values, max_size=5),
    st.fixed_dictionaries({"model": weights}, optional={"ema": weights}),
)

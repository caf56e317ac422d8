"""Conversion of nested state to JSON and named arrays, and back: exact, and without pickle.

`flatten` turns a value into JSON that refers to arrays by name; the arrays go into a flat
dictionary, ready for a safetensors file. `unflatten` is the inverse. Values come back bit by bit
and type by type, except for three things: that arrays shared memory, their memory order, and the
kind of a mapping (dictionaries come back).

Plain JSON stands for itself. Everything else is an object with a tag:

================  ======================================================================
``$int``          an integer beyond 53 bits, in hexadecimal
``$float``        an infinity or NaN: its 8 bytes in hexadecimal, big-endian
``$bytes``        in base64
``$tuple``        its items
``$dict``         ``[key, value]`` pairs: keys that are integers or begin with ``$``
``$array``        name in the file; of dtypes that safetensors does not know: name of the bytes,
                  ``dtype``, ``shape``
``$scalar``       the same for a NumPy scalar
================  ======================================================================
"""

import base64
import math
import re
import struct
from collections.abc import Mapping, Sequence
from typing import Any, Final

import numpy as np
import numpy.typing as npt

State = Mapping[str, Any]
"""Nested mappings, lists and tuples of arrays and scalars, with keys of type str or int."""

KeyPath = tuple[str | int, ...]
"""Keys and indices that lead to a value."""

TENSOR_DTYPES: Final = frozenset(
    np.dtype(kind).str
    for kind in ("f8", "f4", "f2", "i8", "i4", "i2", "i1", "u8", "u4", "u2", "u1", "?")
)
"""Dtypes that every safetensors reader knows, in the byte order of this machine."""

PLAIN_DTYPE: Final = re.compile(r"[<>|][biufSUV]\d+")
"""Dtypes of numbers and text only; above all not ``O``, Python objects."""

MAX_PLAIN_INT: Final = 2**53
"""Largest integer that every JSON reader reads exactly."""

RESERVED_NAME: Final = "__metadata__"
"""Name that safetensors does not allow for a tensor."""


def flatten(value: object, tensors: dict[str, npt.NDArray[Any]], path: KeyPath = ()) -> Any:
    """Convert a value to JSON; its arrays are added to `tensors`, named by their path.

    Raises:
        TypeError: Something in the value cannot be stored; the message says where it is.
    """
    kind = type(value)
    if value is None or kind in (bool, str):
        return value
    if type(value) is int:
        return value if abs(value) <= MAX_PLAIN_INT else {"$int": hex(value)}
    if type(value) is float:
        return value if math.isfinite(value) else {"$float": struct.pack(">d", value).hex()}
    if type(value) is bytes:
        return {"$bytes": base64.b64encode(value).decode("ascii")}
    if type(value) is list:
        return [flatten(item, tensors, (*path, i)) for i, item in enumerate(value)]
    if type(value) is tuple:
        return {"$tuple": [flatten(item, tensors, (*path, i)) for i, item in enumerate(value)]}
    if isinstance(value, Mapping):
        return _flatten_mapping(value, tensors, path)
    if isinstance(value, np.generic) or kind is np.ndarray:
        return _flatten_array(np.asarray(value), kind is np.ndarray, tensors, path)
    raise TypeError(f"{_where(path)}: a {kind.__qualname__} cannot be stored in a checkpoint")


def unflatten(tree: object, tensors: dict[str, npt.NDArray[Any]]) -> Any:
    """Restore the value that `flatten` converted; removes its arrays from `tensors`.

    Hostile JSON cannot run code. Since each array can be used only once, a small file cannot demand
    a lot of memory either.

    Raises:
        ValueError: The JSON was not made by `flatten`, or does not belong to these arrays.
    """
    if isinstance(tree, list):
        return [unflatten(item, tensors) for item in tree]
    if not isinstance(tree, dict):
        return tree
    tag = next((key for key in tree if key.startswith("$")), None)
    if tag is None:
        return {key: unflatten(item, tensors) for key, item in tree.items()}
    try:
        return _untag(tag, tree, tensors)
    except (KeyError, TypeError, OverflowError) as error:
        raise ValueError(f"a malformed {tag}: {type(error).__name__}: {error}") from error


def check_bools(array: npt.NDArray[Any]) -> None:
    """Raise `ValueError` for booleans other than 0 and 1, which compiled code cannot handle."""
    if array.dtype.names is not None:
        for name in array.dtype.names:
            check_bools(array[name])
    elif array.dtype.kind == "b" and (array.view(np.uint8) > 1).any():
        raise ValueError("a boolean that is neither 0 nor 1")


def is_plain_array(value: object) -> bool:
    """Return whether `value` is an array that a safetensors file holds as it is."""
    return isinstance(value, np.ndarray) and value.dtype.str in TENSOR_DTYPES


def _where(path: KeyPath) -> str:
    return "/".join(map(str, path)) or "the state"


def _flatten_mapping(
    mapping: Mapping[Any, object], tensors: dict[str, npt.NDArray[Any]], path: KeyPath
) -> dict[str, Any]:
    for key in mapping:
        if type(key) not in (str, int):
            raise TypeError(f"{_where(path)}: keys must be str or int, not {key!r}")
    items = {key: flatten(item, tensors, (*path, key)) for key, item in mapping.items()}
    if all(isinstance(key, str) and not key.startswith("$") for key in items):
        return items
    pairs = [[flatten(key, tensors, path), item] for key, item in items.items()]
    return {"$dict": pairs}


def _flatten_array(
    array: npt.NDArray[Any], is_array: bool, tensors: dict[str, npt.NDArray[Any]], path: KeyPath
) -> dict[str, Any]:
    try:
        dtype = _dtype_to_json(array.dtype)
        known = _dtype_from_json(dtype) == array.dtype
    except (TypeError, ValueError):
        known = False
    if not known:
        raise TypeError(f"{_where(path)}: an array of {array.dtype} cannot be stored")
    tag = "$array" if is_array else "$scalar"
    if is_plain_array(array):
        return {tag: _add(array, tensors, path)}
    name = _add(np.frombuffer(_without_padding(array).tobytes(), np.uint8), tensors, path)
    return {tag: name, "dtype": dtype, "shape": list(array.shape)}


def _without_padding(array: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return a copy whose bytes between fields are zero.

    They are uninitialized memory: equal states would have different bytes, and a file that is
    passed on would hold whatever was there before.
    """
    clean = np.zeros(array.shape, array.dtype)
    _copy_fields(array, clean)
    return clean


def _copy_fields(source: npt.NDArray[Any], target: npt.NDArray[Any]) -> None:
    if source.dtype.names is None:
        target[...] = source
    else:
        for name in source.dtype.names:
            _copy_fields(source[name], target[name])


def _add(array: npt.NDArray[Any], tensors: dict[str, npt.NDArray[Any]], path: KeyPath) -> str:
    """Add an array under a name that no other has; return the name."""
    readable = "/".join(map(str, path)).encode("utf-8", "backslashreplace").decode("utf-8")
    name, number = readable, 1
    while name in tensors or name == RESERVED_NAME:  # keys may contain slashes, 1 may be "1"
        number += 1
        name = f"{readable}~{number}"
    tensors[name] = array
    return name


def _untag(tag: str, tree: Mapping[str, Any], tensors: dict[str, npt.NDArray[Any]]) -> Any:
    content = tree[tag]
    match tag:
        case "$int":
            return int(content, 16)
        case "$float":
            try:
                return struct.unpack(">d", bytes.fromhex(content))[0]
            except struct.error as error:
                raise ValueError(f"{content!r} is not the hexadecimal of 8 bytes") from error
        case "$bytes":
            return base64.b64decode(content, validate=True)
        case "$tuple":
            return tuple(unflatten(item, tensors) for item in content)
        case "$dict":
            return {unflatten(key, tensors): unflatten(item, tensors) for key, item in content}
        case "$array" | "$scalar":
            array = tensors.pop(content)
            if "dtype" in tree:
                array = _unflatten_array(array, tree["dtype"], tree["shape"])
            return array if tag == "$array" else array[()]
    raise ValueError(f"an unknown tag {tag}")


def _unflatten_array(
    contents: npt.NDArray[Any], dtype_json: object, shape: Sequence[int]
) -> npt.NDArray[Any]:
    dtype = _dtype_from_json(dtype_json)
    size = math.prod(shape) * dtype.itemsize
    if contents.dtype != np.uint8 or contents.ndim != 1 or contents.size != size:
        raise ValueError(f"the bytes of an array are not those of {dtype} of shape {shape}")
    array: npt.NDArray[Any] = np.ndarray(tuple(shape), dtype, contents).copy()
    check_bools(array)
    return array


def _dtype_to_json(dtype: np.dtype[Any]) -> Any:
    if dtype.subdtype is not None:
        base, shape = dtype.subdtype
        return {"base": _dtype_to_json(base), "shape": list(shape)}
    if dtype.fields is None:
        return dtype.str
    names = dtype.names or ()
    fields = [[name, _dtype_to_json(dtype.fields[name][0])] for name in names]
    offsets = [dtype.fields[name][1] for name in names]
    return {"fields": fields, "offsets": offsets, "itemsize": dtype.itemsize}


def _dtype_from_json(tree: Any) -> np.dtype[Any]:
    if isinstance(tree, str):
        if not PLAIN_DTYPE.fullmatch(tree):
            raise ValueError(f"dtype {tree!r} is not one of plain numbers or text")
        return np.dtype(tree)
    if "base" in tree:
        return np.dtype((_dtype_from_json(tree["base"]), tuple(tree["shape"])))
    return np.dtype(
        {
            "names": [name for name, _ in tree["fields"]],
            "formats": [_dtype_from_json(field) for _, field in tree["fields"]],
            "offsets": tree["offsets"],
            "itemsize": tree["itemsize"],
        }
    )

"""Weights on their way from the learner to those who play.

On one machine they go through a weights_buffer of shared memory, as they are. Transports that copy (Ray,
files) carry a message for each tensor, ``{data, shape, dtype, compressed}``, if wanted compressed.
"""

import gzip
from collections.abc import Mapping
from multiprocessing.shared_memory import SharedMemory
from typing import Any, Final, NamedTuple, Self, TypedDict

import numpy as np
import numpy.typing as npt

from keisei.errors import KeiseiError
from keisei.network.predictor import Weights
from keisei.selfplay.workers.shared_memory import attach_block, create_block, release_block

GZIP_LEVEL: Final = 1
"""Weights are nearly random bits: higher levels take many times as long for a per cent."""

BFLOAT16: Final = "bfloat16"
_BUFFERS: Final = 2
_HEADER: Final = 64
_ALIGNMENT: Final = 64
_WRITING: Final = -1


class TensorMessage(TypedDict):
    """A tensor as transports carry it."""

    data: bytes
    shape: list[int]
    dtype: str
    compressed: bool


def pack_tensor(array: npt.NDArray[Any], *, compress: bool, half: bool = False) -> TensorMessage:
    """Pack an array into a message.

    Args:
        array: of numbers, in any memory order.
        compress: by gzip.
        half: whether float32 is rounded to bfloat16, which halves its size.
    """
    dtype = array.dtype.name
    if half and array.dtype == np.float32:
        array, dtype = _bfloat16_bits(array), BFLOAT16
    data = array.tobytes()
    return {
        "data": gzip.compress(data, GZIP_LEVEL) if compress else data,
        "shape": list(array.shape),
        "dtype": dtype,
        "compressed": compress,
    }


def unpack_tensor(message: TensorMessage) -> npt.NDArray[Any]:
    """The array of a message; bfloat16 comes back as float32."""
    try:
        data = gzip.decompress(message["data"]) if message["compressed"] else message["data"]
        is_half = message["dtype"] == BFLOAT16
        dtype = np.dtype(np.uint16 if is_half else message["dtype"])
        array = np.frombuffer(bytearray(data), dtype).reshape(message["shape"])
    except (KeyError, TypeError, ValueError, OSError) as error:
        raise KeiseiError(f"a message that holds no tensor: {error}") from error
    return (array.astype(np.uint32) << 16).view(np.float32) if is_half else array


def _bfloat16_bits(array: npt.NDArray[np.float32]) -> npt.NDArray[np.uint16]:
    """The upper halves of float32 numbers, rounded to nearest even as torch does."""
    bits = np.ascontiguousarray(array).view(np.uint32)
    rounded = (bits + (0x7FFF + ((bits >> 16) & 1))) >> 16
    return np.where(np.isnan(array), 0x7FC0, rounded).astype(np.uint16)


def pack_weights(
    weights: Weights, *, compress: bool, half: bool = False
) -> dict[str, TensorMessage]:
    """Pack the weights of a network into messages, by name."""
    return {
        name: pack_tensor(array, compress=compress, half=half) for name, array in weights.items()
    }


def unpack_weights(messages: Mapping[str, TensorMessage]) -> dict[str, npt.NDArray[Any]]:
    """The weights of some messages."""
    return {name: unpack_tensor(message) for name, message in messages.items()}


class _Place(NamedTuple):
    """Where a tensor lies in a buffer of the weights_buffer."""

    name: str
    offset: int
    shape: tuple[int, ...]
    dtype: np.dtype[Any]


class ModelSynchronizer:
    """A weights_buffer of shared memory with the newest weights and their version.

    There are two buffers, so that nobody reads what is being written. A reader who was so slow that
    its buffer is written again notices, and takes the newer weights.
    """

    def __init__(self, weights: Weights, block: SharedMemory | None = None) -> None:
        """Make buffers for such weights, or with a `block` attach those of the parent process."""
        self._places, size = _layout(weights)
        self._buffer_size = size
        self._is_owner = block is None
        self._block = create_block(_HEADER + _BUFFERS * size) if block is None else block
        self._versions = np.ndarray((_BUFFERS,), np.int64, self._block.buf)
        if self._is_owner:
            self._versions[:] = _WRITING

    @classmethod
    def attach(cls, weights: Weights, name: str) -> Self:
        """The weights_buffer of the parent process, by its name."""
        return cls(weights, attach_block(name))

    @property
    def name(self) -> str:
        """By which another process attaches it."""
        return self._block.name

    def publish(self, weights: Weights, version: int) -> None:
        """Write the weights of a network, which are `version`."""
        which = version % _BUFFERS
        self._versions[which] = _WRITING
        for place in self._places:
            self._view(place, which)[...] = weights[place.name]
        self._versions[which] = version

    def read(self, version: int) -> dict[str, npt.NDArray[Any]] | None:
        """A copy of the weights of `version`; None if others have taken their place."""
        which = version % _BUFFERS
        if self._versions[which] != version:
            return None
        copy = {place.name: self._view(place, which).copy() for place in self._places}
        return copy if self._versions[which] == version else None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the weights_buffer; who made it removes it."""
        self._versions = np.zeros(_BUFFERS, dtype=np.int64)
        release_block(self._block, is_owner=self._is_owner)

    def _view(self, place: _Place, which: int) -> npt.NDArray[Any]:
        offset = _HEADER + which * self._buffer_size + place.offset
        return np.ndarray(place.shape, place.dtype, self._block.buf, offset)


def _layout(weights: Weights) -> tuple[list[_Place], int]:
    places, offset = [], 0
    for name, array in weights.items():
        places.append(_Place(name, offset, array.shape, array.dtype))
        offset += -(-array.nbytes // _ALIGNMENT) * _ALIGNMENT
    return places, offset

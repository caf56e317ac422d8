"""Weights on their way from the learner to its workers.

On one machine they go uncompressed through a weights buffer in shared memory (`ModelSynchronizer`).
Transports that copy, such as Ray, carry one message for each array, ``{data, shape, dtype,
compressed}``, compressed on request (`pack_weights`).
"""

import gzip
from collections.abc import Mapping
from typing import Any, Final, Self, TypedDict

import numpy as np
import numpy.typing as npt

from keisei.errors import KeiseiError
from keisei.network.predictor import Weights
from keisei.ppo.buffer import ALIGNMENT, ArrayLayout
from keisei.shared_memory import SharedBlock

GZIP_LEVEL: Final = 1
"""Weights are nearly random bits: higher levels take many times as long to save one per cent."""

BFLOAT16: Final = "bfloat16"
_BUFFERS: Final = 2
_WRITING: Final = -1
"""Version of a buffer that is being written, or was never written."""


class TensorMessage(TypedDict):
    """An array as transports carry it."""

    data: bytes
    shape: list[int]
    dtype: str
    compressed: bool


def pack_tensor(array: npt.NDArray[Any], *, compress: bool, half: bool = False) -> TensorMessage:
    """Pack an array into a message.

    Args:
        array: numbers, in any memory order.
        compress: whether to compress by gzip.
        half: whether to round float32 to bfloat16, which halves the size.
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
    """Return the array of a message; bfloat16 becomes float32.

    Raises:
        KeiseiError: The message is malformed.
    """
    try:
        data = gzip.decompress(message["data"]) if message["compressed"] else message["data"]
        is_half = message["dtype"] == BFLOAT16
        dtype = np.dtype(np.uint16 if is_half else message["dtype"])
        array = np.frombuffer(bytearray(data), dtype).reshape(message["shape"])
    except (KeyError, TypeError, ValueError, OSError) as error:
        raise KeiseiError(f"malformed weights message: {error}") from error
    return (array.astype(np.uint32) << 16).view(np.float32) if is_half else array


def _bfloat16_bits(array: npt.NDArray[np.float32]) -> npt.NDArray[np.uint16]:
    """Upper halves of float32 numbers, rounded to nearest even as torch does."""
    bits = np.ascontiguousarray(array).view(np.uint32)
    rounded = (bits + (0x7FFF + ((bits >> 16) & 1))) >> 16
    return np.where(np.isnan(array), 0x7FC0, rounded).astype(np.uint16)


def pack_weights(
    weights: Weights, *, compress: bool, half: bool = False
) -> dict[str, TensorMessage]:
    """Pack the weights of a network into messages by name; see `pack_tensor`."""
    return {
        name: pack_tensor(array, compress=compress, half=half) for name, array in weights.items()
    }


def unpack_weights(messages: Mapping[str, TensorMessage]) -> dict[str, npt.NDArray[Any]]:
    """Return the weights that `pack_weights` packed."""
    return {name: unpack_tensor(message) for name, message in messages.items()}


class ModelSynchronizer:
    """A weights buffer in shared memory: the newest weights and their version.

    It is a double buffer: new weights never overwrite the newest. A reader so slow that its buffer
    is being rewritten notices it, and reads the newer weights instead.
    """

    def __init__(self, weights: Weights, block: SharedBlock | None = None) -> None:
        """Create buffers for such weights, or with a `block` attach those of the parent process."""
        layout = ArrayLayout({name: (array.dtype, array.shape) for name, array in weights.items()})
        self._block = block or SharedBlock.create(ALIGNMENT + _BUFFERS * layout.size)
        self._versions = np.ndarray((_BUFFERS,), np.int64, self._block.memory)
        self._buffers = [
            layout.views(self._block.memory, ALIGNMENT + which * layout.size)
            for which in range(_BUFFERS)
        ]
        if block is None:
            self._versions[:] = _WRITING

    @classmethod
    def attach(cls, weights: Weights, name: str) -> Self:
        """Attach the weights buffer of the parent process by its name."""
        return cls(weights, SharedBlock.attach(name))

    @property
    def name(self) -> str:
        """Name by which another process attaches the buffer."""
        return self._block.name

    def publish(self, weights: Weights, version: int) -> None:
        """Write weights as `version`, over those of two versions before."""
        which = version % _BUFFERS
        self._versions[which] = _WRITING
        for name, array in self._buffers[which].items():
            array[...] = weights[name]
        self._versions[which] = version

    def read(self, version: int) -> dict[str, npt.NDArray[Any]] | None:
        """Return a copy of the weights of `version`; None if they have been overwritten."""
        which = version % _BUFFERS
        if self._versions[which] != version:
            return None
        copy = {name: array.copy() for name, array in self._buffers[which].items()}
        return copy if self._versions[which] == version else None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Release the memory; the process that created it removes it."""
        self._versions = np.full(_BUFFERS, _WRITING, dtype=np.int64)
        self._buffers.clear()
        self._block.close()

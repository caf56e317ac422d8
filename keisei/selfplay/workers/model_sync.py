"""Weights on their way from the learner to those who play.

On one machine they go through a slab of shared memory, as they are. Transports that copy (Ray,
files) carry a message for each tensor, ``{data, shape, dtype, compressed}``, if wanted compressed.
"""

import gzip
import math
from collections.abc import Mapping
from multiprocessing.shared_memory import SharedMemory
from typing import Any, Final, NamedTuple, Self, TypedDict

import numpy as np
import torch
from torch import Tensor, nn

from keisei.errors import KeiseiError
from keisei.selfplay.workers.shared_memory import attach_block, create_block, release_block

GZIP_LEVEL: Final = 1
"""Weights are nearly random bits: higher levels take many times as long for a per cent."""

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


def pack_tensor(tensor: Tensor, *, compress: bool, half: bool = False) -> TensorMessage:
    """A tensor as a message.

    Args:
        tensor: on any device.
        compress: by gzip.
        half: whether float32 is sent as bfloat16, which halves it and rounds it.
    """
    tensor = tensor.detach().cpu().contiguous()
    if half and tensor.dtype is torch.float32:
        tensor = tensor.bfloat16()
    data = tensor.reshape(-1).view(torch.uint8).numpy().tobytes()
    return {
        "data": gzip.compress(data, GZIP_LEVEL) if compress else data,
        "shape": list(tensor.shape),
        "dtype": str(tensor.dtype).removeprefix("torch."),
        "compressed": compress,
    }


def unpack_tensor(message: TensorMessage) -> Tensor:
    """The tensor of a message, on the CPU."""
    try:
        data = gzip.decompress(message["data"]) if message["compressed"] else message["data"]
        dtype = getattr(torch, message["dtype"])
        flat = torch.from_numpy(np.frombuffer(bytearray(data), dtype=np.uint8))
        return flat.view(dtype).reshape(message["shape"])
    except (KeyError, TypeError, AttributeError, ValueError, RuntimeError, OSError) as error:
        raise KeiseiError(f"a message that holds no tensor: {error}") from error


def pack_weights(
    weights: Mapping[str, Tensor], *, compress: bool, half: bool = False
) -> dict[str, TensorMessage]:
    """The weights of a network as messages, by name."""
    return {
        name: pack_tensor(tensor, compress=compress, half=half) for name, tensor in weights.items()
    }


def unpack_weights(messages: Mapping[str, TensorMessage]) -> dict[str, Tensor]:
    """The weights of some messages."""
    return {name: unpack_tensor(message) for name, message in messages.items()}


class _Place(NamedTuple):
    """Where a tensor lies in a buffer of the slab."""

    name: str
    offset: int
    shape: tuple[int, ...]
    dtype: torch.dtype


class ModelSynchronizer:
    """A slab of shared memory with the newest weights and their version.

    There are two buffers, so that nobody reads what is being written. A reader who was so slow that
    its buffer is written again notices, and takes the newer weights.
    """

    def __init__(self, model: nn.Module, block: SharedMemory | None = None) -> None:
        """Make the slab, or with a `block` look at the one of the parent process."""
        self._places, size = _layout(model)
        self._buffer_size = size
        self._is_owner = block is None
        self._block = create_block(_HEADER + _BUFFERS * size) if block is None else block
        self._versions = np.ndarray((_BUFFERS,), np.int64, self._block.buf)
        if self._is_owner:
            self._versions[:] = _WRITING

    @classmethod
    def attach(cls, model: nn.Module, name: str) -> Self:
        """The slab of the parent process, by its name."""
        return cls(model, attach_block(name))

    @property
    def name(self) -> str:
        """By which another process attaches it."""
        return self._block.name

    def publish(self, model: nn.Module, version: int) -> None:
        """Write the weights of a network, which are `version`."""
        which = version % _BUFFERS
        self._versions[which] = _WRITING
        state = model.state_dict()
        for place in self._places:
            self._view(place, which).copy_(state[place.name])
        self._versions[which] = version

    def read(self, version: int) -> dict[str, Tensor] | None:
        """A copy of the weights of `version`; None if others have taken their place."""
        which = version % _BUFFERS
        if self._versions[which] != version:
            return None
        copy = {place.name: self._view(place, which).clone() for place in self._places}
        return copy if self._versions[which] == version else None

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of the slab; who made it removes it."""
        self._versions = np.zeros(_BUFFERS, dtype=np.int64)
        release_block(self._block, is_owner=self._is_owner)

    def _view(self, place: _Place, which: int) -> Tensor:
        offset = _HEADER + which * self._buffer_size + place.offset
        count = math.prod(place.shape)
        if count == 0:
            return torch.empty(place.shape, dtype=place.dtype)
        flat: Any = torch.frombuffer(self._block.buf, dtype=place.dtype, count=count, offset=offset)
        return flat.view(place.shape)  # type: ignore[no-any-return]


def _layout(model: nn.Module) -> tuple[list[_Place], int]:
    places, offset = [], 0
    for name, tensor in model.state_dict().items():
        places.append(_Place(name, offset, tuple(tensor.shape), tensor.dtype))
        size = tensor.numel() * tensor.element_size()
        offset += -(-size // _ALIGNMENT) * _ALIGNMENT
    return places, offset

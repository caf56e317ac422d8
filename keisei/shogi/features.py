"""Observation planes by name: ``core46``, ``core46+check``, ... ``core46+all``.

Planes are made from packed positions, so they are always the mover's view. Each feature is one
registered function that writes its planes for a whole batch; a `FeatureSpec` is a list of them.

>>> feature_spec("core46+check").shape
(47, 9, 9)
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any, Final, TypeVar

import numpy as np
import numpy.typing as npt

from keisei.constants import BOARD_SIZE, HAND_LIMITS, NUM_HAND_KINDS, NUM_SQUARES
from keisei.errors import KeiseiError
from keisei.shogi import plane_kernels
from keisei.shogi.packed import require_sound
from keisei.shogi.pieces import SYMBOLS
from keisei.shogi.position import Records

Planes = npt.NDArray[Any]
"""``[B, planes, 9, 9]``, float32, uint8 (255 = 1.0) or uint16 (the bits of a bfloat16)."""

PlaneWriter = Callable[[Records, npt.NDArray[np.float32], int], None]
"""``write(packed[B], planes[B, C, 81], first)`` fills planes `first`, `first` + 1 ... from zero."""

Writer = TypeVar("Writer", bound=PlaneWriter)


class UnknownFeatureError(KeiseiError, ValueError):
    """A feature set that does not exist; the message lists those that do."""


@dataclass(frozen=True)
class Feature:
    """A named group of planes and the function that writes them."""

    name: str
    planes: tuple[str, ...]
    """What each plane is called: unique within a spec, the same in every spec."""

    write: PlaneWriter
    is_base: bool
    """Whether it stands first in a spec's name, like ``core46``."""


@dataclass(frozen=True)
class FeatureSpec:
    """What a network sees: an ordered list of features, and from it names, shape and encoder."""

    features: tuple[Feature, ...]

    @property
    def name(self) -> str:
        """The canonical name: base first, options in the order of their registration."""
        return "+".join(feature.name for feature in self.features)

    @property
    def plane_names(self) -> tuple[str, ...]:
        """The name of each plane, in order."""
        return tuple(plane for feature in self.features for plane in feature.planes)

    @property
    def num_planes(self) -> int:
        """How many planes there are."""
        return sum(len(feature.planes) for feature in self.features)

    @property
    def shape(self) -> tuple[int, int, int]:
        """Shape of one observation: (planes, 9, 9)."""
        return (self.num_planes, BOARD_SIZE, BOARD_SIZE)

    def encode(
        self, packed: Records, out: Planes | None = None, *, dtype: npt.DTypeLike = np.float32
    ) -> Planes:
        """Write the planes of ``packed[B]`` into ``out[B, planes, 9, 9]`` and return it.

        Without `out` a new array of `dtype` is made. float32 holds the values as they are, uint8
        holds them times 255, uint16 holds the bits of their bfloat16 (view it as such in torch).
        """
        if out is None:
            out = np.empty((len(packed), *self.shape), dtype=dtype)
        if out.shape != (len(packed), *self.shape) or not out.flags.c_contiguous:
            raise ValueError(
                f"{self.name} of {len(packed)} positions needs a contiguous buffer of shape "
                f"{(len(packed), *self.shape)}, got {out.shape}"
            )
        if out.dtype not in _ELEMENT_TYPES:
            raise ValueError(
                f"planes are float32, uint8 or uint16 (bfloat16 bits), not {out.dtype}"
            )
        require_sound(packed)
        is_float32 = out.dtype == np.float32
        buffer = None if is_float32 else np.empty((_CHUNK, *self.shape), dtype=np.float32)
        for start in range(0, len(packed), _CHUNK):
            chunk = out[start : start + _CHUNK]
            planes = chunk if buffer is None else buffer[: len(chunk)]
            self._write(packed[start : start + _CHUNK], planes)
            if out.dtype == np.uint8:
                plane_kernels.to_uint8(planes.reshape(-1), chunk.reshape(-1))
            elif out.dtype == np.uint16:
                bits = planes.reshape(-1).view(np.uint32)
                plane_kernels.to_bfloat16_bits(bits, chunk.reshape(-1))
        return out

    def _write(self, packed: Records, planes: npt.NDArray[np.float32]) -> None:
        planes = planes.reshape(len(packed), self.num_planes, NUM_SQUARES)
        planes[...] = 0
        first = 0
        for feature in self.features:
            feature.write(packed, planes, first)
            first += len(feature.planes)


_CHUNK: Final = 64
"""Positions zeroed and written at a time: their planes stay in the processor's cache."""

_ELEMENT_TYPES: Final = (np.dtype(np.float32), np.dtype(np.uint8), np.dtype(np.uint16))
_ALL: Final = "all"
_registry: dict[str, Feature] = {}


def register_feature(
    name: str, planes: Sequence[str], *, is_base: bool = False
) -> Callable[[Writer], Writer]:
    """Register the function below as the writer of a feature called `name`.

    >>> @register_feature("white_to_move", ["mover is White"])
    ... def write_white_to_move(packed, planes, first):
    ...     planes[:, first] = packed.turn[:, None]
    >>> feature_spec("core46+white_to_move").num_planes
    47
    """

    def register(write: Writer) -> Writer:
        if not name.isidentifier() or name == _ALL or name in _registry:
            raise ValueError(f"{name!r} is not free as the name of a feature")
        _registry[name] = Feature(name, tuple(planes), write, is_base)
        feature_spec.cache_clear()
        return write

    return register


def registered_features() -> tuple[Feature, ...]:
    """All features, in the order in which they stand in a spec."""
    return tuple(_registry.values())


@cache
def feature_spec(name: str) -> FeatureSpec:
    """The spec of a name such as ``core46``, ``core46+check+last2ply`` or ``core46+all``.

    The order of the options does not matter. ``all`` stands for the options of Keisei itself, so
    that a plug-in does not change what a stored name means.
    """
    base, *options = name.split("+")
    if base not in _registry or not _registry[base].is_base:
        bases = ", ".join(feature.name for feature in _registry.values() if feature.is_base)
        raise UnknownFeatureError(f"feature set {name!r}: it starts with one of {bases}")
    if _ALL in options:
        if len(options) > 1:
            raise UnknownFeatureError(f"feature set {name!r}: 'all' includes the other options")
        options = list(BUILT_IN_OPTIONS)
    known = [feature.name for feature in _registry.values() if not feature.is_base]
    for option in options:
        if option not in known:
            raise UnknownFeatureError(
                f"feature set {name!r}: there is no option {option!r}; "
                f"there are {', '.join(known)} and all"
            )
        if options.count(option) > 1:
            raise UnknownFeatureError(f"feature set {name!r}: {option!r} is there twice")
    chosen = [_registry[option] for option in known if option in options]
    return FeatureSpec((_registry[base], *chosen))


def _core46_planes() -> list[str]:
    hand = SYMBOLS[:NUM_HAND_KINDS]
    return [
        *(f"own {symbol}" for symbol in SYMBOLS),
        *(f"opponent {symbol}" for symbol in SYMBOLS),
        *(f"own hand {symbol}" for symbol in hand),
        *(f"opponent hand {symbol}" for symbol in hand),
        "mover is Black",
        "ply",
        "reserved 44",
        "reserved 45",
    ]


def _hand_onehot_planes() -> list[str]:
    return [
        f"{side} hand {symbol} >= {count}"
        for side in ("own", "opponent")
        for symbol, limit in zip(SYMBOLS, HAND_LIMITS, strict=False)
        for count in range(1, limit + 1)
    ]


register_feature("core46", _core46_planes(), is_base=True)(plane_kernels.write_core46)
register_feature("check", ["in check"])(plane_kernels.write_check)
register_feature("repetition", [f"occurred {n}x before" for n in (1, 2, 3)])(
    plane_kernels.write_repetition
)
register_feature("prom_zone", ["own promotion zone", "opponent promotion zone"])(
    plane_kernels.write_prom_zone
)
register_feature("last2ply", ["last from", "last to", "before last from", "before last to"])(
    plane_kernels.write_last2ply
)
register_feature("hand_onehot", _hand_onehot_planes())(plane_kernels.write_hand_onehot)

BUILT_IN_OPTIONS: Final = ("check", "repetition", "prom_zone", "last2ply", "hand_onehot")
"""What ``+all`` stands for."""

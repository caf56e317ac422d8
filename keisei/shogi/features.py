"""Observation planes by name: ``core46``, ``core46+check``, ... ``core46+all``.

Planes are computed from packed positions, so they are always in the mover's view. A feature is a
registered function that writes its planes for a whole batch; a `FeatureSpec` is a list of features.
`FEATURE_SPECS` holds the specs by name, and `feature_spec` adds any other combination to it.

>>> FEATURE_SPECS["core46"].num_planes
46
>>> feature_spec("core46+check+last2ply").shape
(51, 9, 9)
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from importlib.metadata import entry_points
from typing import Any, Final, TypeVar

import numpy as np
import numpy.typing as npt

from keisei.constants import (
    BOARD_SIZE,
    HAND_LIMITS,
    NUM_HAND_KINDS,
    NUM_PIECE_KINDS,
    NUM_SQUARES,
    PROMOTION_ZONE_SQUARES,
)
from keisei.errors import KeiseiError
from keisei.shogi.attack_planes import ATTACK_PLANES, write_attacks
from keisei.shogi.jit import int64, jit, jit_inner
from keisei.shogi.packed import require_valid
from keisei.shogi.position import Array, Records
from keisei.shogi.tables import HAND_LIMIT_OF_KIND
from keisei.shogi.types import SYMBOLS

_OWN_HAND = 2 * NUM_PIECE_KINDS
_MOVER_IS_BLACK = _OWN_HAND + 2 * NUM_HAND_KINDS
_PLY = _MOVER_IS_BLACK + 1
_SHOWN_REPETITIONS = 3


@jit
def to_uint8(planes: Array, out: Array) -> None:
    """Write ``planes`` (float32, 0 to 1) times 255 into ``out`` (uint8); both flat."""
    for index in range(len(planes)):
        out[index] = np.uint8(planes[index] * np.float32(255) + np.float32(0.5))


@jit
def to_bfloat16_bits(planes: Array, out: Array) -> None:
    """Write the bfloat16 bits of ``planes`` (float32 seen as uint32) into ``out`` (uint16)."""
    for index in range(len(planes)):
        bits = int64(planes[index])
        out[index] = bits + 0x7FFF + (bits >> 16 & 1) >> 16  # round to nearest even


@jit_inner
def _fill(planes: Array, b: int, plane: int, start: int, stop: int, value: float) -> None:
    """Set a range of squares of one plane (a loop compiles much faster than a slice)."""
    for sq in range(start, stop):
        planes[b, plane, sq] = value


@jit
def write_core46(packed: Records, planes: Array, first: int) -> None:
    """Write 46 planes: pieces (28), hands (14), mover is Black, ply / ply limit, two reserved."""
    for b in range(len(packed)):
        position = packed[b]
        for sq in range(NUM_SQUARES):
            code = int64(position.board[sq])
            if code:
                planes[b, first + code - 1, sq] = 1.0
        for side in range(2):
            for kind in range(NUM_HAND_KINDS):
                held = int64(position.hands[side, kind])
                if held:
                    plane = first + _OWN_HAND + side * NUM_HAND_KINDS + kind
                    _fill(planes, b, plane, 0, NUM_SQUARES, held / HAND_LIMIT_OF_KIND[kind])
        if position.turn == 0:
            _fill(planes, b, first + _MOVER_IS_BLACK, 0, NUM_SQUARES, 1.0)
        progress = min(int64(position.ply) / max(int64(position.ply_limit), 1), 1.0)
        _fill(planes, b, first + _PLY, 0, NUM_SQUARES, progress)


def write_check(packed: Records, planes: Array, first: int) -> None:
    """Write one plane: the mover is in check."""
    planes[:, first] = packed["in_check"][:, None] != 0


def write_repetition(packed: Records, planes: Array, first: int) -> None:
    """Write three planes: this position occurred once, twice, three times before."""
    occurrences = np.minimum(packed["repetitions"], _SHOWN_REPETITIONS)
    for number in range(1, _SHOWN_REPETITIONS + 1):
        planes[:, first + number - 1] = occurrences[:, None] == number


def write_prom_zone(packed: Records, planes: Array, first: int) -> None:
    """Write two planes, always the same: the promotion zones of the mover and of the opponent."""
    planes[:, first, :PROMOTION_ZONE_SQUARES] = 1.0
    planes[:, first + 1, NUM_SQUARES - PROMOTION_ZONE_SQUARES :] = 1.0


def write_last2ply(packed: Records, planes: Array, first: int) -> None:
    """Write four planes: from and to of the last move, from and to of the one before."""
    squares = packed["last_moves"]
    rows, which = np.nonzero(squares < NUM_SQUARES)
    planes[rows, first + which, squares[rows, which]] = 1.0


@jit
def write_hand_onehot(packed: Records, planes: Array, first: int) -> None:
    """Write 76 planes: for each hand and kind, at least 1, 2, 3 ... pieces are held."""
    for b in range(len(packed)):
        plane = first
        for side in range(2):
            for kind in range(NUM_HAND_KINDS):
                for _ in range(int64(packed[b].hands[side, kind])):
                    _fill(planes, b, plane, 0, NUM_SQUARES, 1.0)
                    plane += 1
                plane += HAND_LIMIT_OF_KIND[kind] - int64(packed[b].hands[side, kind])


Planes = npt.NDArray[Any]
"""``[B, planes, 9, 9]``, float32, uint8 (255 = 1.0) or uint16 (the bits of a bfloat16)."""

PlaneWriter = Callable[[Records, npt.NDArray[np.float32], int], None]
"""``write(packed[B], planes[B, C, 81], first)`` fills planes `first`, `first` + 1 ... from zero."""

Writer = TypeVar("Writer", bound=PlaneWriter)


class UnknownFeatureError(KeiseiError, ValueError):
    """An unknown feature set; the message lists the valid ones."""


@dataclass(frozen=True)
class Feature:
    """A named group of planes and the function that writes them."""

    name: str
    planes: tuple[str, ...]
    """Name of each plane, unique within a spec."""

    write: PlaneWriter
    is_base: bool
    """Whether it comes first in a spec's name, like ``core46``."""

    constant: frozenset[str]
    """Names of the planes that have one value for the whole board, such as those of the hands."""


@dataclass(frozen=True)
class FeatureSpec:
    """The input of a network: an ordered list of features that encodes positions as planes."""

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
    def constant_planes(self) -> tuple[int, ...]:
        """Indices of the planes that have one value for the whole board, in order.

        Towers read one square of them, so a feature must name as constant only what always is.
        """
        constant = {plane for feature in self.features for plane in feature.constant}
        return tuple(i for i, plane in enumerate(self.plane_names) if plane in constant)

    @property
    def num_planes(self) -> int:
        """Number of planes."""
        return sum(len(feature.planes) for feature in self.features)

    @property
    def shape(self) -> tuple[int, int, int]:
        """Shape of one observation: (planes, 9, 9)."""
        return (self.num_planes, BOARD_SIZE, BOARD_SIZE)

    def encode(
        self, packed: Records, out: Planes | None = None, *, dtype: npt.DTypeLike = np.float32
    ) -> Planes:
        """Write the planes of ``packed[B]`` into ``out[B, planes, 9, 9]`` and return it.

        Without `out` a new array of `dtype` is returned. float32 holds the values unchanged, uint8
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
        require_valid(packed)
        is_float32 = out.dtype == np.float32
        buffer = None if is_float32 else np.empty((_CHUNK, *self.shape), dtype=np.float32)
        for start in range(0, len(packed), _CHUNK):
            chunk = out[start : start + _CHUNK]
            planes = chunk if buffer is None else buffer[: len(chunk)]
            self._write(packed[start : start + _CHUNK], planes)
            if out.dtype == np.uint8:
                to_uint8(planes.reshape(-1), chunk.reshape(-1))
            elif out.dtype == np.uint16:
                bits = planes.reshape(-1).view(np.uint32)
                to_bfloat16_bits(bits, chunk.reshape(-1))
        return out

    def _write(self, packed: Records, planes: npt.NDArray[np.float32]) -> None:
        planes = planes.reshape(len(packed), self.num_planes, NUM_SQUARES)
        planes[...] = 0
        first = 0
        for feature in self.features:
            feature.write(packed, planes, first)
            first += len(feature.planes)


PLUGIN_GROUP: Final = "keisei.features"
"""Group of entry points: the name of a feature, and the module that registers it."""

_CHUNK: Final = 64
"""Positions zeroed and written at a time: their planes stay in the processor's cache."""

_ELEMENT_TYPES: Final = (np.dtype(np.float32), np.dtype(np.uint8), np.dtype(np.uint16))
_ALL: Final = "all"
_features: dict[str, Feature] = {}

FEATURE_SPECS: Final[dict[str, FeatureSpec]] = {}
"""Feature sets by name: the base, the base with each option, ``core46+all``, those in use.

`feature_spec` returns any combination by name, `register_feature` adds a new option.
"""


def register_feature(
    name: str, planes: Sequence[str], *, is_base: bool = False, constant: Sequence[str] = ()
) -> Callable[[Writer], Writer]:
    """Register the decorated function as the writer of a feature called `name`.

    Args:
        name: an identifier.
        planes: names of its planes.
        is_base: whether it comes first in a spec's name, like ``core46``.
        constant: names of those planes that have one value for the whole board.

    >>> @register_feature("white_to_move", ["mover is White"], constant=["mover is White"])
    ... def write_white_to_move(packed, planes, first):
    ...     planes[:, first] = packed.turn[:, None]
    >>> feature_spec("core46+white_to_move").num_planes
    47
    """

    def register(write: Writer) -> Writer:
        if not name.isidentifier() or name == _ALL or name in _features:
            raise ValueError(f"a feature cannot be named {name!r}: not an identifier, or in use")
        if unknown := set(constant) - set(planes):
            raise ValueError(f"feature {name!r} has no planes {', '.join(sorted(unknown))}")
        _features[name] = Feature(name, tuple(planes), write, is_base, frozenset(constant))
        for spec in [name] if is_base else [f"{base}+{name}" for base in _bases()]:
            feature_spec(spec)
        return write

    return register


def registered_features() -> tuple[Feature, ...]:
    """Return all features, in the order in which they appear in a spec."""
    return tuple(_features.values())


def feature_spec(name: str) -> FeatureSpec:
    """Return the spec of a name such as ``core46``, ``core46+check+last2ply`` or ``core46+all``.

    The order of the options does not matter. ``all`` stands for the built-in options, so that a
    plug-in does not change the meaning of a stored name.
    """
    if name not in FEATURE_SPECS:
        FEATURE_SPECS[name] = _parse_spec(name)
    return FEATURE_SPECS[name]


def _bases() -> list[str]:
    return [feature.name for feature in _features.values() if feature.is_base]


def _parse_spec(name: str) -> FeatureSpec:
    base, *options = name.split("+")
    for part in (base, *options):
        _load_plugin(part)
    if base not in _bases():
        raise UnknownFeatureError(
            f"feature set {name!r}: it must start with one of {', '.join(_bases())}"
        )
    if _ALL in options:
        if len(options) > 1:
            raise UnknownFeatureError(f"feature set {name!r}: 'all' includes the other options")
        options = list(BUILT_IN_OPTIONS)
    known = [feature.name for feature in _features.values() if not feature.is_base]
    for option in options:
        if option not in known:
            raise UnknownFeatureError(
                f"feature set {name!r}: there is no option {option!r}; "
                f"the options are {', '.join(known)} and all"
            )
        if options.count(option) > 1:
            raise UnknownFeatureError(f"feature set {name!r}: {option!r} appears twice")
    chosen = [_features[option] for option in known if option in options]
    return FeatureSpec((_features[base], *chosen))


def _load_plugin(name: str) -> None:
    """Import the plug-in that registers a feature, if it is not there and a package has it."""
    if name == _ALL or name in _features:
        return
    for entry in entry_points(group=PLUGIN_GROUP, name=name):
        try:
            entry.load()
        except Exception as error:
            raise UnknownFeatureError(f"plug-in {name!r} cannot be loaded: {error}") from error


def _register_built_in_features() -> None:
    hand = SYMBOLS[:NUM_HAND_KINDS]
    core46_constant = [
        *(f"own hand {symbol}" for symbol in hand),
        *(f"opponent hand {symbol}" for symbol in hand),
        "mover is Black",
        "ply",
        "reserved 44",
        "reserved 45",
    ]
    pieces = [f"{side} {symbol}" for side in ("own", "opponent") for symbol in SYMBOLS]
    register_feature("core46", [*pieces, *core46_constant], is_base=True, constant=core46_constant)(
        write_core46
    )
    register_feature("check", ["in check"], constant=["in check"])(write_check)
    occurrences = [f"occurred {n}x before" for n in range(1, _SHOWN_REPETITIONS + 1)]
    register_feature("repetition", occurrences, constant=occurrences)(write_repetition)
    zones = ["own promotion zone", "opponent promotion zone"]
    register_feature("prom_zone", zones)(write_prom_zone)
    last_moves = ["last from", "last to", "before last from", "before last to"]
    register_feature("last2ply", last_moves)(write_last2ply)
    held = [
        f"{side} hand {symbol} >= {count}"
        for side in ("own", "opponent")
        for symbol, limit in zip(SYMBOLS, HAND_LIMITS, strict=False)
        for count in range(1, limit + 1)
    ]
    register_feature("hand_onehot", held, constant=held)(write_hand_onehot)
    register_feature("attacks", ATTACK_PLANES)(write_attacks)


_register_built_in_features()

BUILT_IN_OPTIONS: Final = (
    "check",
    "repetition",
    "prom_zone",
    "last2ply",
    "hand_onehot",
    "attacks",
)
"""The options that ``+all`` includes."""

feature_spec(f"core46+{_ALL}")

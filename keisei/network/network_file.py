"""Network files: a sparse network with the settings it plays with, in one file, without torch.

A file is in the safetensors format: named arrays, and metadata with the settings as JSON. It may
come from a stranger: nothing in it can run code, and all sizes are compared with each other before
the weights are read.
"""

import hashlib
import io
import json
import math
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, BinaryIO, Final, Literal, NamedTuple, Self

import numpy as np
import numpy.typing as npt
import safetensors
import safetensors.numpy
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from keisei import __version__
from keisei.config_schema import AppConfig, LayerSize, MatePlies, ModelConfig, Text
from keisei.constants import MAX_PLY_LIMIT, WeightType
from keisei.errors import KeiseiError
from keisei.network.predictor import Weights
from keisei.network.sparse.sparse_network import SparseNetwork, sparse_specs, weight_shapes
from keisei.shogi.row_groups import UnknownRowsError, row_spec
from keisei.shogi.row_numbering import RowGroup, RowSpec, Table
from keisei.shogi.vector import VectorShogi

if TYPE_CHECKING:
    from keisei.network.loading import StoredNetwork

FORMAT_VERSION: Final = 1
"""Version of arrays and metadata. Files of other versions are refused."""

METADATA: Final = "keisei"
"""Key of the JSON in the metadata of the safetensors format."""

LENGTH_BYTES: Final = 8
"""Bytes of the header's length, with which a file begins, as safetensors has it."""

MAX_HEADER: Final = 1 << 20
"""Largest header in bytes, some hundred times as long as `export_network_file` writes it."""

MAX_WEIGHT: Final = 1e4
"""Largest absolute weight: sums stay finite with it, and training never comes near it."""

COMPARED: Final = 512
"""Positions on which a rounded network is compared. A policy that is sure of itself changes its
move in one of a hundred where two are equally good: a small sample, or the largest difference of
all, would say more about that position than about the network."""

TOLERANCES: Final = {WeightType.FLOAT16: 0.002, WeightType.INT8: 0.02}
"""Allowed difference of probabilities and values by rounding, the mean over positions."""

TABLES: Final = ("position_table", "move_table")
"""Arrays that can be int8: nearly all weights are in them."""

SCALES: Final = "_scales"
"""An int8 table has another array, its name with this suffix: the factor of each row."""

_BYTES: Final = {"F32": 4, "F16": 2, "I8": 1}
"""Bytes per number of the types that weights may have."""


class NetworkFileError(KeiseiError):
    """A network that cannot be written to a file, or a file that is not a network."""


class GroupFacts(BaseModel):
    """A group of rows, as a file describes it."""

    model_config = ConfigDict(frozen=True, extra="ignore")

    name: Text
    axes: tuple[tuple[Text, int], ...]
    """Name and size of each axis."""


class NetworkFacts(BaseModel):
    """Metadata of a network file."""

    model_config = ConfigDict(frozen=True, extra="ignore", allow_inf_nan=False)

    format_version: int
    keisei_version: Text
    type: Literal["sparse"]
    run: Text
    """Name of the run that trained the network."""

    timestep: Annotated[int, Field(ge=0)]
    """Plies that it was trained on."""

    weights_sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    """SHA-256 of all that follows the header."""

    accumulators: LayerSize
    hidden: LayerSize
    context: LayerSize
    position_groups: tuple[GroupFacts, ...] = Field(repr=False)
    """Groups of rows of the position table, in the order of the rows."""

    move_groups: tuple[GroupFacts, ...] = Field(repr=False)
    """Groups of rows of the move table, in the order of the rows."""

    temperature: Annotated[float, Field(ge=0.0)]
    """Temperature of its policy in the evaluations of its run."""

    mate_plies: MatePlies
    """Mates of up to this many plies are played by rule in the evaluations of its run."""

    ply_limit: Annotated[int, Field(gt=0, le=MAX_PLY_LIMIT)]
    """Ply at which games are drawn in the evaluations of its run."""

    trained_ply_limit: Annotated[int, Field(gt=0, le=MAX_PLY_LIMIT)] = 512
    """Ply at which the games of its training were drawn, towards which the network counts plies."""

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Parse metadata.

        Raises:
            NetworkFileError: They are damaged, or of another format version.
        """
        try:
            version = json.loads(text)["format_version"]
        except (ValueError, LookupError, TypeError, RecursionError):
            raise NetworkFileError("not a network of Keisei, or damaged") from None
        if version != FORMAT_VERSION:
            raise NetworkFileError(
                f"format version {version!r:.20}, but this Keisei reads version {FORMAT_VERSION}"
            )
        try:
            return cls.model_validate_json(text)
        except ValidationError as error:
            raise NetworkFileError(f"damaged metadata: {_first_problem(error)}") from None

    def config(self) -> AppConfig:
        """Return settings with which such a network is built.

        Raises:
            NetworkFileError: This Keisei has other rows.
        """
        rows = {
            "position_rows": _rows_name("position", self.position_groups),
            "move_rows": _rows_name("move", self.move_groups),
        }
        sizes = self.model_dump(include={"accumulators", "hidden", "context"})
        evaluation = self.model_dump(include={"temperature", "mate_plies", "ply_limit"})
        try:
            config = AppConfig.model_validate(
                {
                    "env": {"ply_limit": self.trained_ply_limit},
                    "model": {"type": self.type} | sizes | rows,
                    "evaluation": evaluation,
                }
            )
        except ValidationError as error:
            raise NetworkFileError(f"damaged metadata: {_first_problem(error)}") from None
        written = (self.position_groups, self.move_groups)
        for spec, groups in zip(sparse_specs(config.model), written, strict=True):
            if group_facts(spec) != groups:
                raise NetworkFileError(f"its {spec.table} rows are in another order than here")
        return config


class NetworkFile(NamedTuple):
    """Contents of a network file."""

    facts: NetworkFacts
    config: AppConfig
    weights: Weights
    """float32, whatever the type in the file."""

    digest: str
    """SHA-256 of the file."""


def group_facts(spec: RowSpec) -> tuple[GroupFacts, ...]:
    """Describe the groups of a table, as files do."""
    return tuple(
        GroupFacts(name=group.name, axes=tuple((axis.name, axis.size) for axis in group.axes))
        for group in spec.groups
    )


def export_network_file(
    network: "StoredNetwork", *, dtype: WeightType = WeightType.FLOAT32
) -> bytes:
    """Return a sparse network as the bytes of a network file.

    Args:
        network: the network.
        dtype: how weights are stored: float16 halves the file, int8 halves it again.

    Raises:
        NetworkFileError: The weights are not finite, or their rounding changes predictions.
    """
    weights = {name: np.ascontiguousarray(array) for name, array in network.weights.items()}
    _require_finite(weights)
    if dtype is not WeightType.FLOAT32:
        weights = _rounded(weights, dtype)
        _require_similar(network, _restored(weights), dtype)
    data = _after_header(safetensors.numpy.save(weights))
    facts = network_facts(network, hashlib.sha256(data).hexdigest())
    contents: bytes = safetensors.numpy.save(weights, {METADATA: facts.model_dump_json()})
    parse_network_file(io.BytesIO(contents), len(contents))  # what is written can be read
    return contents


def network_facts(network: "StoredNetwork", weights_sha256: str) -> NetworkFacts:
    """Return the metadata of a sparse network."""
    model, usual = network.config.model, network.config.evaluation
    position_spec, move_spec = sparse_specs(model)
    return NetworkFacts(
        format_version=FORMAT_VERSION,
        keisei_version=__version__,
        type="sparse",
        run=network.run,
        timestep=network.timestep,
        weights_sha256=weights_sha256,
        accumulators=model.accumulators,
        hidden=model.hidden,
        context=model.context,
        position_groups=group_facts(position_spec),
        move_groups=group_facts(move_spec),
        temperature=usual.temperature,
        mate_plies=usual.mate_plies,
        ply_limit=usual.ply_limit,
        trained_ply_limit=network.config.env.ply_limit,
    )


def read_network_file(path: Path) -> NetworkFile:
    """Read a network file that ``keisei export`` wrote.

    Raises:
        NetworkFileError: The file cannot be read, or is not a network; the message says why.
    """
    try:
        status = path.stat()
        if not stat.S_ISREG(status.st_mode):  # a pipe would never end
            raise NetworkFileError(f"{path}: not a regular file")
        with path.open("rb") as file:
            return parse_network_file(file, status.st_size)
    except OSError as error:
        raise NetworkFileError(f"cannot read {path}: {error.strerror or error}") from error
    except ValueError as error:  # a name that no file can have
        raise NetworkFileError(f"cannot read {path}: {error}") from error
    except NetworkFileError as error:
        raise NetworkFileError(f"{path}: {error}") from error


def parse_network_file(file: BinaryIO, size: int) -> NetworkFile:
    """Parse an open network file of `size` bytes; raises `NetworkFileError`."""
    start = file.read(LENGTH_BYTES)
    header_size = int.from_bytes(start, "little")
    if len(start) < LENGTH_BYTES or header_size > min(MAX_HEADER, size - LENGTH_BYTES):
        raise NetworkFileError("not a network of Keisei, or damaged")
    header_bytes = file.read(header_size)
    arrays, facts = _parse_header(header_bytes)
    config = facts.config()
    data_size = _checked_size(arrays, config.model)
    expected = LENGTH_BYTES + header_size + data_size
    if size != expected:
        how = "truncated" if size < expected else "too long"
        raise NetworkFileError(f"{how}: {size} bytes instead of {expected}")
    data = file.read(data_size)
    if hashlib.sha256(data).hexdigest() != facts.weights_sha256:
        raise NetworkFileError("damaged: the SHA-256 of its weights differs")
    contents = start + header_bytes + data
    try:
        weights = _restored(safetensors.numpy.load(contents))
    except (safetensors.SafetensorError, KeyError, ValueError) as error:
        raise NetworkFileError(f"not a valid safetensors file: {error}") from error
    _require_finite(weights)
    return NetworkFile(facts, config, weights, hashlib.sha256(contents).hexdigest())


def _parse_header(data: bytes) -> tuple[dict[str, Any], NetworkFacts]:
    """Return the entries of the arrays, by name, and the metadata."""
    try:
        arrays = json.loads(data)
        text = arrays.pop("__metadata__")[METADATA]
    except (ValueError, LookupError, TypeError, AttributeError, RecursionError):
        raise NetworkFileError("not a network of Keisei, or damaged") from None
    return arrays, NetworkFacts.from_json(text)


def _checked_size(arrays: dict[str, Any], model: ModelConfig) -> int:
    """Compare the arrays of a header with those of the network; return the bytes they take."""
    shapes: dict[str, tuple[int, ...]] = dict(weight_shapes(model))
    for name in TABLES:
        if name + SCALES in arrays:
            shapes[name + SCALES] = shapes[name][:1]
    if arrays.keys() != shapes.keys():
        raise NetworkFileError("its arrays are not those of a sparse network")
    total = 0
    for name, shape in shapes.items():
        entry = arrays[name]
        if not isinstance(entry, dict) or entry.get("dtype") not in _BYTES:
            raise NetworkFileError(f"{name}: weights must be float32, float16 or int8")
        if (entry["dtype"] == "I8") != (name + SCALES in arrays):
            raise NetworkFileError(f"{name}: int8 tables, and only they, have scales")
        if entry.get("shape") != list(shape):
            raise NetworkFileError(
                f"{name}: shape {entry.get('shape')!s:.40}, the network needs {list(shape)}"
            )
        total += math.prod(shape) * _BYTES[entry["dtype"]]
    return total


def _rows_name(table: Table, groups: tuple[GroupFacts, ...]) -> str:
    """Return the setting that names these groups; raises `NetworkFileError` for unknown ones."""
    for group in groups:
        known = _known_group(table, group.name)
        if known is None:
            raise NetworkFileError(
                f"its {table} rows {group.name!r} are unknown here: export it again with this "
                "version of Keisei, or install the plug-in that has them"
            )
        axes = tuple((axis.name, axis.size) for axis in known.axes)
        if group.axes != axes:
            raise NetworkFileError(
                f"its {table} rows {group.name!r} differ from those of this Keisei: use the "
                "version that wrote it"
            )
    return "+".join(group.name for group in groups)


def _known_group(table: Table, name: str) -> RowGroup | None:
    """Return the group of this name, also of a plug-in that is not loaded yet."""
    try:
        first, *_ = row_spec(table, name).groups
    except UnknownRowsError:
        return None
    return first if first.name == name else None  # `all` and sums of groups are not their names


def _require_finite(weights: Weights) -> None:
    for name, array in weights.items():
        if not (np.abs(array) <= MAX_WEIGHT).all():  # also if one is NaN
            raise NetworkFileError(f"{name}: a weight is NaN, infinite or beyond {MAX_WEIGHT:,.0f}")


def _rounded(weights: Weights, dtype: WeightType) -> dict[str, npt.NDArray[Any]]:
    """Return the arrays of a file: weights as float16, the tables perhaps as int8 with scales."""
    arrays: dict[str, npt.NDArray[Any]] = {
        name: array.astype(np.float16) for name, array in weights.items()
    }
    if dtype is WeightType.INT8:
        for name in TABLES:
            scales = np.maximum(np.abs(weights[name]).max(axis=1), 1e-6) / 127.0
            scales = scales.astype(np.float32)
            arrays[name] = np.round(weights[name] / scales[:, None]).astype(np.int8)
            arrays[name + SCALES] = scales
    return arrays


def _restored(arrays: Mapping[str, npt.NDArray[Any]]) -> Weights:
    """Return the weights of the arrays of a file, as float32."""
    weights = {name: array.astype(np.float32) for name, array in arrays.items()}
    for name in TABLES:
        if (scales := weights.pop(name + SCALES, None)) is not None:
            weights[name] *= scales[:, None]
    return weights


def _require_similar(network: "StoredNetwork", rounded: Weights, dtype: WeightType) -> None:
    """Compare the predictions of a network and of its rounded weights on some positions."""
    model = SparseNetwork.new(network.config.model, network.spec, threads=1, seed=0)
    positions = VectorShogi(COMPARED, network.spec, opening_plies=40).observe()
    predictions = []
    for weights in (network.weights, rounded):
        model.load_weights(weights)
        predictions.append(model.predict(positions))
    exact, close = predictions
    gaps = np.maximum(
        np.abs(np.exp(exact.log_probs) - np.exp(close.log_probs)).max(axis=1),
        np.abs(exact.values - close.values),
    )
    gap = float(gaps.mean())
    if not gap <= TOLERANCES[dtype]:
        raise NetworkFileError(
            f"{network.name}: rounded to {dtype} its predictions would differ by {gap:.2g} on "
            "average; export it as float32"
        )


def _after_header(contents: bytes) -> bytes:
    return contents[8 + int.from_bytes(contents[:8], "little") :]


def _first_problem(error: ValidationError) -> str:
    problem = error.errors()[0]
    return f"{'.'.join(map(str, problem['loc']))}: {problem['msg']}"

"""`load_onnx`: a network from an ONNX file. Needs neither torch nor the run.

The files of towers, whose inputs are planes, are read here; those of sparse networks, whose inputs
are rows, in `keisei.network.onnx.sparse_onnx`.

A file may come from a stranger. Nothing in it can run code or run without end: only operators of
plain networks are allowed (`OPERATORS`), and no other file is read.
"""

import hashlib
import json
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from types import ModuleType
from typing import TYPE_CHECKING, Annotated, Any, Final, Self

import numpy as np
import numpy.typing as npt
from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, ValidationError

from keisei.config_schema import MatePlies, Text
from keisei.constants import MAX_PLY_LIMIT
from keisei.errors import KeiseiError
from keisei.network.predictor import Prediction
from keisei.shogi.features import FeatureSpec, feature_spec
from keisei.shogi.packed import Positions, padded_width
from keisei.system import read_bytes, usable_cpus

if TYPE_CHECKING:
    from keisei.network.onnx.sparse_onnx import SparseOnnxModel

FORMAT_VERSION: Final = 1
"""Version of inputs, outputs and metadata. Files of other versions are refused."""

PREFIX: Final = "keisei."
"""Prefix of the names of Keisei's metadata; other programs may add their own."""

INPUTS: Final = "inputs"
"""Name of the metadata that say what the inputs are: planes if missing, or `ROWS`."""

ROWS: Final = "rows"
NETWORK: Final = "network"
"""Name of the metadata of a sparse network: `keisei.network.network_file.NetworkFacts` as JSON."""

GRAPH_DIGEST: Final = "graph_sha256"
"""Name of the metadata with the SHA-256 of the graph: a damaged file is refused."""

OPERATORS: Final = frozenset(
    {
        # what `keisei export` writes
        "Add", "Cast", "Clip", "Concat", "Constant", "Conv", "Div", "Erf", "Flatten", "Gather",
        "GatherElements", "Gemm", "Identity", "LayerNormalization", "Less", "LogSoftmax", "MatMul",
        "Mod", "Mul", "Range", "ReduceMean", "ReduceSum", "Relu", "Reshape", "Shape", "Sigmoid",
        "Slice", "Softmax", "Softplus", "Split", "Sqrt", "Squeeze", "Sub", "Tanh", "Transpose",
        "Unsqueeze", "Where",
        # what it may write for the towers of plug-ins, and with other releases of torch
        "Abs", "And", "AveragePool", "BatchNormalization", "Elu", "Equal", "Exp", "Gelu",
        "GlobalAveragePool", "Greater", "GroupNormalization", "HardSigmoid", "HardSwish",
        "InstanceNormalization", "LeakyRelu", "Log", "Max", "MaxPool", "Min", "Mish", "Neg", "Not",
        "Or", "PRelu", "Pow", "Reciprocal", "ReduceMax", "Selu",
    }
)  # fmt: skip
"""Operators that a file may use. Control flow, which may never end, and random numbers are not
among them."""

MAX_PARTS: Final = 100_000
"""Operators and tensors of a file, some hundred times as many as a large tower has."""

MAX_FILE_BYTES: Final = 2 << 30
"""Largest file, as in the ONNX standard."""

PLANES: Final = "planes"
"""Input ``[batch, planes, 9, 9]`` float32: what `FeatureSpec.encode` writes."""

LEGAL: Final = "legal"
"""Input ``[batch, moves]`` int64: legal actions; rows are padded with any action."""

LOGITS: Final = "logits"
"""Output ``[batch, moves]`` float32, of the actions in `LEGAL`."""

VALUE: Final = "value"
"""Output ``[batch]`` float32: values from -1, the mover loses, to 1."""


class OnnxError(KeiseiError):
    """A network that cannot be exported, or a file that is not a network of Keisei."""


def _from_json(value: object) -> object:
    try:
        return json.loads(value) if isinstance(value, str) else value
    except RecursionError:
        raise ValueError("nested too deeply") from None


class OnnxFacts(BaseModel):
    """Metadata of a file; in the file each name has the prefix `PREFIX`."""

    model_config = ConfigDict(frozen=True, extra="ignore", allow_inf_nan=False)

    format_version: int
    keisei_version: Text
    run: Text
    """Name of the run that trained the network."""

    timestep: Annotated[int, Field(ge=0)]
    """Plies that it was trained on."""

    weights_sha256: Annotated[str, Field(pattern=r"^[0-9a-f]{64}$")]
    """SHA-256 of the file with the weights in its checkpoint."""

    features: Text
    """Name of its feature set."""

    plane_names: Annotated[tuple[str, ...], BeforeValidator(_from_json)] = Field(repr=False)
    """Names of the planes, as JSON: a plug-in's feature may change without its name."""

    temperature: Annotated[float, Field(ge=0.0)]
    """Temperature of its policy in the evaluations of its run."""

    mate_plies: MatePlies
    """Mates of up to this many plies are played by rule in the evaluations of its run."""

    ply_limit: Annotated[int, Field(gt=0, le=MAX_PLY_LIMIT)]
    """Ply at which games are drawn in the evaluations of its run."""

    trained_ply_limit: Annotated[int, Field(gt=0, le=MAX_PLY_LIMIT)] = 512
    """Ply at which the games of its training were drawn, towards which the network counts plies."""

    @classmethod
    def from_metadata(cls, metadata: Mapping[str, str]) -> Self:
        """Parse the metadata of a file; raise `OnnxError` if they are not those of a tower."""
        named = keisei_metadata(metadata)
        try:
            return cls.model_validate(named)
        except ValidationError as error:
            problem = error.errors()[0]
            name = PREFIX + ".".join(map(str, problem["loc"]))
            raise OnnxError(f"damaged metadata: {name}: {problem['msg']}") from None

    def as_metadata(self) -> dict[str, str]:
        """Return the metadata as text, for `from_metadata`."""
        return {
            PREFIX + name: value if isinstance(value, str) else json.dumps(value)
            for name, value in self.model_dump(mode="json").items()
        }

    @property
    def spec(self) -> FeatureSpec:
        """Input planes; raises `OnnxError` if this Keisei has other planes of that name."""
        try:
            spec = feature_spec(self.features)
        except KeiseiError as error:
            raise OnnxError(f"its planes are unknown here: {error}") from None
        if spec.plane_names != self.plane_names:
            raise OnnxError(f"the planes of {self.features} differ from those of this Keisei")
        return spec


ONNX_SUFFIX: Final = ".onnx"
"""Suffix of ONNX files."""

BATCH: Final = 256
"""Positions per call on a CPU, as with torch: larger batches do not fit into its cache."""

_STANDARD_DOMAINS: Final = ("", "ai.onnx")
_CPU: Final = "CPUExecutionProvider"
_CUDA: Final = "CUDAExecutionProvider"


@dataclass(frozen=True, eq=False)
class OnnxModel:
    """`keisei.network.predictor.Predictor` of an ONNX file."""

    path: Path
    facts: OnnxFacts
    spec: FeatureSpec = field(repr=False)
    """Input planes."""

    digest: str
    """SHA-256 of the file."""

    _session: Any = field(repr=False)
    """Session of onnxruntime, which has no types."""

    @property
    def name(self) -> str:
        """Run, step and kind, for people: ``quickstart@163840.onnx``."""
        return f"{self.facts.run}@{self.facts.timestep}{ONNX_SUFFIX}"

    @property
    def identity(self) -> str:
        """Name and digest of the file; unique, whatever the metadata claim."""
        return f"{self.name}#{self.digest[:12]}"

    @cached_property
    def _step(self) -> int | None:
        """Positions per call; None: all at once."""
        return BATCH if self._session.get_providers()[0] == _CPU else None

    def predict(self, positions: Positions) -> Prediction:
        """Predict the policy ``[B, M]`` and the value ``[B]`` of ``B`` positions."""
        packed, legal_actions, legal_counts = positions.as_trained(self.facts.trained_ply_limit)
        width = padded_width(legal_counts, legal_actions.shape[1])
        planes = self.spec.encode(packed)
        log_probs = np.empty((len(packed), width), dtype=np.float32)
        values = np.empty(len(packed), dtype=np.float32)
        step = self._step or len(packed)
        for start in range(0, len(packed), step):
            rows = slice(start, start + step)
            logits, values[rows] = self._run(planes[rows], legal_actions[rows, :width])
            log_probs[rows] = _log_softmax(logits, legal_counts[rows])
        return Prediction(log_probs, values)

    def _run(
        self, planes: npt.NDArray[np.float32], legal: npt.NDArray[np.uint16]
    ) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
        inputs: dict[str, npt.NDArray[Any]] = {PLANES: planes, LEGAL: legal.astype(np.int64)}
        logits, values = run_session(self._session, [LOGITS, VALUE], inputs, self.path)
        return logits, values


def keisei_metadata(metadata: Mapping[str, str]) -> dict[str, str]:
    """Return Keisei's own metadata of a file; raise `OnnxError` if it is not one of this format."""
    named = {
        name.removeprefix(PREFIX): text
        for name, text in metadata.items()
        if name.startswith(PREFIX)
    }
    if "format_version" not in named:
        raise OnnxError("not a network of Keisei: keisei export writes such files")
    if named["format_version"] != str(FORMAT_VERSION):
        raise OnnxError(
            f"format version {named['format_version']!r}, but this Keisei reads version "
            f"{FORMAT_VERSION}"
        )
    return named


def load_onnx(
    path: Path, threads: int = 0, *, device: str = "cpu"
) -> "OnnxModel | SparseOnnxModel":
    """Load a network that ``keisei export`` wrote.

    Args:
        path: of the file.
        threads: that compute on the CPU; 0: one for each core.
        device: ``cpu``, ``cuda``, ``cuda:1`` or ``auto``, the first GPU if there is one.

    Raises:
        KeiseiError: The file cannot be read, or is not a network; the message says why.
    """
    data = read_bytes(path, max_size=MAX_FILE_BYTES)
    return onnx_model(data, path, threads, device=device)


def onnx_model(
    data: bytes, path: Path, threads: int = 0, *, device: str = "cpu"
) -> "OnnxModel | SparseOnnxModel":
    """Load a network from the bytes of a file; errors name it `path`."""
    onnx, runtime = import_onnx()
    try:
        metadata = _checked_metadata(onnx, data)
        if keisei_metadata(metadata).get(INPUTS) == ROWS:
            from keisei.network.network_file import NetworkFacts, NetworkFileError
            from keisei.network.onnx.sparse_onnx import sparse_onnx_model

            try:
                network = NetworkFacts.from_json(keisei_metadata(metadata).get(NETWORK, ""))
                return sparse_onnx_model(runtime, network, data, path, threads, device)
            except NetworkFileError as error:
                raise OnnxError(str(error)) from error
        facts = OnnxFacts.from_metadata(metadata)
        spec = facts.spec
        session = new_session(runtime, data, threads, device)
        model = OnnxModel(path, facts, spec, hashlib.sha256(data).hexdigest(), session)
        planes = np.zeros((2, *spec.shape), dtype=np.float32)
        trial_run(
            lambda: model._run(planes, np.zeros((2, 3), dtype=np.uint16)),
            ["float32[2, 3]", "float32[2]"],
            "two boards and three moves",
        )
    except OnnxError as error:
        raise OnnxError(f"{path}: {error}") from error
    return model


def import_onnx() -> tuple[ModuleType, ModuleType]:
    """Import onnx and onnxruntime; raise `OnnxError` with how to install what is missing."""
    try:
        import onnx
        import onnxruntime  # type: ignore[import-untyped]
    except ModuleNotFoundError as error:
        raise OnnxError(
            f'ONNX files need the package {error.name}: python -m pip install "keisei[onnx]"'
        ) from error
    return onnx, onnxruntime


def choose_providers(
    device: str, available: list[str]
) -> list[str | tuple[str, Mapping[str, object]]]:
    """List onnxruntime's providers for a device, the preferred one first.

    >>> choose_providers("auto", ["CPUExecutionProvider"])
    ['CPUExecutionProvider']
    >>> choose_providers("cuda:1", ["CUDAExecutionProvider", "CPUExecutionProvider"])
    [('CUDAExecutionProvider', {'device_id': 1}), 'CPUExecutionProvider']
    """
    kind, _, index = device.partition(":")
    if kind not in ("auto", "cpu", "cuda") or (index and (kind != "cuda" or not index.isdecimal())):
        raise OnnxError(f"device {device}: ONNX files run on auto, cpu, cuda or cuda:N")
    if kind == "cuda" and _CUDA not in available:
        raise OnnxError(f"device {device}: needs the package onnxruntime-gpu and a CUDA GPU")
    if kind == "cpu" or _CUDA not in available:
        return [_CPU]
    return [(_CUDA, {"device_id": int(index or 0)}), _CPU]


def _checked_metadata(onnx: ModuleType, data: bytes) -> dict[str, str]:
    """Return the metadata of a file after checking that it holds nothing but a network."""
    from google.protobuf.message import DecodeError  # type: ignore[import-untyped]

    try:
        model = onnx.ModelProto.FromString(data)
    except DecodeError:
        raise OnnxError("not an ONNX file, or damaged") from None
    if len(model.graph.node) + len(model.graph.initializer) > MAX_PARTS:
        raise OnnxError(f"it has more than {MAX_PARTS:,} operators and tensors")
    messages = list(_messages(model))
    for message in messages:
        if isinstance(message, onnx.TensorProto) and (
            message.external_data or message.data_location == onnx.TensorProto.EXTERNAL
        ):
            raise OnnxError("its weights are in another file, which keisei export never does")
    metadata = {entry.key: entry.value for entry in model.metadata_props}
    written = keisei_metadata(metadata).get(GRAPH_DIGEST)
    for message in messages:
        if isinstance(message, onnx.NodeProto):
            _require_plain(message)
    if model.functions:
        raise OnnxError("it defines operators of its own, which keisei export never does")
    if written != graph_digest(model):
        raise OnnxError(
            "it has no digest of its graph: export it again with this version of Keisei"
            if written is None
            else "damaged: the SHA-256 of its graph differs"
        )
    return metadata


def graph_digest(model: Any) -> str:
    """Return the SHA-256 of the graph of an ONNX model."""
    return hashlib.sha256(model.graph.SerializeToString(deterministic=True)).hexdigest()


def _require_plain(node: Any) -> None:
    """Raise `OnnxError` for an operator that may run anything but a plain network."""
    if node.domain not in _STANDARD_DOMAINS:
        raise OnnxError(
            f"its operator {node.domain[:40]}.{node.op_type[:40]} is not of the ONNX standard, "
            "which keisei export never writes"
        )
    if node.op_type not in OPERATORS:
        raise OnnxError(f"its operator {node.op_type[:40]} is none that keisei export writes")


def _messages(message: Any) -> Iterator[Any]:
    """Iterate over a protobuf message and all messages in it."""
    yield message
    for descriptor, value in message.ListFields():
        if descriptor.message_type is not None:
            for part in value if isinstance(value, Iterable) else (value,):
                yield from _messages(part)


def new_session(runtime: ModuleType, data: bytes, threads: int, device: str) -> Any:
    """Make a session of onnxruntime; raises `OnnxError` if it can't use the file or the device."""
    providers = choose_providers(device, runtime.get_available_providers())
    options = runtime.SessionOptions()
    options.intra_op_num_threads = threads or usable_cpus()
    options.inter_op_num_threads = 1
    options.log_severity_level = 4  # errors are raised, not written to the terminal
    options.add_session_config_entry("session.load_model_format", "ONNX")  # as it was checked
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # of falling back to the CPU: see below
            session = runtime.InferenceSession(data, options, providers=providers)
    except Exception as error:  # its errors have no base of their own
        raise OnnxError(f"onnxruntime cannot load it: {_in_one_line(error)}") from error
    if device.startswith("cuda") and _CUDA not in session.get_providers():
        raise OnnxError(f"device {device}: onnxruntime cannot use the GPU, only the CPU")
    return session


def run_session(
    session: Any, outputs: list[str], inputs: Mapping[str, npt.NDArray[Any]], path: Path
) -> list[npt.NDArray[np.float32]]:
    """Run a session of onnxruntime; raises `OnnxError` if that fails."""
    try:
        found: list[npt.NDArray[np.float32]] = session.run(outputs, inputs)
    except Exception as error:  # its errors have no base of their own
        raise OnnxError(f"{path}: onnxruntime failed: {_in_one_line(error)}") from error
    return found


def trial_run(
    run: Callable[[], Sequence[npt.NDArray[np.float32]]], expected: list[str], inputs: str
) -> None:
    """Predict once to check types and shapes of the outputs; raises `OnnxError`."""
    try:
        found = [f"{array.dtype}{list(array.shape)}" for array in run()]
    except OnnxError as error:
        raise OnnxError(f"a trial prediction failed: {error}") from error
    if found != expected:
        raise OnnxError(f"for {inputs} it returns {' and '.join(found)}")


def _log_softmax(
    logits: npt.NDArray[np.float32], counts: npt.NDArray[np.int32]
) -> npt.NDArray[np.float32]:
    """Log-probabilities ``[B, M]`` of the first `counts` of each row; minus infinity beyond."""
    is_legal = np.arange(logits.shape[1]) < counts[:, None]
    logits = np.where(is_legal, logits, np.float32(-np.inf))
    logits -= logits.max(axis=1, keepdims=True)
    result: npt.NDArray[np.float32] = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
    return result


def _in_one_line(error: Exception) -> str:
    return " ".join(str(error).split())

"""Sparse networks as ONNX files, whose inputs are the rows of positions and moves. No torch.

Other programs can run such a file with any runtime of ONNX; they have to make the rows, as
`row_inputs` does. For Keisei itself a network file (`keisei.network.network_file`) is much faster.
"""

import hashlib
from dataclasses import dataclass, field
from pathlib import Path
from types import ModuleType
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from keisei import __version__
from keisei.network.loading import StoredNetwork
from keisei.network.network_file import NetworkFacts, network_facts
from keisei.network.onnx.onnx_model import (
    FORMAT_VERSION,
    GRAPH_DIGEST,
    INPUTS,
    NETWORK,
    ONNX_SUFFIX,
    PREFIX,
    ROWS,
    VALUE,
    OnnxError,
    graph_digest,
    import_onnx,
    new_session,
    run_session,
    trial_run,
)
from keisei.network.predictor import Prediction, Weights
from keisei.network.sparse.active_rows import RowReader
from keisei.network.sparse.sparse_network import SparseNetwork, sparse_specs
from keisei.shogi.packed import Positions, padded_width
from keisei.shogi.row_groups import MOVE_ROWS, POSITION_ROWS
from keisei.shogi.row_numbering import RowSpec
from keisei.shogi.vector import VectorShogi

POSITION_INPUT: Final = "position_rows"
"""Input ``[batch, P]`` int64: rows of each position, padded with -1."""

MOVE_INPUT: Final = "move_rows"
"""Input ``[batch, moves, K]`` int64: rows of each legal move, padded with -1."""

COUNTS: Final = "legal_counts"
"""Input ``[batch]`` int64: number of legal moves."""

LOG_PROBS: Final = "log_probs"
"""Output ``[batch, moves]`` float32: of the legal moves; minus infinity in the padding."""

OPSET: Final = 17
IR_VERSION: Final = 8
"""Version of the file format that belongs to `OPSET`."""

TOLERANCE: Final = 1e-5
"""Largest allowed difference of probabilities and values from the kernels'."""

BATCH: Final = 32
"""Positions per call: the rows of all moves of a larger batch do not fit into a cache."""

_COMPARED_GAMES: Final = 64
_COMPARED_PLIES: Final = 40


def row_inputs(
    positions: Positions,
    position_spec: RowSpec = POSITION_ROWS,
    move_spec: RowSpec = MOVE_ROWS,
) -> dict[str, npt.NDArray[np.int64]]:
    """Return the inputs of a sparse network's ONNX file for some positions, by their names."""
    active = RowReader(position_spec, move_spec).read(positions)
    most = max(len(rows.position) for rows in active)
    most_of_move = max(len(rows) for one in active for rows in one.moves)
    width = padded_width(positions.legal_counts, positions.legal_actions.shape[1])
    position_rows = np.full((len(active), most), -1, dtype=np.int64)
    move_rows = np.full((len(active), width, most_of_move), -1, dtype=np.int64)
    for index, rows in enumerate(active):
        position_rows[index, : len(rows.position)] = rows.position
        for move, rows_of_move in enumerate(rows.moves):
            move_rows[index, move, : len(rows_of_move)] = rows_of_move
    return {
        POSITION_INPUT: position_rows,
        MOVE_INPUT: move_rows,
        COUNTS: positions.legal_counts.astype(np.int64),
    }


@dataclass(frozen=True, eq=False)
class SparseOnnxModel:
    """`keisei.network.predictor.Predictor` of a sparse network's ONNX file."""

    path: Path
    facts: NetworkFacts
    position_spec: RowSpec = field(repr=False)
    move_spec: RowSpec = field(repr=False)
    digest: str
    """SHA-256 of the file."""

    _session: Any = field(repr=False)

    @property
    def name(self) -> str:
        """Run, step and kind, for people: ``quickstart@163840.onnx``."""
        return f"{self.facts.run}@{self.facts.timestep}{ONNX_SUFFIX}"

    @property
    def identity(self) -> str:
        """Name and digest of the file; unique, whatever the metadata claim."""
        return f"{self.name}#{self.digest[:12]}"

    def predict(self, positions: Positions) -> Prediction:
        """Predict the policy ``[B, M]`` and the value ``[B]`` of ``B`` positions."""
        number = len(positions.packed)
        width = padded_width(positions.legal_counts, positions.legal_actions.shape[1])
        log_probs = np.full((number, width), -np.inf, dtype=np.float32)
        values = np.empty(number, dtype=np.float32)
        for start in range(0, number, BATCH):
            part = slice(start, start + BATCH)
            found, values[part] = self.run(positions.take(part))
            log_probs[part, : found.shape[1]] = found
        return Prediction(log_probs, values)

    def run(self, positions: Positions) -> list[npt.NDArray[np.float32]]:
        """Run the file on all positions at once; return log-probabilities and values."""
        known = positions.as_trained(self.facts.trained_ply_limit)
        inputs = row_inputs(known, self.position_spec, self.move_spec)
        return run_session(self._session, [LOG_PROBS, VALUE], inputs, self.path)


def sparse_onnx_model(
    runtime: ModuleType, facts: NetworkFacts, data: bytes, path: Path, threads: int, device: str
) -> SparseOnnxModel:
    """Make the predictor of a file whose metadata were read."""
    specs = sparse_specs(facts.config().model)
    session = new_session(runtime, data, threads, device)
    model = SparseOnnxModel(path, facts, *specs, hashlib.sha256(data).hexdigest(), session)
    positions = VectorShogi(2).observe()
    width = padded_width(positions.legal_counts, positions.legal_actions.shape[1])
    trial_run(
        lambda: model.run(positions),
        [f"float32[2, {width}]", "float32[2]"],
        f"two boards and {width} moves",
    )
    return model


def export_sparse_onnx(network: StoredNetwork) -> bytes:
    """Return a network as the bytes of an ONNX file, after comparing it with the kernels.

    Raises:
        OnnxError: It would predict something else.
    """
    onnx, runtime = import_onnx()
    facts = network_facts(network, network.digest)
    proto = _model_proto(onnx, network.weights)
    metadata = {
        "format_version": str(FORMAT_VERSION),
        INPUTS: ROWS,
        NETWORK: facts.model_dump_json(),
        GRAPH_DIGEST: graph_digest(proto),
    }
    onnx.helper.set_model_props(proto, {PREFIX + name: text for name, text in metadata.items()})
    onnx.checker.check_model(proto, full_check=True)
    data: bytes = proto.SerializeToString(deterministic=True)
    model = sparse_onnx_model(runtime, facts, data, Path(network.name), 1, "cpu")
    _require_same_predictions(model, network)
    return data


def _model_proto(onnx: ModuleType, weights: Weights) -> Any:
    """Build the graph, with any number of positions, moves and rows."""
    helper, kinds = onnx.helper, onnx.TensorProto
    half = len(weights["move_weight"])
    constants: dict[str, npt.ArrayLike] = {
        # A last row of zeros, which the padding -1 refers to.
        "position_table": _with_zero_row(weights["position_table"]),
        "move_table": _with_zero_row(weights["move_table"]),
        **{
            name: weights[name]
            for name in ("position_bias", "hidden_weight", "hidden_bias", "value_bias")
        },
        "value_weight": weights["value_weight"][:, None],
        "context_weight": weights["context_weight"],
        "context_bias": weights["context_bias"],
        "move_weight": weights["move_weight"][:, None],
        "zero": np.float32(0.0),
        "one": np.float32(1.0),
        "minus_one": np.float32(-1.0),
        "minus_infinity": np.float32(-np.inf),
        "integer_zero": np.int64(0),
        "integer_one": np.int64(1),
        "axis_1": np.array([1]),
        "axis_2": np.array([2]),
        "first": np.array([0]),
        "second": np.array([1]),
        "half": np.array([half]),
        "end": np.array([2**62]),
    }
    nodes = [
        # accumulators: the first one is linear, the others are clipped
        _node(onnx, "Gather", "position_table", POSITION_INPUT, to="active_rows"),
        _node(onnx, "ReduceSum", "active_rows", "axis_1", to="row_sum", keepdims=0),
        _node(onnx, "Add", "row_sum", "position_bias", to="sums"),
        _node(onnx, "Slice", "sums", "first", "second", "axis_1", to="linear"),
        _node(onnx, "Slice", "sums", "second", "end", "axis_1", to="other_sums"),
        _node(onnx, "Clip", "other_sums", "zero", "one", to="clipped"),
        _node(onnx, "Concat", "linear", "clipped", to="accumulators", axis=1),
        # hidden layer and value
        _node(onnx, "MatMul", "accumulators", "hidden_weight", to="hidden_product"),
        _node(onnx, "Add", "hidden_product", "hidden_bias", to="hidden_sum"),
        _node(onnx, "Clip", "hidden_sum", "zero", "one", to="hidden"),
        _node(onnx, "MatMul", "hidden", "value_weight", to="value_product"),
        _node(onnx, "Add", "value_product", "value_bias", to="value_sum"),
        _node(onnx, "Add", "value_sum", "linear", to="raw_values"),
        _node(onnx, "Squeeze", "raw_values", "axis_1", to="raw_value"),
        _node(onnx, "Tanh", "raw_value", to="tanh_value"),
        # The tanh of onnxruntime may exceed 1 in the last bit.
        _node(onnx, "Clip", "tanh_value", "minus_one", "one", to=VALUE),
        # context of the policy, and features of each move
        _node(onnx, "MatMul", "hidden", "context_weight", to="context_product"),
        _node(onnx, "Add", "context_product", "context_bias", to="context"),
        _node(onnx, "Slice", "context", "first", "half", "axis_1", to="factors"),
        _node(onnx, "Slice", "context", "half", "end", "axis_1", to="shifts"),
        _node(onnx, "Gather", "move_table", MOVE_INPUT, to="active_move_rows"),
        _node(onnx, "ReduceSum", "active_move_rows", "axis_2", to="features", keepdims=0),
        _node(onnx, "Slice", "features", "first", "half", "axis_2", to="linear_features"),
        _node(onnx, "Slice", "features", "half", "end", "axis_2", to="other_features"),
        # logits
        _node(onnx, "Unsqueeze", "factors", "axis_2", to="factor_columns"),
        _node(onnx, "MatMul", "linear_features", "factor_columns", to="linear_logits"),
        _node(onnx, "Unsqueeze", "shifts", "axis_1", to="shift_rows"),
        _node(onnx, "Add", "other_features", "shift_rows", to="shifted"),
        _node(onnx, "Relu", "shifted", to="rectified"),
        _node(onnx, "MatMul", "rectified", "move_weight", to="other_logits"),
        _node(onnx, "Add", "linear_logits", "other_logits", to="logit_columns"),
        _node(onnx, "Squeeze", "logit_columns", "axis_2", to="logits"),
        # log-probabilities of the legal moves
        _node(onnx, "Shape", "logits", to="shape", start=1, end=2),
        _node(onnx, "Squeeze", "shape", to="width"),
        _node(onnx, "Range", "integer_zero", "width", "integer_one", to="places"),
        _node(onnx, "Unsqueeze", COUNTS, "axis_1", to="count_columns"),
        _node(onnx, "Less", "places", "count_columns", to="is_legal"),
        _node(onnx, "Where", "is_legal", "logits", "minus_infinity", to="legal_logits"),
        _node(onnx, "LogSoftmax", "legal_logits", to=LOG_PROBS, axis=1),
    ]
    graph = helper.make_graph(
        nodes,
        "keisei",
        inputs=[
            helper.make_tensor_value_info(POSITION_INPUT, kinds.INT64, ["batch", "rows"]),
            helper.make_tensor_value_info(MOVE_INPUT, kinds.INT64, ["batch", "moves", "move_rows"]),
            helper.make_tensor_value_info(COUNTS, kinds.INT64, ["batch"]),
        ],
        outputs=[
            helper.make_tensor_value_info(LOG_PROBS, kinds.FLOAT, ["batch", "moves"]),
            helper.make_tensor_value_info(VALUE, kinds.FLOAT, ["batch"]),
        ],
        initializer=[
            onnx.numpy_helper.from_array(np.asarray(array), name)
            for name, array in constants.items()
        ],
    )
    return helper.make_model(
        graph,
        opset_imports=[helper.make_opsetid("", OPSET)],
        ir_version=IR_VERSION,
        producer_name="keisei",
        producer_version=__version__,
    )


def _node(onnx: ModuleType, operator: str, *inputs: str, to: str, **attributes: int) -> Any:
    return onnx.helper.make_node(operator, list(inputs), [to], **attributes)


def _with_zero_row(table: npt.NDArray[Any]) -> npt.NDArray[np.float32]:
    return np.concatenate([table, np.zeros((1, table.shape[1]))]).astype(np.float32)


def _require_same_predictions(model: SparseOnnxModel, network: StoredNetwork) -> None:
    """Compare the file with the kernels on some positions."""
    kernels = SparseNetwork.new(
        network.config.model,
        network.spec,
        threads=1,
        seed=0,
        ply_limit=network.config.env.ply_limit,
    )
    kernels.load_weights(network.weights)
    positions = VectorShogi(_COMPARED_GAMES, network.spec, opening_plies=_COMPARED_PLIES).observe()
    exported, own = model.predict(positions), kernels.predict(positions)
    gap = max(
        float(np.abs(np.exp(exported.log_probs) - np.exp(own.log_probs)).max()),
        float(np.abs(exported.values - own.values).max()),
    )
    if not gap <= TOLERANCE:  # also if it is NaN
        raise OnnxError(
            f"{network.name}: as ONNX its predictions would differ by up to {gap:.2g}; it is not "
            "written"
        )

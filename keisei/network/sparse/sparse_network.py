"""`SparseNetwork`: the sparse network as a `Network`, as the rest of Keisei calls it."""

from collections.abc import Iterator, Mapping
from typing import Final, Self

import numpy as np
import numpy.typing as npt

from keisei.config_schema import AppConfig, DeviceConfig, ModelConfig
from keisei.constants import MAX_LEGAL_MOVES
from keisei.errors import DeviceError, WeightsError
from keisei.network.description import (
    TYPICAL_LEGAL_MOVES,
    Description,
    InputGroup,
    InputTable,
    Part,
)
from keisei.network.predictor import Prediction, Weights
from keisei.network.sparse.forward import PluginRows, Rows, SparseWeights, Workspace, predict
from keisei.network.sparse.row_store import MAX_BYTES, NOTHING_KEPT, WORDS_PER_PLY, KeptRows
from keisei.shogi.features import FeatureSpec, feature_spec
from keisei.shogi.packed import Positions, padded_width, require_valid
from keisei.shogi.position import Records
from keisei.shogi.row_groups import row_spec
from keisei.shogi.row_numbering import RowSpec
from keisei.shogi.threads import RangePool
from keisei.system import usable_cpus
from keisei.timing import Stopwatch

MIN_RANGE: Final = 16
"""Positions for which it is worth waking another thread: some 150 us of work."""


def make_network(config: AppConfig, device: DeviceConfig) -> "SparseNetwork":
    """Build a network with random weights, which predicts with the threads of `device`."""
    require_cpu(device)
    return SparseNetwork.new(
        config.model,
        feature_spec(config.env.input_features),
        threads=device.threads or usable_cpus(),
        seed=0,
        ply_limit=config.env.ply_limit,
    )


def require_cpu(device: DeviceConfig) -> str:
    """Return ``cpu``, or raise `DeviceError` if the settings ask for what only towers have."""
    if device.device not in ("auto", "cpu"):
        raise DeviceError(
            f"a sparse network computes on the CPU, not on {device.device}: set device.device=cpu, "
            "or model.type=resnet for a network that uses GPUs"
        )
    for field, value in (("mixed_precision", device.mixed_precision), ("compile", device.compile)):
        if value not in ("off", "auto"):
            raise DeviceError(
                f"device.{field}={value} is for towers: a sparse network is compiled by Numba and "
                "computes in float32. Set it to off or auto, or model.type to resnet"
            )
    return "cpu"


class SparseNetwork:
    """Weights of a sparse network, and the threads that predict with them."""

    device: Final = "cpu"

    def __init__(
        self,
        arrays: SparseWeights,
        position_spec: RowSpec,
        move_spec: RowSpec,
        spec: FeatureSpec,
        *,
        threads: int = 1,
        stopwatch: Stopwatch | None = None,
        ply_limit: int = 0,
    ) -> None:
        """Make a network.

        Args:
            arrays: its weights, which it owns from now on.
            position_spec: rows of the position table.
            move_spec: rows of the move table.
            spec: planes, which the network does not read: observations of its games have them.
            threads: threads that predict.
            stopwatch: runs while it predicts.
            ply_limit: that of the games it is trained on; 0: that of each game is taken for it.
        """
        self.arrays = arrays
        self.position_spec = position_spec
        self.move_spec = move_spec
        self.spec = spec
        self.stopwatch = stopwatch or Stopwatch()
        self.ply_limit = ply_limit
        self.rows = Rows.of(position_spec, move_spec)
        self._pool = RangePool(threads, MIN_RANGE)
        self._workspaces = [self.new_workspace()]

    @classmethod
    def new(
        cls,
        model: ModelConfig,
        spec: FeatureSpec,
        *,
        threads: int,
        seed: int,
        ply_limit: int = 0,
    ) -> "SparseNetwork":
        """Make a network with random weights."""
        position_spec, move_spec = sparse_specs(model)
        arrays = initial_weights(model, position_spec.num_rows, move_spec.num_rows, seed)
        return cls(arrays, position_spec, move_spec, spec, threads=threads, ply_limit=ply_limit)

    @property
    def threads(self) -> int:
        """Number of threads."""
        return self._pool.threads

    def new_workspace(self) -> Workspace:
        """Allocate scratch memory for one thread."""
        arrays = self.arrays
        return Workspace.of(
            len(arrays.position_bias),
            len(arrays.hidden_bias),
            len(arrays.context_bias),
            position_plugins=self.position_spec.max_plugin_rows,
            move_plugins=self.move_spec.max_plugin_rows,
        )

    def plugin_rows(self, positions: Positions) -> PluginRows:
        """Let the plug-ins of both tables write their rows of ``B`` positions.

        Raises:
            PluginRowsError: A plug-in returned something else than rows of its group.
        """
        return PluginRows(
            self.position_spec.plugin_rows(positions), self.move_spec.plugin_rows(positions)
        )

    def weights(self) -> Weights:
        """Return the current weights; the arrays are the network's own: copy to keep them."""
        return self.arrays._asdict()

    def load_weights(self, weights: Weights) -> None:
        """Replace all weights by copies of `weights`.

        Raises:
            WeightsError: They belong to another network; this one is unchanged.
        """
        require_same_shapes(self.weights(), weights)
        for name, array in self.weights().items():
            array[...] = weights[name]

    def copy(self) -> Self:
        """Return a copy of the network, with its own weights."""
        return self.with_weights(SparseWeights(*(array.copy() for array in self.arrays)))

    def with_weights(self, arrays: SparseWeights) -> Self:
        """Return a network of the same kind that owns other weights."""
        return type(self)(
            arrays,
            self.position_spec,
            self.move_spec,
            self.spec,
            threads=self.threads,
            stopwatch=self.stopwatch,
            ply_limit=self.ply_limit,
        )

    def predict(
        self, positions: Positions, kept: KeptRows | None = None, first: int = 0
    ) -> Prediction:
        """Predict the policy ``[B, M]`` and the value ``[B]`` of ``B`` positions.

        Args:
            positions: the positions.
            kept: where their rows are kept; see `RowStore`.
            first: the number of the first position there.
        """
        packed, legal_actions, legal_counts = positions.as_trained(self.ply_limit)
        require_valid(packed)
        width = padded_width(legal_counts, min(legal_actions.shape[1], MAX_LEGAL_MOVES))
        if legal_counts.max() > width:
            raise ValueError(f"a position has more than {width} legal moves")
        plugins = self.plugin_rows(Positions(packed, legal_actions[:, :width], legal_counts))
        log_probs = np.empty((len(packed), width), dtype=np.float32)
        values = np.empty(len(packed), dtype=np.float32)
        with self.stopwatch:
            self._pool.run(
                self._predict_range,
                len(packed),
                packed,
                legal_actions,
                legal_counts,
                plugins,
                kept or NOTHING_KEPT,
                first,
                log_probs,
                values,
            )
        return Prediction(log_probs, values)

    def _predict_range(
        self,
        packed: Records,
        legal_actions: npt.NDArray[np.uint16],
        legal_counts: npt.NDArray[np.int32],
        plugins: PluginRows,
        kept: KeptRows,
        first: int,
        log_probs: npt.NDArray[np.float32],
        values: npt.NDArray[np.float32],
        start: int,
        stop: int,
    ) -> None:
        """Predict one range of the positions, in this thread."""
        work = self._workspaces.pop() if self._workspaces else self.new_workspace()
        predict(
            self.arrays,
            self.rows,
            work,
            packed,
            legal_actions,
            legal_counts,
            plugins,
            kept,
            first,
            log_probs,
            values,
            start,
            stop,
        )
        self._workspaces.append(work)


TYPICAL_POSITION_ROWS: Final = 100
"""Rows that hold in a position of a game's middle: a typical number."""

TYPICAL_MOVE_ROWS: Final = 8
"""Rows that hold for a legal move: a typical number."""


def describe_sparse(config: AppConfig) -> Description:
    """Describe the sparse network of a configuration, without allocating its weights."""
    model = config.model
    specs = sparse_specs(model)
    positions, moves = (spec.num_rows for spec in specs)
    accumulators, hidden, context = model.accumulators, model.hidden, model.context
    # Adding a row costs one addition per number; the linear accumulator goes into the value as it
    # is. One half of a move's features is multiplied with the context, the other half weighted.
    per_move = TYPICAL_MOVE_ROWS * context + context // 2
    parts = (
        Part("position table", positions * accumulators, TYPICAL_POSITION_ROWS * accumulators),
        Part("accumulator bias", accumulators, 0),
        Part("hidden", (accumulators + 1) * hidden, accumulators * hidden),
        Part("value", hidden + 1, hidden),
        Part("policy context", (hidden + 1) * context, hidden * context),
        Part("move table", moves * context, TYPICAL_LEGAL_MOVES * per_move),
        Part("move weight", context // 2, TYPICAL_LEGAL_MOVES * context // 2),
    )
    tables = tuple(
        InputTable(f"{spec.table} rows", "rows", tuple(_row_groups(spec))) for spec in specs
    )
    return Description(SparseNetwork.__name__, tables, parts)


def _row_groups(spec: RowSpec) -> Iterator[InputGroup]:
    first = 0
    for group in spec.groups:
        axes = " x ".join(f"{axis.name} {axis.size}" for axis in group.axes)
        yield InputGroup(group.name, first, group.num_rows, axes)
        first += group.num_rows


def sparse_specs(model: ModelConfig) -> tuple[RowSpec, RowSpec]:
    """Return the rows of the position table and of the move table."""
    return row_spec("position", model.position_rows), row_spec("move", model.move_rows)


def sparse_shapes(config: AppConfig) -> dict[str, tuple[int, ...]]:
    """Return the shapes of all weights of a configuration's network, by name."""
    return weight_shapes(config.model)


def weight_shapes(model: ModelConfig) -> dict[str, tuple[int, ...]]:
    """Return the shapes of all weights, by name, without allocating them."""
    position_spec, move_spec = sparse_specs(model)
    accumulators, hidden, context = model.accumulators, model.hidden, model.context
    return {
        "position_table": (position_spec.num_rows, accumulators),
        "position_bias": (accumulators,),
        "hidden_weight": (accumulators, hidden),
        "hidden_bias": (hidden,),
        "value_weight": (hidden,),
        "value_bias": (1,),
        "context_weight": (hidden, context),
        "context_bias": (context,),
        "move_table": (move_spec.num_rows, context),
        "move_weight": (context // 2,),
    }


def initial_weights(
    model: ModelConfig, position_rows: int, move_rows: int, seed: int
) -> SparseWeights:
    """Draw the weights of a new network: its policy is nearly uniform, its value nearly 0."""
    random = np.random.default_rng(seed)

    def normal(deviation: float, *shape: int) -> npt.NDArray[np.float32]:
        return (random.standard_normal(shape, dtype=np.float32) * np.float32(deviation)).astype(
            np.float32
        )

    def zeros(*shape: int) -> npt.NDArray[np.float32]:
        return np.zeros(shape, dtype=np.float32)

    accumulators, hidden, context = model.accumulators, model.hidden, model.context
    arrays = SparseWeights(
        position_table=normal(0.08, position_rows, accumulators),
        position_bias=zeros(accumulators),
        hidden_weight=normal(accumulators**-0.5, accumulators, hidden),
        hidden_bias=zeros(hidden),
        value_weight=normal(0.05, hidden),
        value_bias=zeros(1),
        context_weight=normal(0.3 * hidden**-0.5, hidden, context),
        context_bias=zeros(context),
        move_table=normal(0.05, move_rows, context),
        move_weight=normal(0.1, context // 2),
    )
    # The linear parts begin at zero: the first accumulator goes straight into the value, and the
    # first feature of a move, times a context that begins at 1, straight into its logit.
    arrays.position_table[:, 0] = 0.0
    arrays.move_table[:, 0] = 0.0
    arrays.context_bias[0] = 1.0
    return arrays


def require_same_shapes(own: Weights, weights: Mapping[str, npt.NDArray[np.generic]]) -> None:
    """Raise `WeightsError` unless `weights` have the names and shapes of `own`."""
    for name in weights.keys() - own.keys():
        raise WeightsError(f"the weights belong to another network: a sparse one has no {name}")
    for name, array in own.items():
        if name not in weights:
            raise WeightsError(f"the weights belong to another network: they lack {name}")
        if weights[name].shape != array.shape:
            raise WeightsError(
                f"{name}: the weights have shape {weights[name].shape}, the network needs "
                f"{array.shape}"
            )


class RowStore:
    """Room for the rows of the plies of a rollout, which is used again for the next one."""

    def __init__(self, network: SparseNetwork, plies: int) -> None:
        """Reserve memory, which the system provides when it is first written.

        Args:
            network: the network that plays and learns.
            plies: ``S``, plies of all games together.
        """
        self.network = network
        words = min(plies * WORDS_PER_PLY, MAX_BYTES // np.dtype(np.uint16).itemsize)
        self.rows = KeptRows(np.empty(words, dtype=np.uint16), np.full(plies, -1, dtype=np.int64))

    def predict(self, positions: Positions, first: int) -> Prediction:
        """Let the network predict, and keep the rows as those of the plies from `first` on."""
        return self.network.predict(positions, self.rows, first)

"""The sparse network itself: rows in, log-probabilities of the legal moves and a value out.

::

    position rows --sum--> accumulators [H] --clip--> hidden [U] --clip--> value, context [2 D]
    move rows     --sum--> features [2 D] of a move
    logit of a move = context[:D] . features[:D] + weights . relu(context[D:] + features[D:])

The first accumulator is linear and goes straight into the value. Clipping is to 0 .. 1, as in the
NNUE networks of computer Shogi: activations cannot grow.
"""

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from keisei.constants import MAX_LEGAL_MOVES
from keisei.network.sparse.row_store import WORDS_PER_PLY, KeptRows, keep_rows
from keisei.shogi.attack_maps import AttackMaps
from keisei.shogi.jit import float32, int64, jit, jit_inner, jit_math, jit_math_caller
from keisei.shogi.move_rows import MAX_ROWS_PER_MOVE, write_move_rows
from keisei.shogi.packed import unpack
from keisei.shogi.position import Array, Record, Records, new_positions
from keisei.shogi.position_rows import (
    MAX_POSITION_ROWS,
    MateThreat,
    find_mate_threat,
    write_position_rows,
)
from keisei.shogi.row_numbering import RowSpec

Floats = npt.NDArray[np.float32]

ZERO: Final = float32(0.0)
ONE: Final = float32(1.0)
BLOCK: Final = 4
"""Sizes of layers are multiples of this: loops take as many rows of a matrix at a time."""


class SparseWeights(NamedTuple):
    """Weights, or anything of their shapes: gradients, moments of the optimizer."""

    position_table: Floats  # [position rows, H]
    position_bias: Floats  # [H]
    hidden_weight: Floats  # [H, U]
    hidden_bias: Floats  # [U]
    value_weight: Floats  # [U]
    value_bias: Floats  # [1]
    context_weight: Floats  # [U, 2 D]
    context_bias: Floats  # [2 D]
    move_table: Floats  # [move rows, 2 D]
    move_weight: Floats  # [D]


class Rows(NamedTuple):
    """Which rows the tables have, as kernels read it: `RowSpec.first_rows` of both tables."""

    position: npt.NDArray[np.int64]
    move: npt.NDArray[np.int64]
    needs_threat: bool
    """Whether a group needs the search for a threat of mate."""

    @classmethod
    def of(cls, position_spec: RowSpec, move_spec: RowSpec) -> "Rows":
        """Describe the tables to kernels."""
        return cls(
            position_spec.first_rows(),
            move_spec.first_rows(),
            position_spec.first_row("mate_threat") >= 0 or move_spec.first_row("mate_defence") >= 0,
        )


class PluginRows(NamedTuple):
    """Rows that plug-ins have written for ``B`` positions, -1 for none: `RowSpec.plugin_rows`."""

    position: npt.NDArray[np.int32]  # [B, K]
    move: npt.NDArray[np.int32]  # [B, M, K]


class Workspace(NamedTuple):
    """Scratch arrays for one position at a time; each thread has its own."""

    positions: Records  # [2]: one to unpack into, one all zero
    maps: AttackMaps
    threat: MateThreat
    position_rows: npt.NDArray[np.uint16]
    counts: npt.NDArray[np.int64]  # [1]: number of position rows
    move_rows: npt.NDArray[np.uint16]
    move_ends: npt.NDArray[np.int64]  # [593]: the place behind the last row of each move
    accumulators: Floats  # [H], clipped, except the first
    hidden: Floats  # [U], clipped
    context: Floats  # [2 D]
    features: Floats  # [593, 2 D]: sums of the rows of each move
    logits: Floats  # [593], then log-probabilities
    probabilities: Floats  # [593]

    @classmethod
    def of(
        cls,
        accumulators: int,
        hidden: int,
        context: int,
        *,
        position_plugins: int = 0,
        move_plugins: int = 0,
    ) -> "Workspace":
        """Allocate the arrays of a network with these sizes.

        Args:
            accumulators: ``H``.
            hidden: ``U``.
            context: ``2 D``.
            position_plugins: rows of plug-ins that a position can have at once.
            move_plugins: rows of plug-ins that a move can have at once.
        """

        def floats(*shape: int) -> Floats:
            return np.zeros(shape, dtype=np.float32)

        return cls(
            new_positions(2),
            AttackMaps.empty(),
            MateThreat.empty(),
            np.zeros(MAX_POSITION_ROWS + position_plugins, dtype=np.uint16),
            np.zeros(1, dtype=np.int64),
            np.zeros(MAX_LEGAL_MOVES * (MAX_ROWS_PER_MOVE + move_plugins), dtype=np.uint16),
            np.zeros(MAX_LEGAL_MOVES, dtype=np.int64),
            floats(accumulators),
            floats(hidden),
            floats(context),
            floats(MAX_LEGAL_MOVES, context),
            floats(MAX_LEGAL_MOVES),
            floats(MAX_LEGAL_MOVES),
        )


@jit_inner
def set_up(packed: Record, work: Workspace) -> Record:
    """Unpack a position into `work` and return it."""
    work.positions[0] = work.positions[1]
    unpack(packed, work.positions[0])
    return work.positions[0]


@jit_inner
def write_rows(
    position: Record,
    packed: Record,
    legal: Array,
    count: int,
    rows: Rows,
    position_plugins: Array,
    move_plugins: Array,
    work: Workspace,
) -> None:
    """Write the rows of a position and of its moves ``legal[:count]`` into `work`.

    ``position_plugins[K]`` and ``move_plugins[M, K]`` are rows of plug-ins, -1 for none. Without
    moves only those of the position are written.
    """
    if rows.needs_threat:
        find_mate_threat(position, packed.in_check != 0, work.threat)
    number = write_position_rows(
        position, packed, rows.position, work.maps, work.threat, work.position_rows
    )
    for plugin in range(len(position_plugins)):
        if position_plugins[plugin] >= 0:
            work.position_rows[number] = position_plugins[plugin]
            number += 1
    work.counts[0] = number
    if count:
        write_move_rows(
            position,
            packed,
            legal,
            count,
            rows.move,
            work.maps,
            work.threat,
            move_plugins,
            work.move_rows,
            work.move_ends,
        )


@jit_math
def _add_rows(table: Array, rows: Array, start: int, stop: int, out: Array) -> None:
    """Add the rows ``rows[start:stop]`` of a table to ``out``, four at a time."""
    index = start
    while index + 4 <= stop:
        a, b = np.uint64(rows[index]), np.uint64(rows[index + 1])
        c, d = np.uint64(rows[index + 2]), np.uint64(rows[index + 3])
        for j in range(len(out)):
            out[j] += (table[a, j] + table[b, j]) + (table[c, j] + table[d, j])
        index += 4
    while index < stop:
        a = np.uint64(rows[index])
        for j in range(len(out)):
            out[j] += table[a, j]
        index += 1


@jit_math
def _multiply(matrix: Array, bias: Array, vector: Array, out: Array) -> None:
    """Write ``bias + vector @ matrix`` into ``out``."""
    width = len(out)
    for j in range(width):
        out[j] = bias[j]
    for i in range(0, len(vector), 4):
        a, b, c, d = vector[i], vector[i + 1], vector[i + 2], vector[i + 3]
        for j in range(width):
            out[j] += (a * matrix[i, j] + b * matrix[i + 1, j]) + (
                c * matrix[i + 2, j] + d * matrix[i + 3, j]
            )


@jit_math
def _move_logit(
    weights: SparseWeights, rows: Array, start: int, stop: int, context: Array, features: Array
) -> float:
    """Sum the rows of a move into ``features`` and return its logit."""
    half = len(context) // 2
    for j in range(len(features)):
        features[j] = ZERO
    _add_rows(weights.move_table, rows, start, stop, features)
    logit = ZERO
    for j in range(half):
        logit += context[j] * features[j]
    for j in range(half):
        rectified = max(features[half + j] + context[half + j], ZERO)
        logit += weights.move_weight[j] * rectified
    return logit


@jit_math
def evaluate(weights: SparseWeights, work: Workspace) -> float:
    """Return the raw value (before tanh) of the position whose rows are in `work`.

    Accumulators and hidden layer are written into `work`.
    """
    accumulators, hidden = work.accumulators, work.hidden
    for j in range(len(accumulators)):
        accumulators[j] = weights.position_bias[j]
    _add_rows(weights.position_table, work.position_rows, 0, work.counts[0], accumulators)
    linear = accumulators[0]
    for j in range(len(accumulators)):
        accumulators[j] = min(max(accumulators[j], ZERO), ONE)
    accumulators[0] = linear
    _multiply(weights.hidden_weight, weights.hidden_bias, accumulators, hidden)
    value: float = weights.value_bias[0] + linear
    for j in range(len(hidden)):
        hidden[j] = min(max(hidden[j], ZERO), ONE)
        value += hidden[j] * weights.value_weight[j]
    return value


@jit_math_caller
def forward(weights: SparseWeights, work: Workspace, count: int) -> float:
    """Return the raw value (before tanh) of the position whose rows are in `work`.

    ``work.logits`` and ``work.probabilities`` get the policy of its `count` legal moves.
    """
    value = evaluate(weights, work)
    if count == 0:
        return value
    _multiply(weights.context_weight, weights.context_bias, work.hidden, work.context)
    start = 0
    for index in range(count):
        stop = work.move_ends[index]
        work.logits[index] = _move_logit(
            weights, work.move_rows, start, stop, work.context, work.features[index]
        )
        start = stop
    log_softmax(work.logits, work.probabilities, count)
    return value


@jit_inner
def log_softmax(logits: Array, probabilities: Array, count: int) -> None:
    """Replace ``logits[:count]`` by log-probabilities, and write the probabilities."""
    if count == 0:
        return
    top = logits[0]
    for index in range(1, count):
        top = max(top, logits[index])
    total = ZERO
    for index in range(count):
        logits[index] -= top
        probabilities[index] = np.exp(logits[index])
        total += probabilities[index]
    shift, share = np.log(total), ONE / total
    for index in range(count):
        logits[index] -= shift
        probabilities[index] *= share


@jit
def predict(
    weights: SparseWeights,
    rows: Rows,
    work: Workspace,
    packed: Records,
    legal: Array,
    counts: Array,
    plugins: PluginRows,
    kept: KeptRows,
    first: int,
    log_probs: Array,
    values: Array,
    start: int,
    stop: int,
) -> None:
    """Write the prediction of positions `start` to `stop` into ``log_probs[B, M]``, ``values[B]``.

    The padding of ``log_probs`` becomes minus infinity. Unless `kept` is empty, the rows are kept
    there as those of the plies from `first` on.
    """
    # Each range has room of its own, so that threads need not agree.
    free = (first + start) * WORDS_PER_PLY
    end = min((first + stop) * WORDS_PER_PLY, len(kept.words))
    for index in range(start, stop):
        count = int64(counts[index])
        position = set_up(packed[index], work)
        write_rows(
            position,
            packed[index],
            legal[index],
            count,
            rows,
            plugins.position[index],
            plugins.move[index],
            work,
        )
        if len(kept.starts):
            behind = keep_rows(work, legal[index], count, kept.words, free, end)
            kept.starts[first + index] = free if behind >= 0 else -1
            free = max(free, behind)
        values[index] = np.tanh(forward(weights, work, count))
        for k in range(count):
            log_probs[index, k] = work.logits[k]
        for k in range(count, log_probs.shape[1]):
            log_probs[index, k] = -np.inf

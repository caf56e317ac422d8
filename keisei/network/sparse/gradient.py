"""Gradient of the PPO loss of the sparse network, sample by sample.

The loss is that of `keisei.ppo.losses`, whose torch implementation is the oracle of the tests.
Legal moves and rows are computed from packed positions again, as for the towers.
"""

from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from keisei.constants import MOVE_BUFFER
from keisei.network.sparse.forward import (
    ONE,
    ZERO,
    Floats,
    PluginRows,
    Rows,
    SparseWeights,
    Workspace,
    forward,
    set_up,
    write_rows,
)
from keisei.network.sparse.row_store import KeptRows, read_rows
from keisei.shogi.jit import float32, jit, jit_inner, jit_math, jit_math_caller
from keisei.shogi.movegen import legal_moves
from keisei.shogi.position import Array, Records

NEGLIGIBLE: Final = 1e-5
"""Moves whose logit has a smaller derivative, relative to an advantage of 1, are left out.

Of some 70 legal moves a trained policy considers few. After 40 and 70 CPU-seconds of training
(entropy 0.8 and 0.6 nats, minibatches of 2,048) the gradient without the others differed by 0.3 to
0.4 % of its norm and took a quarter less time. A larger limit gains little: 3e-5 changed the
gradient by 1 %, 1e-4 by 2 to 5 %, 3e-4 by 6 to 12 % for another tenth of the time. The derivatives
that are left out have the same sign, so they add up.
"""

# Sums over the samples of a minibatch.
POLICY_LOSS, VALUE_LOSS, ENTROPY, EMA_KL, APPROX_KL, CLIPPED, NUM_SUMS = range(7)


class Gradient(NamedTuple):
    """The gradient that one thread adds up."""

    values: SparseWeights
    """Derivatives, of the shapes of the weights; rows that are not marked are zero."""

    position_marks: npt.NDArray[np.uint8]  # [position rows]: 1 for rows with a derivative
    move_marks: npt.NDArray[np.uint8]  # [move rows]
    sums: npt.NDArray[np.float64]  # [NUM_SUMS]

    @classmethod
    def like(cls, weights: SparseWeights) -> "Gradient":
        """Allocate a zero gradient for `weights`."""
        return cls(
            zeros_like(weights),
            np.zeros(len(weights.position_table), dtype=np.uint8),
            np.zeros(len(weights.move_table), dtype=np.uint8),
            np.zeros(NUM_SUMS),
        )


class Derivatives(NamedTuple):
    """Scratch arrays of the backward pass; each thread has its own."""

    legal: npt.NDArray[np.uint16]  # [1024]
    reference: Floats  # [593]: log-probabilities by the averaged weights
    log_probs: Floats  # [593]: derivative of the policy loss by the log-probability of each move
    accumulators: Floats  # [H]
    hidden: Floats  # [U]
    context: Floats  # [2 D]
    features: Floats  # [2 D]

    @classmethod
    def of(cls, work: Workspace) -> "Derivatives":
        """Allocate the arrays that belong to a workspace."""
        return cls(
            np.zeros(MOVE_BUFFER, dtype=np.uint16),
            np.zeros_like(work.logits),
            np.zeros_like(work.logits),
            np.zeros_like(work.accumulators),
            np.zeros_like(work.hidden),
            np.zeros_like(work.context),
            np.zeros_like(work.context),
        )


class Samples(NamedTuple):
    """A rollout, flat, and the samples of a minibatch."""

    indices: npt.NDArray[np.int64]  # [B]: places of the samples in the arrays [S] below
    advantages: Floats  # [B]: normalized
    packed: Records  # [S]
    actions: npt.NDArray[np.uint16]  # [S]
    log_probs: Floats  # [S]: of the actions, when they were played
    returns: Floats  # [S]
    learns_policy: npt.NDArray[np.bool_]  # [S]
    target_actions: npt.NDArray[np.uint16]  # [S, K]: moves of a search; K is 0 without one
    target_probs: Floats  # [S, K]: of these moves; 0 beyond the last of them
    plugins: PluginRows  # of the samples [B]
    kept: KeptRows  # of the rollout [S], or empty


class LossSettings(NamedTuple):
    """Settings of the loss, as kernels read them."""

    clip_range: float
    dual_clip: float
    """Probability ratio beyond which moves with a negative advantage are not pushed either."""

    policy_scale: float
    """One over the number of samples that the policy is trained on."""

    value_scale: float
    """Weight of the value loss over the number of samples."""

    entropy_weight: float
    ema_kl_weight: float
    negligible: float


def zeros_like(weights: SparseWeights) -> SparseWeights:
    """Allocate zeros of the shapes of `weights`."""
    return SparseWeights(*(np.zeros_like(array) for array in weights))


@jit
def add_gradient(
    weights: SparseWeights,
    reference: SparseWeights,
    rows: Rows,
    work: Workspace,
    scratch: Derivatives,
    gradient: Gradient,
    samples: Samples,
    settings: LossSettings,
    start: int,
    stop: int,
) -> None:
    """Add the gradient of samples `start` to `stop` of the minibatch to `gradient`.

    Args:
        weights: the weights under training.
        reference: the averaged weights, read only if ``settings.ema_kl_weight`` is above 0.
        rows: the rows of the tables.
        work: scratch of the forward pass.
        scratch: scratch of the backward pass.
        gradient: where derivatives, marks and sums are added.
        samples: the minibatch.
        settings: settings of the loss.
        start: first sample.
        stop: the one behind the last sample.
    """
    sums = gradient.sums
    for number in range(start, stop):
        sample = samples.indices[number]
        packed = samples.packed[sample]
        entry = samples.kept.starts[sample] if len(samples.kept.starts) else -1
        if entry >= 0:
            count = read_rows(samples.kept.words, entry, work, scratch.legal)
        else:
            position = set_up(packed, work)
            count, _ = legal_moves(position, scratch.legal)
            write_rows(
                position,
                packed,
                scratch.legal,
                count,
                rows,
                samples.plugins.position[number],
                samples.plugins.move[number],
                work,
            )
        has_reference = settings.ema_kl_weight > 0.0 and samples.learns_policy[sample]
        if has_reference:
            forward(reference, work, count)
            for k in range(count):
                scratch.reference[k] = work.logits[k]
        raw_value = forward(weights, work, count)
        sums[VALUE_LOSS] += _value_loss(raw_value, samples.returns[sample])
        # The derivative of the cross-entropy does not vanish where tanh is flat.
        slope = float32(settings.value_scale) * (np.tanh(raw_value) - samples.returns[sample])
        for j in range(len(scratch.context)):
            scratch.context[j] = ZERO
        if samples.learns_policy[sample]:
            for k in range(count):
                scratch.log_probs[k] = ZERO
            if samples.target_actions.shape[1]:
                total = _target_slopes(samples, sample, work, scratch, count, settings, sums)
            else:
                chosen = _index_of(samples.actions[sample], scratch.legal, count)
                total = _surrogate_slope(
                    work.logits[chosen] - samples.log_probs[sample],
                    samples.advantages[number],
                    settings,
                    sums,
                )
                scratch.log_probs[chosen] = total
            _policy_backward(weights, work, scratch, gradient, settings, count, total)
        _trunk_backward(weights, work, scratch, gradient, slope)


@jit_inner
def _value_loss(raw_value: float, outcome: float) -> float:
    """Cross-entropy of winning chances: ``(1 + tanh(raw_value)) / 2`` and ``(1 + outcome) / 2``."""
    twice = 2.0 * raw_value
    softplus: float = max(twice, 0.0) + np.log1p(np.exp(-abs(twice)))
    return softplus - (1.0 + outcome) * raw_value


@jit_inner
def _surrogate_slope(
    log_ratio: float, advantage: float, settings: LossSettings, sums: Array
) -> float:
    """Derivative of the clipped surrogate by the log-probability of the chosen move."""
    ratio = np.exp(log_ratio)
    low, high = 1.0 - settings.clip_range, 1.0 + settings.clip_range
    surrogate = min(ratio * advantage, min(max(ratio, low), high) * advantage)
    is_pushed = ratio <= high if advantage >= 0.0 else ratio >= low
    if advantage < 0.0 and ratio > settings.dual_clip:
        surrogate = settings.dual_clip * advantage
        is_pushed = False
    sums[POLICY_LOSS] -= surrogate
    sums[APPROX_KL] += ratio - 1.0 - log_ratio
    if abs(ratio - 1.0) > settings.clip_range:
        sums[CLIPPED] += 1.0
    if not is_pushed:
        return ZERO
    return float32(-settings.policy_scale * advantage * ratio)


@jit_inner
def _index_of(action: int, legal: Array, count: int) -> int:
    index = 0
    while index < count - 1 and legal[index] != action:
        index += 1
    return index


@jit_inner
def _target_slopes(
    samples: Samples,
    sample: int,
    work: Workspace,
    scratch: Derivatives,
    count: int,
    settings: LossSettings,
    sums: Array,
) -> float:
    """Write derivatives of the cross-entropy of a target policy, and return their sum."""
    total = ZERO
    for target in range(samples.target_actions.shape[1]):
        probability = samples.target_probs[sample, target]
        if probability > ZERO:
            k = _index_of(samples.target_actions[sample, target], scratch.legal, count)
            slope = float32(-settings.policy_scale) * probability
            scratch.log_probs[k] = slope
            total += slope
            sums[POLICY_LOSS] -= probability * work.logits[k]
    return total


@jit_math_caller
def _policy_backward(
    weights: SparseWeights,
    work: Workspace,
    scratch: Derivatives,
    gradient: Gradient,
    settings: LossSettings,
    count: int,
    total: float,
) -> None:
    """Add the derivatives of the moves' rows, and write those of the context into `scratch`.

    `total` is the sum of ``scratch.log_probs[:count]``.
    """
    entropy, kl = ZERO, ZERO
    for k in range(count):
        log_prob, probability = work.logits[k], work.probabilities[k]
        entropy -= probability * log_prob
        if settings.ema_kl_weight > 0.0:
            kl += probability * (log_prob - scratch.reference[k])
    gradient.sums[ENTROPY] += entropy
    gradient.sums[EMA_KL] += kl
    entropy_weight = float32(settings.entropy_weight * settings.policy_scale)
    kl_weight = float32(settings.ema_kl_weight * settings.policy_scale)
    negligible = float32(settings.negligible * settings.policy_scale)
    start = 0
    for k in range(count):
        stop = work.move_ends[k]
        log_prob, probability = work.logits[k], work.probabilities[k]
        slope = probability * (entropy_weight * (log_prob + entropy) - total)
        if settings.ema_kl_weight > 0.0:
            slope += kl_weight * probability * (log_prob - scratch.reference[k] - kl)
        slope += scratch.log_probs[k]
        if abs(slope) >= negligible:
            _logit_backward(weights, work, scratch, gradient.values, slope, k)
            for index in range(start, stop):
                row = np.uint64(work.move_rows[index])
                gradient.move_marks[row] = 1
                _add(gradient.values.move_table[row], scratch.features)
        start = stop


@jit_math
def _add(target: Array, source: Array) -> None:
    for j in range(len(source)):
        target[j] += source[j]


@jit_math
def _logit_backward(
    weights: SparseWeights,
    work: Workspace,
    scratch: Derivatives,
    gradient: SparseWeights,
    slope: float,
    k: int,
) -> None:
    """Derivatives of one logit by the features of its move (written) and the context (added)."""
    features, context = work.features[k], work.context
    by_features, by_context = scratch.features, scratch.context
    half = len(context) // 2
    move_weight, by_move_weight = weights.move_weight, gradient.move_weight
    for j in range(half):
        by_features[j] = slope * context[j]
        by_context[j] += slope * features[j]
    for j in range(half):
        rectified = features[half + j] + context[half + j]
        passed = slope if rectified > ZERO else ZERO
        by_move_weight[j] += passed * rectified
        by_features[half + j] = passed * move_weight[j]
        by_context[half + j] += passed * move_weight[j]


@jit_math
def _trunk_backward(
    weights: SparseWeights,
    work: Workspace,
    scratch: Derivatives,
    gradient: Gradient,
    slope: float,
) -> None:
    """Add the derivatives of everything below context and value; `slope`: by the raw value."""
    values = gradient.values
    hidden, accumulators = work.hidden, work.accumulators
    by_context, by_hidden, by_accumulators = scratch.context, scratch.hidden, scratch.accumulators
    values.value_bias[0] += slope
    for j in range(len(by_context)):
        values.context_bias[j] += by_context[j]
    for i in range(len(hidden)):
        activation = hidden[i]
        by_hidden[i] = ZERO
        if activation > ZERO:  # half of all units are silent, and then nothing passes either
            values.value_weight[i] += slope * activation
            for j in range(len(by_context)):
                values.context_weight[i, j] += activation * by_context[j]
        if ZERO < activation < ONE:
            passed = slope * weights.value_weight[i]
            for j in range(len(by_context)):
                passed += by_context[j] * weights.context_weight[i, j]
            by_hidden[i] = passed
            values.hidden_bias[i] += passed
    for i in range(len(accumulators)):
        activation = accumulators[i]
        by_accumulators[i] = ZERO
        if activation > ZERO or i == 0:
            for j in range(len(hidden)):
                values.hidden_weight[i, j] += activation * by_hidden[j]
        if ZERO < activation < ONE or i == 0:
            passed = ZERO
            for j in range(len(hidden)):
                passed += by_hidden[j] * weights.hidden_weight[i, j]
            by_accumulators[i] = passed
    by_accumulators[0] += slope
    for j in range(len(accumulators)):
        values.position_bias[j] += by_accumulators[j]
    for index in range(work.counts[0]):
        row = np.uint64(work.position_rows[index])
        gradient.position_marks[row] = 1
        _add(values.position_table[row], by_accumulators)

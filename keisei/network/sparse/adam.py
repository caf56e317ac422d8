"""Adam for the sparse network: only rows of the tables that have a gradient are moved.

Two passes over the weights, each split over threads: `reduce_gradients` adds up the gradients of
all threads, always in the same order, and `adam_step` moves the weights. Rows without a gradient
keep their weights and moments, as in torch's ``SparseAdam``.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

from keisei.network.sparse.forward import ZERO, SparseWeights
from keisei.network.sparse.gradient import Gradient
from keisei.shogi.jit import float32, jit, jit_inner, jit_math
from keisei.shogi.position import Array

BETA1: Final = 0.9
ADAM_EPSILON: Final = 1e-5


class AdamSettings(NamedTuple):
    """Settings of one step, as kernels read them; rates include the correction of the bias."""

    rate: float
    position_rate: float
    """Learning rate of the position table."""

    move_rate: float
    """Learning rate of the move table."""

    scale: float
    """Factor of the gradient, below 1 if its norm is clipped."""

    beta2: float
    epsilon: float
    decay: float
    """Weight decay times learning rate, decoupled as in AdamW."""


def reduce_gradients(
    gradients: Sequence[Gradient], squares: npt.NDArray[np.float64], part: int, parts: int
) -> None:
    """Add the gradients of all threads to the first one, for one of `parts` shares of the rows.

    ``squares[part]`` gets the sum of the squares of the result. The kernels take two gradients at a
    time: one that took all of them would be compiled again for each number of threads.
    """
    total, *others = gradients
    for other in others:
        take_gradient(total, other, part, parts)
    squares[part] = sum_of_squares(total, part, parts)


@jit
def take_gradient(total: Gradient, other: Gradient, part: int, parts: int) -> None:
    """Add one of `parts` shares of another thread's gradient to the total, and clear it there."""
    _take_rows(
        total.values.position_table,
        total.position_marks,
        other.values.position_table,
        other.position_marks,
        part,
        parts,
    )
    _take_rows(
        total.values.move_table,
        total.move_marks,
        other.values.move_table,
        other.move_marks,
        part,
        parts,
    )
    if part == 0:
        for target, source in zip(_layers(total.values), _layers(other.values)):  # noqa: B905
            _take(target, source)


@jit
def sum_of_squares(gradient: Gradient, part: int, parts: int) -> float:
    """Return the sum of the squares of one of `parts` shares of a gradient."""
    square = _squares_of_rows(gradient.values.position_table, gradient.position_marks, part, parts)
    square += _squares_of_rows(gradient.values.move_table, gradient.move_marks, part, parts)
    if part == 0:
        for layer in _layers(gradient.values):
            square += _square(layer)
    return square


@jit_inner
def _layers(weights: SparseWeights) -> tuple[Array, ...]:
    """All weights but the tables, flat."""
    return (
        weights.position_bias,
        weights.hidden_weight.reshape(-1),
        weights.hidden_bias,
        weights.value_weight,
        weights.value_bias,
        weights.context_weight.reshape(-1),
        weights.context_bias,
        weights.move_weight,
    )


@jit
def clear_gradient(gradient: Gradient) -> None:
    """Set a gradient to zero."""
    values = gradient.values
    _clear_rows(values.position_table, gradient.position_marks)
    _clear_rows(values.move_table, gradient.move_marks)
    for layer in _layers(values):
        _clear(layer)


@jit_inner
def _clear(array: Array) -> None:
    for j in range(len(array)):
        array[j] = ZERO


@jit_inner
def _clear_rows(table: Array, marks: Array) -> None:
    for row in range(len(marks)):
        if marks[row]:
            marks[row] = 0
            _clear(table[row])


@jit_math
def _take(target: Array, source: Array) -> None:
    """Add ``source`` to ``target`` and set it to zero."""
    for j in range(len(target)):
        target[j] += source[j]
        source[j] = ZERO


@jit_math
def _take_rows(
    target: Array, target_marks: Array, source: Array, source_marks: Array, part: int, parts: int
) -> None:
    """Add the marked rows of one share to ``target``, and clear them."""
    for row in range(part, len(source_marks), parts):
        if source_marks[row]:
            source_marks[row] = 0
            target_marks[row] = 1
            _take(target[row], source[row])


@jit_math
def _square(array: Array) -> float:
    total = ZERO
    for j in range(len(array)):
        total += array[j] * array[j]
    return total


@jit_math
def _squares_of_rows(table: Array, marks: Array, part: int, parts: int) -> float:
    total = 0.0
    for row in range(part, len(marks), parts):
        if marks[row]:
            total += _square(table[row])
    return total


@jit
def adam_step(
    weights: SparseWeights,
    gradient: Gradient,
    means: SparseWeights,
    squares: SparseWeights,
    settings: AdamSettings,
    part: int,
    parts: int,
) -> None:
    """Move one of `parts` shares of the weights, and clear their gradient.

    Args:
        weights: the weights.
        gradient: the sum of all threads.
        means: moving averages of the gradient.
        squares: moving averages of its squares.
        settings: rates of this step.
        part: the share.
        parts: number of shares.
    """
    values = gradient.values
    _move_rows(
        weights.position_table,
        values.position_table,
        gradient.position_marks,
        means.position_table,
        squares.position_table,
        settings.position_rate,
        settings,
        part,
        parts,
    )
    _move_rows(
        weights.move_table,
        values.move_table,
        gradient.move_marks,
        means.move_table,
        squares.move_table,
        settings.move_rate,
        settings,
        part,
        parts,
    )
    if part == 0:
        layers, slopes = _layers(weights), _layers(values)
        mean_layers, square_layers = _layers(means), _layers(squares)
        for number in range(len(layers)):
            _move(
                layers[number],
                slopes[number],
                mean_layers[number],
                square_layers[number],
                settings.rate,
                settings,
            )


@jit_math
def _move_rows(
    weights: Array,
    gradient: Array,
    marks: Array,
    means: Array,
    squares: Array,
    rate: float,
    settings: AdamSettings,
    part: int,
    parts: int,
) -> None:
    for row in range(part, len(marks), parts):
        if marks[row]:
            marks[row] = 0
            _move(weights[row], gradient[row], means[row], squares[row], rate, settings)


@jit_math
def _move(
    weights: Array,
    gradient: Array,
    means: Array,
    squares: Array,
    rate: float,
    settings: AdamSettings,
) -> None:
    scale, keep = float32(settings.scale), float32(1.0 - settings.decay)
    new1, new2 = float32(1.0 - BETA1), float32(1.0 - settings.beta2)
    step, epsilon = float32(rate), float32(settings.epsilon)
    for j in range(len(weights)):
        slope = gradient[j] * scale
        means[j] += new1 * (slope - means[j])
        squares[j] += new2 * (slope * slope - squares[j])
        weights[j] = weights[j] * keep - step * means[j] / (np.sqrt(squares[j]) + epsilon)
        gradient[j] = ZERO

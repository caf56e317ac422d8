"""Sums of gradients, and Adam on the rows that have one, against NumPy and torch."""

import math

import numpy as np
import numpy.typing as npt
import pytest
import torch

from keisei.network.sparse.adam import (
    BETA1,
    AdamSettings,
    adam_step,
    clear_gradient,
    reduce_gradients,
)
from keisei.network.sparse.forward import SparseWeights
from keisei.network.sparse.gradient import Gradient, zeros_like
from tests.sampling import sample

BETA2, EPSILON, RATE = 0.99, 1e-5, 0.01
TABLES = {"position_table": "position_marks", "move_table": "move_marks"}


def weights(random: np.random.Generator) -> SparseWeights:
    """Weights of an imaginary network with tables of 11 and 13 rows."""
    shapes = [(11, 8), (8,), (8, 4), (4,), (4,), (1,), (4, 8), (8,), (13, 8), (4,)]
    return SparseWeights(*(random.normal(size=shape).astype(np.float32) for shape in shapes))


def random_gradient(like: SparseWeights, random: np.random.Generator) -> Gradient:
    """A gradient in which about half of the rows are marked."""
    gradient = Gradient.like(like)
    for name, array in gradient.values._asdict().items():
        array[...] = random.normal(size=array.shape) * 10.0 ** random.uniform(-4, 0)
        if name in TABLES:
            marks = getattr(gradient, TABLES[name])
            marks[:] = random.random(len(marks)) < 0.5
            array[marks == 0] = 0.0
    return gradient


def settings_of(step: int, *, scale: float = 1.0, decay: float = 0.0) -> AdamSettings:
    rate = RATE * math.sqrt(1.0 - BETA2**step) / (1.0 - BETA1**step)
    return AdamSettings(rate, 0.5 * rate, 0.25 * rate, scale, BETA2, EPSILON, decay)


def take_step(
    arrays: SparseWeights,
    gradient: Gradient,
    moments: tuple[SparseWeights, SparseWeights],
    settings: AdamSettings,
    parts: int = 1,
) -> None:
    for part in range(parts):
        adam_step(arrays, gradient, *moments, settings, part, parts)


@pytest.mark.kernels
@pytest.mark.parametrize("threads", [1, 2, 3])
def test_gradients_of_all_threads_are_added(threads: int) -> None:
    random = np.random.default_rng(0)
    like = weights(random)
    gradients = tuple(random_gradient(like, random) for _ in range(threads))
    expected = [sum(arrays) for arrays in zip(*(g.values for g in gradients), strict=True)]
    marks = [
        np.max([getattr(gradient, name) for gradient in gradients], axis=0)
        for name in TABLES.values()
    ]
    squares = np.zeros(threads)
    for part in range(threads):
        reduce_gradients(gradients, squares, part, threads)
    for found, array in zip(gradients[0].values, expected, strict=True):
        assert np.allclose(found, array, rtol=1e-6, atol=1e-7)
    assert np.array_equal(gradients[0].position_marks, marks[0])
    assert np.array_equal(gradients[0].move_marks, marks[1])
    norm = np.sqrt(sum(float((np.asarray(array, dtype=float) ** 2).sum()) for array in expected))
    assert np.sqrt(squares.sum()) == pytest.approx(norm, rel=1e-5)
    for other in gradients[1:]:
        assert not any(array.any() for array in (*other.values, *other[1:3]))


@pytest.mark.kernels
def test_a_gradient_is_cleared() -> None:
    random = np.random.default_rng(0)
    gradient = random_gradient(weights(random), random)
    clear_gradient(gradient)
    assert not any(array.any() for array in (*gradient.values, *gradient[1:3]))


def slow_step(
    array: npt.NDArray[np.float64],
    slope: npt.NDArray[np.float64],
    mean: npt.NDArray[np.float64],
    square: npt.NDArray[np.float64],
    settings: AdamSettings,
    rate: float,
) -> None:
    """Adam with decoupled weight decay, in place."""
    slope = slope * settings.scale
    mean[...] = BETA1 * mean + (1 - BETA1) * slope
    square[...] = settings.beta2 * square + (1 - settings.beta2) * slope**2
    array[...] = array * (1 - settings.decay) - rate * mean / (np.sqrt(square) + settings.epsilon)


@pytest.mark.kernels
@pytest.mark.parametrize("parts", [1, 2])
def test_steps_equal_plain_numpy(parts: int) -> None:
    random = np.random.default_rng(1)
    arrays = weights(random)
    moments = zeros_like(arrays), zeros_like(arrays)
    slow = {name: array.astype(float) for name, array in arrays._asdict().items()}
    slow_moments = [{name: np.zeros_like(array) for name, array in slow.items()} for _ in range(2)]
    for step in range(1, sample(30, 3)):
        settings = settings_of(step, scale=0.5, decay=0.003)
        gradient = random_gradient(arrays, random)
        slopes = {name: array.astype(float) for name, array in gradient.values._asdict().items()}
        marks = {name: getattr(gradient, marks) == 1 for name, marks in TABLES.items()}
        take_step(arrays, gradient, moments, settings, parts)
        assert not any(array.any() for array in (*gradient.values, *gradient[1:3]))
        for name, array in slow.items():
            rate = {"position_table": settings.position_rate, "move_table": settings.move_rate}.get(
                name, settings.rate
            )
            rows = np.flatnonzero(marks[name]) if name in marks else np.arange(len(array))
            taken = [a[rows] for a in (array, slopes[name], *(m[name] for m in slow_moments))]
            slow_step(taken[0], taken[1], taken[2], taken[3], settings, rate)
            array[rows] = taken[0]
            for moment, new in zip(slow_moments, taken[2:], strict=True):
                moment[name][rows] = new
    for name, array in slow.items():
        assert np.allclose(getattr(arrays, name), array, rtol=1e-5, atol=1e-6), name


@pytest.mark.kernels
def test_rows_without_a_gradient_do_not_move() -> None:
    random = np.random.default_rng(2)
    arrays = weights(random)
    before = SparseWeights(*(array.copy() for array in arrays))
    gradient = random_gradient(arrays, random)
    marks = gradient.position_marks.copy()
    moments = zeros_like(arrays), zeros_like(arrays)
    take_step(arrays, gradient, moments, settings_of(1, decay=0.1))
    moved = (arrays.position_table != before.position_table).any(axis=1)
    assert np.array_equal(moved, marks == 1)
    assert np.array_equal(moments[1].position_table.any(axis=1), marks == 1)


@pytest.mark.kernels
def test_tables_move_as_with_sparse_adam_of_torch() -> None:
    random = np.random.default_rng(3)
    arrays = weights(random)
    moments = zeros_like(arrays), zeros_like(arrays)
    table = torch.tensor(arrays.position_table, requires_grad=True)
    optimizer = torch.optim.SparseAdam([table], lr=0.5 * RATE, betas=(BETA1, BETA2), eps=EPSILON)
    for step in range(1, sample(30, 4)):
        gradient = random_gradient(arrays, random)
        rows = torch.from_numpy(np.flatnonzero(gradient.position_marks))
        slopes = torch.tensor(gradient.values.position_table)[rows]
        table.grad = torch.sparse_coo_tensor(
            rows[None], slopes, table.shape, check_invariants=True
        ).coalesce()
        optimizer.step()  # type: ignore[no-untyped-call]
        take_step(arrays, gradient, moments, settings_of(step))
    assert np.allclose(arrays.position_table, table.detach().numpy(), rtol=1e-5, atol=1e-6)


@pytest.mark.kernels
def test_layers_move_as_with_adam_of_torch_but_for_the_place_of_epsilon() -> None:
    """Epsilon is added to the uncorrected root, as in SparseAdam and as the end of section 2 of
    Kingma and Ba (2015) suggests; ``torch.optim.Adam`` corrects the root first, which makes its
    epsilon smaller by the square root of ``1 - beta2**step``: ten times in the first step.
    """
    random = np.random.default_rng(4)
    arrays = weights(random)
    moments = zeros_like(arrays), zeros_like(arrays)
    layer = torch.tensor(arrays.hidden_weight, requires_grad=True)
    optimizer = torch.optim.Adam([layer], lr=RATE, betas=(BETA1, BETA2))
    for step in range(1, sample(30, 4)):
        gradient = random_gradient(arrays, random)
        gradient.values.hidden_weight[...] *= 1e-3  # so that epsilon counts
        layer.grad = torch.tensor(gradient.values.hidden_weight)
        optimizer.param_groups[0]["eps"] = EPSILON / math.sqrt(1.0 - BETA2**step)
        optimizer.step()
        take_step(arrays, gradient, moments, settings_of(step))
    assert np.allclose(arrays.hidden_weight, layer.detach().numpy(), rtol=1e-5, atol=1e-6)

"""`PlaneSplit`: planes that vary over the board apart from those that are constant over it.

A hand or the ply has one value for the whole board. Through a 3x3 convolution it would cost 729
multiplications for each channel instead of one, and seem smaller at the edge of the board, where
the convolution reads zeros beyond it.
"""

import math
from collections.abc import Sequence
from itertools import pairwise

import torch
from torch import Tensor, nn

from keisei.errors import ModelError
from keisei.network.towers.model import start


class PlaneSplit:
    """Divides planes ``[B, C, 9, 9]`` into varying ones and the values of constant ones."""

    def __init__(self, in_planes: int, constant_planes: Sequence[int]) -> None:
        """Divide the planes.

        Args:
            in_planes: C, their number.
            constant_planes: indices of those that are constant over the board; may be empty.

        Raises:
            ModelError: There are no such planes, or no others.
        """
        chosen = set(constant_planes)
        if not chosen <= set(range(in_planes)):
            raise ModelError(f"constant_planes must be from 0 to {in_planes - 1}: {sorted(chosen)}")
        if len(chosen) == in_planes:
            raise ModelError("all planes are constant over the board: add some that are not")
        self.constant = tuple(sorted(chosen))
        """Indices of the planes that are constant over the board."""

        self.varying = tuple(plane for plane in range(in_planes) if plane not in chosen)
        """Indices of the other planes."""

        self.varying_gain = math.sqrt(len(self.varying) / in_planes)
        """Gain of the layer of varying planes, relative to that of one layer of all planes."""

        self._constant_gain = math.sqrt(len(self.constant) / in_planes)
        self._constant_runs = _runs(self.constant)
        self._varying_runs = _runs(self.varying)

    def constant_layer(self, width: int, gain: float) -> nn.Linear | None:
        """Make the layer of constant planes, whose output is added at every square, if any are.

        Together with the layer of varying planes it scales its input by `gain`.
        """
        if not self.constant:
            return None
        layer = nn.Linear(len(self.constant), width, bias=False)  # the stem has the biases
        start(layer, gain * self._constant_gain)
        return layer

    def varying_planes(self, planes: Tensor) -> Tensor:
        """Return the planes that vary over the board, ``[B, V, 9, 9]``."""
        return _joined([planes[:, first:stop] for first, stop in self._varying_runs])

    def constant_values(self, planes: Tensor) -> Tensor:
        """Return the values of the planes that are constant over the board, ``[B, C - V]``."""
        return _joined([planes[:, first:stop, 0, 0] for first, stop in self._constant_runs])


def _runs(planes: Sequence[int]) -> tuple[tuple[int, int], ...]:
    """Group ascending indices into ranges (first, stop): slices are views, index lists copies."""
    breaks = [i for i, (a, b) in enumerate(pairwise(planes), 1) if b != a + 1]
    starts, stops = [0, *breaks], [*breaks, len(planes)]
    return tuple(
        (planes[start], planes[stop - 1] + 1)
        for start, stop in zip(starts, stops, strict=True)
        if start < stop
    )


def _joined(parts: Sequence[Tensor]) -> Tensor:
    return parts[0] if len(parts) == 1 else torch.cat(list(parts), dim=1)

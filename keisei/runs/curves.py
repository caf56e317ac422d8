"""Curves of any length in bounded memory: each point stands for several rows.

Rows arrive one by one, for days. Up to `MAX_POINTS` of them have a point of their own. After that,
neighbouring points are merged in pairs, so that a point stands for two rows, later for four and so
on. A point keeps the minimum, the maximum and the mean of its rows: a spike of a single row stays
visible however long the run is.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

MAX_POINTS: Final = 1024
"""Maximum number of points of a curve: more than a plot has pixels to show."""

MAX_METRICS: Final = 1024
"""Maximum number of metrics; later ones are dropped, so that memory is bounded."""

MAX_VALUE: Final = 1e100
"""Values beyond this are treated as missing: they would make sums infinite."""


class Curve(NamedTuple):
    """A metric over an axis, each array ``[points]``; points without a value are left out."""

    x: Floats
    mean: Floats
    low: Floats
    high: Floats


class Curves:
    """The curves of all metrics of a run over some `axes`, such as ``timestep``."""

    def __init__(self, axes: Sequence[str]) -> None:
        self._axes = {name: index for index, name in enumerate(axes)}
        self._columns: dict[str, int] = {}
        self.rows = 0
        self.stride = 1
        """Number of rows that a point stands for."""

        self._x: Floats = np.empty((0, len(self._axes)))
        self._low: Floats = np.empty((0, 0))
        self._high: Floats = np.empty((0, 0))
        self._sum: Floats = np.empty((0, 0))
        self._count: Floats = np.empty((0, 0))
        """Number of rows of each point that have a value."""

    @property
    def names(self) -> list[str]:
        """Names of the metrics, in the order of their first row."""
        return list(self._columns)

    def column(self, name: str) -> int | None:
        """Return the column of a metric in `append`, new if need be; None beyond `MAX_METRICS`."""
        index = self._columns.get(name)
        if index is None and len(self._columns) < MAX_METRICS:
            index = self._columns[name] = len(self._columns)
        return index

    def append(self, x: Floats, values: Floats) -> None:
        """Add rows.

        Args:
            x: ``[rows, axes]``.
            values: ``[rows, columns]``, one column for each metric so far; NaN, infinity and
                values beyond `MAX_VALUE` are missing values.
        """
        if len(x) == 0:
            return
        values = np.where(np.abs(values) <= MAX_VALUE, values, np.nan)
        self._widen(values.shape[1])
        points = (self.rows + np.arange(len(x))) // self.stride
        starts = np.flatnonzero(np.diff(points, prepend=-1))
        new = (
            x[np.append(starts[1:], len(x)) - 1],
            np.fmin.reduceat(values, starts, axis=0),
            np.fmax.reduceat(values, starts, axis=0),
            np.add.reduceat(np.nan_to_num(values), starts, axis=0),
            np.add.reduceat(np.isfinite(values).astype(np.float64), starts, axis=0),
        )
        is_continued = self.rows % self.stride != 0
        self.rows += len(x)
        self._x, self._low, self._high, self._sum, self._count = (
            np.concatenate(pair)
            for pair in zip(
                (self._x, self._low, self._high, self._sum, self._count), new, strict=True
            )
        )
        if is_continued:
            self._merge_at(len(self._x) - len(starts) - 1)
        while len(self._x) > MAX_POINTS:
            self._halve()

    def curve(self, name: str, axis: str) -> Curve:
        """Return a metric over one of the axes; empty for an unknown metric."""
        index = self._columns.get(name)
        if index is None or index >= self._low.shape[1]:
            return Curve(*(np.empty(0) for _ in range(4)))
        some = self._count[:, index] > 0
        return Curve(
            self._x[some, self._axes[axis]],
            self._sum[some, index] / self._count[some, index],
            self._low[some, index],
            self._high[some, index],
        )

    def means(self, names: Sequence[str], axis: str) -> tuple[Floats, Floats]:
        """Return (x ``[points]``, means ``[points, names]``) of several metrics; NaN if missing."""
        columns = np.full((len(self._x), len(names)), np.nan)
        for place, name in enumerate(names):
            index = self._columns.get(name)
            if index is not None and index < self._low.shape[1]:
                with np.errstate(invalid="ignore"):
                    columns[:, place] = self._sum[:, index] / self._count[:, index]
        return self._x[:, self._axes[axis]], columns

    def _widen(self, columns: int) -> None:
        """Add columns for new metrics, which are missing in the points so far."""
        missing = columns - self._low.shape[1]
        if missing <= 0:
            return
        self._low, self._high, self._sum, self._count = (
            np.pad(array, ((0, 0), (0, missing)), constant_values=value)
            for array, value in (
                (self._low, np.nan),
                (self._high, np.nan),
                (self._sum, 0.0),
                (self._count, 0.0),
            )
        )

    def _merge_at(self, place: int) -> None:
        """Merge a point with the one after it."""
        rest = np.arange(len(self._x)) != place + 1
        self._merge(slice(place, place + 1), slice(place + 1, place + 2))
        self._keep(rest)

    def _halve(self) -> None:
        """Merge all points in pairs."""
        pairs = len(self._x) // 2
        self._merge(slice(0, 2 * pairs, 2), slice(1, 2 * pairs, 2))
        self._keep(np.arange(len(self._x)) % 2 == 0)
        self.stride *= 2

    def _merge(self, target: slice, other: slice) -> None:
        self._x[target] = self._x[other]
        self._low[target] = np.fmin(self._low[target], self._low[other])
        self._high[target] = np.fmax(self._high[target], self._high[other])
        self._sum[target] += self._sum[other]
        self._count[target] += self._count[other]

    def _keep(self, chosen: npt.NDArray[np.bool_]) -> None:
        self._x, self._low, self._high, self._sum, self._count = (
            array[chosen] for array in (self._x, self._low, self._high, self._sum, self._count)
        )


SMOOTHING: Final = 1 / 30
"""Default reach of the moving average to either side, as a share of the curve."""


def smooth(values: Floats, share: float = SMOOTHING) -> Floats:
    """Return the centred moving average of `values`, ``[points]``, which does not lag behind.

    The window reaches the `share` of the points to either side.
    """
    reach = int(len(values) * share + 1e-9)
    if reach == 0:
        return values
    sums = np.concatenate([[0.0], np.cumsum(values)])
    places = np.arange(len(values))
    first = np.maximum(0, places - reach)
    last = np.minimum(len(values), places + reach + 1)
    return np.asarray((sums[last] - sums[first]) / (last - first))

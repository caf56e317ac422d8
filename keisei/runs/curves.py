"""Curves of any length in little memory: each point stands for several rows, with their extremes.

Rows come one by one, for days. Up to `MOST_POINTS` of them each has a point of its own. Then
neighbours are joined, two and two, and from there on a point stands for two rows, later for four
and so on. A point keeps the least, the largest and the mean value of its rows: a spike of a single
row stays visible however long the run is.
"""

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]

MOST_POINTS: Final = 1024
"""Points of a curve: more than a plot has pixels to show."""

MOST_COLUMNS: Final = 1024
"""Metrics that are kept; those that come later are left out, so that memory is bounded."""


LARGEST: Final = 1e100
"""Values beyond this are no measurements, and would make infinity of every sum."""


class Curve(NamedTuple):
    """A metric over time, each array ``[points]``. Points without a finite value are left out."""

    x: Floats
    mean: Floats
    low: Floats
    high: Floats


class Curves:
    """The curves of a run. `axes` name what is counted along a run, such as ``timestep``."""

    def __init__(self, axes: Sequence[str]) -> None:
        self._axes = {name: index for index, name in enumerate(axes)}
        self._columns: dict[str, int] = {}
        self.rows = 0
        self.stride = 1
        """How many rows a point stands for."""

        self._x: Floats = np.empty((0, len(self._axes)))
        self._low: Floats = np.empty((0, 0))
        self._high: Floats = np.empty((0, 0))
        self._sum: Floats = np.empty((0, 0))
        self._number: Floats = np.empty((0, 0))
        """How many rows of a point have a value."""

    @property
    def names(self) -> list[str]:
        """The metrics that were seen, in the order of their first row."""
        return list(self._columns)

    def column(self, name: str) -> int | None:
        """The place of a metric in rows to come, which is made for it; None if there are many."""
        index = self._columns.get(name)
        if index is None and len(self._columns) < MOST_COLUMNS:
            index = self._columns[name] = len(self._columns)
        return index

    def append(self, x: Floats, values: Floats) -> None:
        """Add rows.

        Args:
            x: ``[rows, axes]``.
            values: ``[rows, columns]``, with as many columns as there are by now; NaN, infinity
                and numbers that cannot be added up stand for no value.
        """
        if len(x) == 0:
            return
        values = np.where(np.abs(values) <= LARGEST, values, np.nan)
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
        self._x, self._low, self._high, self._sum, self._number = (
            np.concatenate(pair)
            for pair in zip(
                (self._x, self._low, self._high, self._sum, self._number), new, strict=True
            )
        )
        if is_continued:
            self._join_at(len(self._x) - len(starts) - 1)
        while len(self._x) > MOST_POINTS:
            self._halve()

    def curve(self, name: str, axis: str) -> Curve:
        """A metric over one of the axes; empty if nobody has seen it."""
        index = self._columns.get(name)
        if index is None or index >= self._low.shape[1]:
            return Curve(*(np.empty(0) for _ in range(4)))
        some = self._number[:, index] > 0
        return Curve(
            self._x[some, self._axes[axis]],
            self._sum[some, index] / self._number[some, index],
            self._low[some, index],
            self._high[some, index],
        )

    def means(self, names: Sequence[str], axis: str) -> tuple[Floats, Floats]:
        """(``[points]``, ``[points, names]``): several metrics at all points, NaN for no value."""
        columns = np.full((len(self._x), len(names)), np.nan)
        for place, name in enumerate(names):
            index = self._columns.get(name)
            if index is not None and index < self._low.shape[1]:
                with np.errstate(invalid="ignore"):
                    columns[:, place] = self._sum[:, index] / self._number[:, index]
        return self._x[:, self._axes[axis]], columns

    def _widen(self, columns: int) -> None:
        """Make room for metrics that the earlier points know nothing of."""
        missing = columns - self._low.shape[1]
        if missing <= 0:
            return
        self._low, self._high, self._sum, self._number = (
            np.pad(array, ((0, 0), (0, missing)), constant_values=value)
            for array, value in (
                (self._low, np.nan),
                (self._high, np.nan),
                (self._sum, 0.0),
                (self._number, 0.0),
            )
        )

    def _join_at(self, place: int) -> None:
        """Make one point of two neighbours."""
        rest = np.arange(len(self._x)) != place + 1
        self._merge(slice(place, place + 1), slice(place + 1, place + 2))
        self._keep(rest)

    def _halve(self) -> None:
        pairs = len(self._x) // 2
        self._merge(slice(0, 2 * pairs, 2), slice(1, 2 * pairs, 2))
        self._keep(np.arange(len(self._x)) % 2 == 0)
        self.stride *= 2

    def _merge(self, target: slice, other: slice) -> None:
        self._x[target] = self._x[other]
        self._low[target] = np.fmin(self._low[target], self._low[other])
        self._high[target] = np.fmax(self._high[target], self._high[other])
        self._sum[target] += self._sum[other]
        self._number[target] += self._number[other]

    def _keep(self, chosen: npt.NDArray[np.bool_]) -> None:
        self._x, self._low, self._high, self._sum, self._number = (
            array[chosen] for array in (self._x, self._low, self._high, self._sum, self._number)
        )


def smooth(values: Floats, neighbourhoods: int = 30) -> Floats:
    """The mean of each value and its neighbours, which does not lag behind the values.

    A neighbourhood is one part in so many of the curve, on either side.
    """
    reach = len(values) // neighbourhoods
    if reach == 0:
        return values
    sums = np.concatenate([[0.0], np.cumsum(values)])
    places = np.arange(len(values))
    first = np.maximum(0, places - reach)
    last = np.minimum(len(values), places + reach + 1)
    return np.asarray((sums[last] - sums[first]) / (last - first))

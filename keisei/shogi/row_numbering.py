"""How rows of the sparse network are numbered: axes, groups of rows, and tables of groups.

`row_groups` has the groups themselves.
"""

import math
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from keisei.errors import KeiseiError
from keisei.shogi.packed import Positions

Table = Literal["position", "move"]


class PluginRowsError(KeiseiError, ValueError):
    """A plug-in's writer does not return rows of its group; the message names the group."""


@dataclass(frozen=True)
class Axis:
    """One of the values that number the rows of a group."""

    name: str
    values: tuple[str, ...]
    mirrored: tuple[int, ...] = ()
    """Index of each value's left-right mirror image; empty: each value is its own."""

    @property
    def size(self) -> int:
        """Number of values."""
        return len(self.values)

    def mirror(self, index: int) -> int:
        """Return the index of the mirror image of a value."""
        return self.mirrored[index] if self.mirrored else index

    def describe(self, index: int) -> str:
        """Return a value in words; numbers get the name of the axis: ``7g``, ``attackers 2+``."""
        value = self.values[index]
        return f"{self.name} {value}" if re.fullmatch(r"[-+/\d]+", value) else value


RowWriter = Callable[[Positions], npt.NDArray[Any]]
"""Writer of a plug-in's group: returns the rows that hold in ``B`` positions, as integers
``[B, K]``, or for the move table ``[B, M, K]``, where ``M`` is the width of ``legal_actions``. Rows
are numbered within the group, as `RowGroup.row` does; -1 stands for none."""


@dataclass(frozen=True)
class RowGroup:
    """A named sort of facts, numbered by the values of its axes (the last one counts fastest)."""

    name: str
    axes: tuple[Axis, ...]
    meaning: str
    """The fact that a row states."""

    write: RowWriter | None = None
    """Writer of a plug-in's group; kernels write the built-in ones."""

    max_active: int = 0
    """Largest number of rows of a plug-in's group that can hold at once: its ``K``."""

    @property
    def num_rows(self) -> int:
        """Number of rows."""
        return math.prod(axis.size for axis in self.axes)

    def values(self, row: int) -> tuple[int, ...]:
        """Return the index on each axis of a row of the group."""
        found = []
        for axis in reversed(self.axes):
            row, index = divmod(row, axis.size)
            found.append(index)
        return tuple(reversed(found))

    def row(self, values: Sequence[int]) -> int:
        """Return the row of the group with these indices on the axes."""
        row = 0
        for axis, index in zip(self.axes, values, strict=True):
            row = row * axis.size + index
        return row

    def mirror(self, row: int) -> int:
        """Return the row that holds in the mirror image of a position."""
        values = zip(self.axes, self.values(row), strict=True)
        return self.row([axis.mirror(index) for axis, index in values])

    def describe(self, row: int) -> str:
        """Return a row in words: ``pieces: own P, 7g, attacked, unprotected``."""
        values = zip(self.axes, self.values(row), strict=True)
        return f"{self.name}: {', '.join(axis.describe(index) for axis, index in values)}"


class Location(NamedTuple):
    """Where a row of a table belongs."""

    group: RowGroup
    row: int
    """Row within the group."""


@dataclass(frozen=True)
class RowSpec:
    """The rows of a table: groups, one after the other."""

    table: Table
    groups: tuple[RowGroup, ...]
    name: str
    """Name as in the settings: ``all``, ``all-threats``, ``pieces+hands``."""

    built_in: tuple[str, ...]
    """Names of all groups that kernels can write, chosen or not, in the kernels' order."""

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the groups."""
        return tuple(group.name for group in self.groups)

    @property
    def num_rows(self) -> int:
        """Number of rows of all groups."""
        return sum(group.num_rows for group in self.groups)

    @property
    def plugins(self) -> tuple[RowGroup, ...]:
        """Groups that plug-ins write."""
        return tuple(group for group in self.groups if group.write is not None)

    @property
    def max_plugin_rows(self) -> int:
        """Largest number of rows of plug-ins that can hold at once, per position or move."""
        return sum(group.max_active for group in self.plugins)

    def plugin_rows(self, positions: Positions) -> npt.NDArray[np.int32]:
        """Return the rows of the table that plug-ins write, -1 for none.

        The shape is ``[B, K]``, or ``[B, M, K]`` for the move table, with `max_plugin_rows` as
        ``K``: 0 without plug-ins.

        Raises:
            PluginRowsError: A plug-in returned something else than rows of its group.
        """
        shape: tuple[int, ...] = (len(positions.packed),)
        if self.table == "move":
            shape = positions.legal_actions.shape
        rows = np.empty((*shape, self.max_plugin_rows), dtype=np.int32)
        column = 0
        for group in self.plugins:
            assert group.write is not None
            written = np.asarray(group.write(positions))
            if written.shape != (*shape, group.max_active) or written.dtype.kind not in "iu":
                raise PluginRowsError(
                    f"{group.name}: its writer returned {written.dtype}{list(written.shape)}, "
                    f"not integers of the shape {[*shape, group.max_active]}"
                )
            if written.size and not -1 <= written.min() <= written.max() < group.num_rows:
                raise PluginRowsError(
                    f"{group.name}: its writer returned rows from {written.min()} to "
                    f"{written.max()}; it has rows 0 to {group.num_rows - 1}, and -1 for none"
                )
            shifted = np.where(
                written < 0, -1, written.astype(np.int64) + self.first_row(group.name)
            )
            rows[..., column : column + group.max_active] = shifted
            column += group.max_active
        return rows

    def first_row(self, name: str) -> int:
        """Return the first row of a group, or -1 if the table does not have it."""
        first = 0
        for group in self.groups:
            if group.name == name:
                return first
            first += group.num_rows
        return -1

    def first_rows(self) -> npt.NDArray[np.int64]:
        """First row of each built-in group of the table, -1 if it is left out."""
        return np.array([self.first_row(name) for name in self.built_in], dtype=np.int64)

    def locate(self, row: int) -> Location:
        """Return the group of a row, and its row within the group."""
        for group in self.groups:
            if row < group.num_rows:
                return Location(group, row)
            row -= group.num_rows
        raise IndexError(f"the {self.table} table has only {self.num_rows} rows")

    def mirror(self, row: int) -> int:
        """Return the row that holds in the mirror image of a position."""
        group, inner = self.locate(row)
        return row - inner + group.mirror(inner)

    def describe(self, row: int) -> str:
        """Return a row in words."""
        group, inner = self.locate(row)
        return group.describe(inner)

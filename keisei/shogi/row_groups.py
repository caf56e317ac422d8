"""Rows of the sparse network by name: which facts of a position and of a move it knows.

A row is a fact that holds or does not hold: "my silver stands on 7g, attacked and protected". A
`RowGroup` numbers the facts of one sort by the values of its axes; a `RowSpec` joins groups to the
rows of a table. Kernels (`position_rows`, `move_rows`) write the numbers of the rows that hold. All
facts follow from the rules and are in the mover's view; none of them says what a piece is worth.

>>> row_spec("position", "all").names[:3]
('pieces', 'threats', 'own_king')
>>> row_spec("position", "all-threats").num_rows == POSITION_ROWS.num_rows - 784
True
"""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal, NamedTuple

import numpy as np
import numpy.typing as npt

from keisei.constants import (
    BOARD_SIZE,
    NUM_HAND_KINDS,
    NUM_PIECE_KINDS,
    NUM_SQUARES,
)
from keisei.errors import KeiseiError
from keisei.shogi.packed import Positions
from keisei.shogi.types import SYMBOLS

Table = Literal["position", "move"]

MAX_ROWS: Final = 1 << 16
"""Rows of a table: their numbers are stored as uint16."""

NUM_MOVE_CODES: Final = NUM_PIECE_KINDS + 6 + NUM_HAND_KINDS
"""Ways to move: a kind that moves (14), a kind that promotes (6), a kind that is dropped (7)."""

NEAR: Final = 3
"""Rows and columns on each side of a king that count as near."""

NEAR_SIZE: Final = 2 * NEAR + 1
FAR_SIZE: Final = 2 * BOARD_SIZE - 1
MAX_COUNTED: Final = 2
"""Attackers of a square are counted as 0, 1, 2 or more."""

HAND_STEPS: Final = 18
"""Pieces of one kind in a hand, at most."""

PLY_STEPS: Final = 16
"""Parts of the way to the ply limit."""


class UnknownRowsError(KeiseiError, ValueError):
    """An unknown group of rows; the message lists the valid ones."""


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


RowWriter = Callable[[Positions], npt.NDArray[Any]]
"""Writer of a plug-in's group: ``[B, K]`` numbers of rows within the group (or ``[B, M, K]`` for
moves, in the order of the legal list), padded with -1."""


@dataclass(frozen=True)
class RowGroup:
    """A named sort of facts, numbered by the values of its axes (the last one counts fastest)."""

    name: str
    axes: tuple[Axis, ...]
    meaning: str
    """What it says when a row of the group holds."""

    write: RowWriter | None = None
    """Writer of a plug-in's group; the built-in ones are written by kernels."""

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
        return f"{self.name}: {', '.join(axis.values[index] for axis, index in values)}"


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

    def first_row(self, name: str) -> int:
        """Return the first row of a group, or -1 if the table does not have it."""
        first = 0
        for group in self.groups:
            if group.name == name:
                return first
            first += group.num_rows
        return -1

    def first_rows(self) -> npt.NDArray[np.int64]:
        """First row of each built-in group in the order of the registry, -1 if it is left out."""
        names = [group.name for group in _registry[self.table] if group.write is None]
        return np.array([self.first_row(name) for name in names], dtype=np.int64)

    def locate(self, row: int) -> Location:
        """Return the group of a row, and its row within the group."""
        for group in self.groups:
            if row < group.num_rows:
                return Location(group, row)
            row -= group.num_rows
        raise IndexError(f"the table has {self.num_rows} rows")

    def mirror(self, row: int) -> int:
        """Return the row that holds in the mirror image of a position."""
        group, inner = self.locate(row)
        return row - inner + group.mirror(inner)

    def describe(self, row: int) -> str:
        """Return a row in words."""
        group, inner = self.locate(row)
        return group.describe(inner)


def _numbered(name: str, size: int) -> Axis:
    return Axis(name, tuple(str(number) for number in range(size)))


def _offsets(name: str, size: int, *, is_column: bool) -> Axis:
    reach = size // 2
    values = tuple(f"{offset:+d}" for offset in range(-reach, reach + 1))
    return Axis(name, values, tuple(range(size - 1, -1, -1)) if is_column else ())


def _mirrored_square(sq: int) -> int:
    row, column = divmod(sq, BOARD_SIZE)
    return row * BOARD_SIZE + BOARD_SIZE - 1 - column


KINDS: Final = SYMBOLS[:NUM_PIECE_KINDS]
HELD: Final = KINDS[:NUM_HAND_KINDS]
PIECE: Final = Axis("piece", (*(f"own {k}" for k in KINDS), *(f"enemy {k}" for k in KINDS)))
KIND: Final = Axis("kind", tuple(KINDS))
MOVE_CODE: Final = Axis(
    "move",
    (*KINDS, *(f"{k} promotes" for k in "PLNSBR"), *(f"{k} dropped" for k in HELD)),
)
SQUARE: Final = Axis(
    "square",
    tuple(f"{9 - sq % 9}{'abcdefghi'[sq // 9]}" for sq in range(NUM_SQUARES)),
    tuple(_mirrored_square(sq) for sq in range(NUM_SQUARES)),
)
SIDE: Final = Axis("side", ("own", "enemy"))
ATTACKED: Final = Axis("attacked", ("safe", "attacked"))
PROTECTED: Final = Axis("protected", ("unprotected", "protected"))
ATTACKERS: Final = Axis("attackers", ("0", "1", "2+"))
DEFENDERS: Final = Axis("defenders", ("0", "1", "2+"))

NEIGHBOURS: Final = ((-1, -1), (-1, 0), (-1, 1), (0, -1), (0, 1), (1, -1), (1, 0), (1, 1))
"""(rows, columns) to the eight neighbours of a square."""

DIRECTION: Final = Axis(
    "neighbour",
    tuple(f"{rows:+d}/{columns:+d}" for rows, columns in NEIGHBOURS),
    tuple(NEIGHBOURS.index((rows, -columns)) for rows, columns in NEIGHBOURS),
)
NEAR_AXES: Final = (
    _offsets("rows", NEAR_SIZE, is_column=False),
    _offsets("columns", NEAR_SIZE, is_column=True),
)
FAR_AXES: Final = (
    _offsets("rows", FAR_SIZE, is_column=False),
    _offsets("columns", FAR_SIZE, is_column=True),
)

_registry: dict[Table, list[RowGroup]] = {
    "position": [
        RowGroup(
            "pieces", (PIECE, SQUARE, ATTACKED, PROTECTED), "a piece, its square, its safety there"
        ),
        RowGroup(
            "threats", (PIECE, KIND, PROTECTED), "a piece attacks an enemy of a kind, protected?"
        ),
        RowGroup("own_king", (PIECE, *NEAR_AXES), "a piece near the mover's king"),
        RowGroup("enemy_king", (PIECE, *NEAR_AXES), "a piece near the enemy's king"),
        RowGroup(
            "king_zone",
            (SIDE, DIRECTION, ATTACKERS, DEFENDERS, Axis("occupant", ("none", "own", "enemy"))),
            "a square beside a king: attackers, defenders (the king apart), what stands there",
        ),
        RowGroup(
            "king_escapes",
            (SIDE, _numbered("squares", 9), Axis("attacker's hand", ("0", "1", "2", "3+"))),
            "squares that a king could go to, and pieces in the attacker's hand",
        ),
        RowGroup(
            "hands",
            (SIDE, Axis("kind", HELD), Axis("at least", tuple(map(str, range(1, 19))))),
            "at least so many pieces of a kind in a hand",
        ),
        RowGroup("pins", (SIDE, KIND), "a piece is pinned to its king"),
        RowGroup("mate_threat", (MOVE_CODE,), "the opponent threatens mate in one by such a move"),
        RowGroup("check", (Axis("check", ("in check",)),), "the mover is in check"),
        RowGroup("turn", (Axis("mover", ("Black", "White")),), "the colour of the mover"),
        RowGroup(
            "repetition",
            (Axis("before", ("1", "2", "3+")),),
            "the position has occurred before in this game",
        ),
        RowGroup("ply", (_numbered("sixteenth", PLY_STEPS),), "the way to the ply limit"),
    ],
    "move": [
        RowGroup("target", (MOVE_CODE, SQUARE), "what moves where"),
        RowGroup("origin", (KIND, SQUARE), "what leaves where (not drops)"),
        RowGroup(
            "capture",
            (MOVE_CODE, Axis("captured", ("none", *KINDS)), ATTACKERS, PROTECTED),
            "what is captured; enemy attackers of the target; whether it is protected there",
        ),
        RowGroup(
            "leaving",
            (KIND, ATTACKERS, PROTECTED, ATTACKED),
            "safety of the origin, and whether the target is attacked (not drops)",
        ),
        RowGroup("to_enemy_king", (MOVE_CODE, *FAR_AXES), "target relative to the enemy's king"),
        RowGroup("to_own_king", (MOVE_CODE, *FAR_AXES), "target relative to the own king"),
        RowGroup(
            "gives_check",
            (MOVE_CODE, ATTACKED, PROTECTED, Axis("check", ("discovered", "direct"))),
            "gives check",
        ),
        RowGroup("recapture", (MOVE_CODE,), "to the target of the last move"),
        RowGroup(
            "new_threat",
            (KIND, Axis("victim", tuple(KINDS)), PROTECTED, Axis("from", ("unsafe", "safe"))),
            "attacks an enemy of a kind that it did not attack before",
        ),
        RowGroup(
            "defends",
            (KIND, Axis("from", ("unsafe", "safe"))),
            "protects an own piece that was attacked and unprotected",
        ),
        RowGroup("abandons", (KIND,), "takes the only protection from an attacked own piece"),
        RowGroup(
            "evasion",
            (Axis("how", ("king moves", "captures", "interposes", "drops")), ATTACKED),
            "answers a check",
        ),
        RowGroup(
            "exchange",
            (MOVE_CODE, Axis("attacker", tuple(KINDS)), PROTECTED),
            "an enemy of a kind attacks the target",
        ),
        RowGroup(
            "escape",
            (KIND, Axis("attacker", tuple(KINDS)), PROTECTED),
            "an enemy of a kind attacks the origin (not drops)",
        ),
        RowGroup(
            "mate_defence",
            (
                Axis(
                    "how",
                    ("king moves", "captures", "occupies", "guards", "gives check", "nothing"),
                ),
                ATTACKED,
            ),
            "answers a threat of mate in one: what it does to the threatening piece or its target",
        ),
    ],
}


def register_rows(table: Table, name: str, axes: Sequence[Axis], meaning: str) -> Any:
    """Register the decorated function as the writer of a group of rows, for use by its name.

    Registered groups are not part of ``all``, so that a plug-in does not change a stored name.
    """

    def register(write: RowWriter) -> RowWriter:
        known = {group.name for group in _registry[table]}
        if not name.isidentifier() or name in known or name == _ALL:
            raise ValueError(f"a group of rows cannot be named {name!r}: not free, or no name")
        _registry[table].append(RowGroup(name, tuple(axes), meaning, write))
        return write

    return register


def registered_rows(table: Table) -> tuple[RowGroup, ...]:
    """All groups of a table, in the order of its rows."""
    return tuple(_registry[table])


_ALL: Final = "all"


def row_spec(table: Table, name: str) -> RowSpec:
    """Return the rows that a name stands for: ``all``, ``all-threats-pins``, ``pieces+hands``.

    ``all`` are the built-in groups; ``all+mine`` adds one of a plug-in.

    Raises:
        UnknownRowsError: It names no group, or one twice.
    """
    added, *removed = name.split("-")
    chosen = added.split("+")
    if _ALL in chosen:
        built_in = [group.name for group in _registry[table] if group.write is None]
        place = chosen.index(_ALL)
        chosen[place : place + 1] = built_in
    known = [group.name for group in _registry[table]]
    for group_name in (*chosen, *removed):
        if group_name not in known:
            raise UnknownRowsError(
                f"{table} rows {name!r}: there is no group {group_name!r}; "
                f"the groups are {', '.join(known)}, or all"
            )
    if len(set(chosen)) < len(chosen) or len(set(removed)) < len(removed):
        raise UnknownRowsError(f"{table} rows {name!r}: a group appears twice")
    if not set(removed) <= set(chosen):
        raise UnknownRowsError(f"{table} rows {name!r}: only a group of the list can be removed")
    groups = tuple(
        group for group in _registry[table] if group.name in chosen and group.name not in removed
    )
    spec = RowSpec(table, groups, name)
    if not groups or spec.num_rows >= MAX_ROWS:
        raise UnknownRowsError(
            f"{table} rows {name!r} are {spec.num_rows} rows; there must be 1 to {MAX_ROWS - 1:,}"
        )
    return spec


POSITION_ROWS: Final = row_spec("position", _ALL)
MOVE_ROWS: Final = row_spec("move", _ALL)

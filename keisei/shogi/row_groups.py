"""Rows of the sparse network by name: which facts of a position and of a move it knows.

A row is a fact that holds or does not hold: "my silver stands on 7g, attacked and protected". A
`RowGroup` numbers the facts of one sort by the values of its axes; a `RowSpec` joins groups to the
rows of a table (`row_numbering`). Kernels (`position_rows`, `move_rows`) write the numbers of the
rows that hold. All facts follow from the rules and are in the mover's view; none of them says what
a piece is worth.

A side attacks a square if one of its pieces could capture there, pins apart; a piece is protected
if another piece of its side attacks its square. What is said of a move's origin and target is true
before the move: lines that the move opens or closes are not followed, except those of the moving
piece itself.

>>> row_spec("position", "all").names[:3]
('pieces', 'threats', 'own_king')
>>> row_spec("position", "all-threats").num_rows == POSITION_ROWS.num_rows - 784
True
>>> POSITION_ROWS.describe(0)
'pieces: own P, 9a, safe, unprotected'
"""

from collections.abc import Callable, Sequence
from importlib.metadata import entry_points
from typing import Final, TypeVar

from keisei.constants import (
    BOARD_SIZE,
    HAND_LIMITS,
    NUM_HAND_KINDS,
    NUM_PIECE_KINDS,
    NUM_SQUARES,
)
from keisei.errors import KeiseiError
from keisei.shogi.actions import mirrored_square
from keisei.shogi.row_numbering import Axis, RowGroup, RowSpec, RowWriter, Table
from keisei.shogi.types import SQUARE_NAMES, SYMBOLS

PLUGIN_GROUP: Final = "keisei.rows"
"""Entry-point group in which plug-ins name their groups of rows, each with the module or object
whose import registers it."""

MAX_ROWS: Final = 1 << 16
"""A table has fewer rows: their numbers are stored as uint16."""

NUM_MOVE_CODES: Final = NUM_PIECE_KINDS + 6 + NUM_HAND_KINDS
"""Ways to move: a kind that moves (14), a kind that promotes (6), a kind that is dropped (7)."""

NEAR: Final = 3
"""A piece is near a king if it is at most this many rows and columns away."""

NEAR_SIZE: Final = 2 * NEAR + 1
FAR_SIZE: Final = 2 * BOARD_SIZE - 1
MAX_COUNTED: Final = 2
"""Attackers of a square are counted up to this number: 0, 1, 2 or more."""

HAND_STEPS: Final = max(HAND_LIMITS)
"""Rows of a hand for each kind: "at least 1", "at least 2" ..."""

PLY_STEPS: Final = 16
"""Equal parts into which the way to the ply limit is divided."""

Writer = TypeVar("Writer", bound=RowWriter)


class UnknownRowsError(KeiseiError, ValueError):
    """A name that does not denote rows; the message lists the groups that there are."""


def _numbered(name: str, size: int, *, start: int = 0) -> Axis:
    return Axis(name, tuple(str(number) for number in range(start, start + size)))


def _offsets(name: str, size: int, *, is_column: bool) -> Axis:
    reach = size // 2
    values = tuple(f"{offset:+d}" for offset in range(-reach, reach + 1))
    return Axis(name, values, tuple(range(size - 1, -1, -1)) if is_column else ())


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
    SQUARE_NAMES,
    tuple(mirrored_square(sq) for sq in range(NUM_SQUARES)),
)
SIDE: Final = Axis("side", ("own", "enemy"))
ATTACKED: Final = Axis("attacked", ("safe", "attacked"))
PROTECTED: Final = Axis("protected", ("unprotected", "protected"))
ATTACKERS: Final = Axis("attackers", ("0", "1", "2+"))
DEFENDERS: Final = Axis("defenders", ("0", "1", "2+"))
OCCUPANT: Final = Axis("occupant", ("none", "king's side", "other side"))
VICTIM: Final = Axis("victim", tuple(KINDS))
ATTACKER: Final = Axis("attacker", tuple(KINDS))
FROM: Final = Axis("from", ("unsafe", "safe"))

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
            "pieces",
            (PIECE, SQUARE, ATTACKED, PROTECTED),
            "a piece stands on a square, attacked or not, protected or not",
        ),
        RowGroup(
            "threats",
            (PIECE, VICTIM, PROTECTED),
            "a piece attacks one of the other side, which is protected or not",
        ),
        RowGroup("own_king", (PIECE, *NEAR_AXES), "a piece near the mover's king"),
        RowGroup("enemy_king", (PIECE, *NEAR_AXES), "a piece near the enemy's king"),
        RowGroup(
            "king_zone",
            (SIDE, DIRECTION, ATTACKERS, DEFENDERS, OCCUPANT),
            "a square beside a king: pieces that attack it, pieces of the king's side that do "
            "(the king apart), and what stands there",
        ),
        RowGroup(
            "king_escapes",
            (SIDE, _numbered("squares", 9), Axis("attacker's hand", ("0", "1", "2", "3+"))),
            "number of squares beside a king that are neither attacked nor occupied by its side, "
            "and pieces in the other side's hand",
        ),
        RowGroup(
            "hands",
            (SIDE, Axis("kind", HELD), _numbered("at least", HAND_STEPS, start=1)),
            "a hand holds at least that number of pieces of a kind",
        ),
        RowGroup("pins", (SIDE, KIND), "a piece stands alone between its king and a slider"),
        RowGroup(
            "mate_threat",
            (MOVE_CODE,),
            "if the mover passed, the opponent would mate by this move (the first of them in the "
            "order of the legal list)",
        ),
        RowGroup("check", (Axis("check", ("in check",)),), "the mover is in check"),
        RowGroup("turn", (Axis("mover", ("Black", "White")),), "the colour of the mover"),
        RowGroup(
            "repetition",
            (Axis("times", ("1", "2", "3+")),),
            "the position has occurred before in this game",
        ),
        RowGroup(
            "ply",
            (_numbered("sixteenth", PLY_STEPS),),
            "plies played, in sixteenths of the ply limit",
        ),
    ],
    "move": [
        RowGroup("target", (MOVE_CODE, SQUARE), "what moves, and the square that it goes to"),
        RowGroup("origin", (KIND, SQUARE), "the square that a piece leaves (not for drops)"),
        RowGroup(
            "capture",
            (MOVE_CODE, Axis("captured", ("none", *KINDS)), ATTACKERS, PROTECTED),
            "what is captured, enemy pieces that attack the target, and whether another own piece "
            "protects it",
        ),
        RowGroup(
            "leaving",
            (KIND, ATTACKERS, PROTECTED, ATTACKED),
            "enemy pieces that attack the origin, whether it is protected, and whether the target "
            "is attacked (not for drops)",
        ),
        RowGroup(
            "to_enemy_king", (MOVE_CODE, *FAR_AXES), "the target, relative to the enemy's king"
        ),
        RowGroup("to_own_king", (MOVE_CODE, *FAR_AXES), "the target, relative to the own king"),
        RowGroup(
            "gives_check",
            (MOVE_CODE, ATTACKED, PROTECTED, Axis("check", ("discovered", "direct"))),
            "gives check by another piece only or by the moving one; safety of the target",
        ),
        RowGroup("recapture", (MOVE_CODE,), "captures the piece that moved last"),
        RowGroup(
            "new_threat",
            (KIND, VICTIM, PROTECTED, FROM),
            "the moved piece (its kind after the move) attacks an enemy that it did not attack "
            "before; safe: on a target that is protected or not attacked",
        ),
        RowGroup(
            "defends",
            (KIND, FROM),
            "the moved piece protects one of this kind that was attacked and unprotected",
        ),
        RowGroup(
            "abandons",
            (KIND,),
            "the moved piece no longer protects one of this kind, which is attacked and had no "
            "other protection",
        ),
        RowGroup(
            "evasion",
            (Axis("how", ("king moves", "captures", "interposes", "drops")), ATTACKED),
            "how it answers a check, and whether the target is attacked",
        ),
        RowGroup(
            "exchange",
            (MOVE_CODE, ATTACKER, PROTECTED),
            "an enemy of a kind attacks the target, which is protected or not",
        ),
        RowGroup(
            "escape",
            (KIND, ATTACKER, PROTECTED),
            "an enemy of a kind attacks the origin, which is protected or not (not for drops)",
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
            "how it answers the mate threat: the king moves; captures the piece that would mate; "
            "occupies or guards the square where it would mate; gives check; none of these. Also "
            "whether the target is attacked",
        ),
    ],
}


def register_rows(
    table: Table, name: str, axes: Sequence[Axis], meaning: str, *, max_active: int = 1
) -> Callable[[Writer], Writer]:
    """Register the decorated function as the writer of a group of rows, for use by its name.

    Registered groups are not part of ``all``, so that a plug-in does not change a stored name.

    Args:
        table: the table that gets the rows.
        name: an identifier, with which the settings name the group: ``all+name``.
        axes: what numbers the rows.
        meaning: the fact that a row states, for people.
        max_active: largest number of rows that can hold at once, for a position or a move.
    """

    def register(write: Writer) -> Writer:
        known = {group.name for group in _registry[table]}
        if not name.isidentifier() or name in known or name == _ALL:
            raise ValueError(f"a group cannot be named {name!r}: not an identifier, or in use")
        _registry[table].append(RowGroup(name, tuple(axes), meaning, write, max_active))
        return write

    return register


def registered_rows(table: Table) -> tuple[RowGroup, ...]:
    """Return all groups of a table: the built-in ones in the order of its rows, then plug-ins."""
    return tuple(_registry[table])


_ALL: Final = "all"


def row_spec(table: Table, name: str) -> RowSpec:
    """Return the rows that a name stands for: ``all``, ``all-threats-pins``, ``pieces+hands``.

    ``all`` stands for the built-in groups; ``all+mine`` adds one of a plug-in. Built-in groups come
    first, in the order of the registry, then those of plug-ins as they are named.

    Raises:
        UnknownRowsError: It names a group that does not exist, or one twice, or none.
    """
    added, *removed = name.split("-")
    chosen = added.split("+")
    if _ALL in chosen:
        place = chosen.index(_ALL)
        chosen[place : place + 1] = _built_in_names(table)
    for group_name in (*chosen, *removed):
        if not _is_registered(table, group_name):
            known = ", ".join(group.name for group in _registry[table])
            raise UnknownRowsError(
                f"{table} rows {name!r}: there is no group {group_name!r}, here or in an installed "
                f"plug-in; the groups are {known}, or all"
            )
    if len(set(chosen)) < len(chosen) or len(set(removed)) < len(removed):
        raise UnknownRowsError(f"{table} rows {name!r}: a group appears twice")
    if not set(removed) <= set(chosen):
        raise UnknownRowsError(f"{table} rows {name!r}: only a group of the list can be removed")
    by_name = {group.name: group for group in _registry[table]}
    built_in = [group_name for group_name in _built_in_names(table) if group_name in chosen]
    plugins = [group_name for group_name in chosen if group_name not in built_in]
    groups = tuple(by_name[key] for key in (*built_in, *plugins) if key not in removed)
    spec = RowSpec(table, groups, name, tuple(_built_in_names(table)))
    if not 1 <= spec.num_rows < MAX_ROWS:
        raise UnknownRowsError(
            f"{table} rows {name!r} are {spec.num_rows} rows; there must be 1 to {MAX_ROWS - 1:,}"
        )
    return spec


def _built_in_names(table: Table) -> list[str]:
    return [group.name for group in _registry[table] if group.write is None]


def _is_registered(table: Table, name: str) -> bool:
    """Return whether a group exists, after loading the plug-in that has it if there is one."""

    def exists() -> bool:
        return any(group.name == name for group in _registry[table])

    if not exists():
        for entry in entry_points(group=PLUGIN_GROUP, name=name):
            entry.load()
    return exists()


POSITION_ROWS: Final = row_spec("position", _ALL)
MOVE_ROWS: Final = row_spec("move", _ALL)

"""Groups of rows: numbering, names, mirror images, plug-ins."""

from collections.abc import Iterator
from importlib.metadata import EntryPoint
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from keisei.constants import NUM_SQUARES
from keisei.network.sparse.active_rows import RowReader
from keisei.shogi import move_rows, position_rows, row_groups
from keisei.shogi.game import ShogiGame
from keisei.shogi.packed import Positions
from keisei.shogi.row_groups import (
    MOVE_ROWS,
    POSITION_ROWS,
    UnknownRowsError,
    register_rows,
    registered_rows,
    row_spec,
)
from keisei.shogi.row_numbering import Axis, PluginRowsError, RowSpec, Table
from keisei.shogi.vector import VectorShogi

TABLES = [POSITION_ROWS, MOVE_ROWS]
tables = pytest.mark.parametrize("spec", TABLES, ids=lambda spec: spec.table)
PAWNS = Axis("pawns", tuple(map(str, range(19))))


@pytest.fixture(autouse=True)
def registry() -> Iterator[None]:
    """Forget the groups that a test registers."""
    before = {table: list(groups) for table, groups in row_groups._registry.items()}
    yield
    row_groups._registry.clear()
    row_groups._registry.update(before)


def mover_pawns(positions: Positions) -> npt.NDArray[np.int64]:
    """Write the number of the mover's pawns on the board."""
    board: npt.NDArray[np.uint8] = positions.packed.board
    return np.asarray(np.count_nonzero(board == 1, axis=1)[:, None], dtype=np.int64)


def columns_of_drops(positions: Positions) -> npt.NDArray[np.int64]:
    """Write the column of a drop's target, and nothing for other moves."""
    actions = positions.legal_actions.astype(np.int64)
    return np.where(actions < 12_960, -1, (actions - 12_960) // 7 % 9)[:, :, None]


@tables
def test_every_row_has_one_place_and_one_description(spec: RowSpec) -> None:
    descriptions = set()
    for row in range(spec.num_rows):
        group, inner = spec.locate(row)
        assert spec.first_row(group.name) + inner == row
        assert group.row(group.values(inner)) == inner
        assert all(
            0 <= index < axis.size
            for axis, index in zip(group.axes, group.values(inner), strict=True)
        )
        descriptions.add(spec.describe(row))
    assert len(descriptions) == spec.num_rows
    with pytest.raises(IndexError, match="has only"):
        spec.locate(spec.num_rows)


@tables
def test_mirroring_twice_changes_nothing(spec: RowSpec) -> None:
    mirrored = [spec.mirror(row) for row in range(spec.num_rows)]
    assert [spec.mirror(row) for row in mirrored] == list(range(spec.num_rows))
    assert mirrored != list(range(spec.num_rows))


def test_a_mirrored_row_in_words() -> None:
    row = POSITION_ROWS.first_row("pieces") + POSITION_ROWS.groups[0].row((3, 6 * 9 + 2, 1, 0))
    assert POSITION_ROWS.describe(row) == "pieces: own S, 7g, attacked, unprotected"
    mirrored = POSITION_ROWS.describe(POSITION_ROWS.mirror(row))
    assert mirrored == "pieces: own S, 3g, attacked, unprotected"


@pytest.mark.parametrize(
    ("spec", "kernels"), [(POSITION_ROWS, position_rows), (MOVE_ROWS, move_rows)]
)
def test_kernels_number_the_groups_as_the_registry_does(spec: RowSpec, kernels: Any) -> None:
    assert [getattr(kernels, name.upper()) for name in spec.names] == list(range(len(spec.names)))
    assert spec.built_in == spec.names


def test_names_of_specs() -> None:
    assert row_spec("position", "all") == POSITION_ROWS
    assert row_spec("position", "hands+pieces").names == ("pieces", "hands")
    reduced = row_spec("move", "all-exchange-escape")
    assert set(MOVE_ROWS.names) - set(reduced.names) == {"exchange", "escape"}
    assert reduced.first_row("exchange") == -1
    assert (reduced.first_rows() >= 0).sum() == len(reduced.names)
    assert row_spec("position", "pieces").num_rows == 28 * NUM_SQUARES * 4


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("pieces+threat", "there is no group 'threat'"),
        ("all-threat", "there is no group 'threat'"),
        ("", "there is no group ''"),
        ("pieces+pieces", "appears twice"),
        ("all+pieces", "appears twice"),
        ("all-pins-pins", "appears twice"),
        ("pieces-pins", "only a group of the list can be removed"),
        ("pieces-pieces", "are 0 rows"),
    ],
)
def test_mistakes_in_names(name: str, message: str) -> None:
    with pytest.raises(UnknownRowsError, match=message):
        row_spec("position", name)


def test_a_plug_in_adds_a_group() -> None:
    register_rows("position", "mover_pawns", [PAWNS], "pawns of the mover")(mover_pawns)
    register_rows("move", "drop_columns", [Axis("column", tuple("123456789"))], "column of a drop")(
        columns_of_drops
    )
    position_spec = row_spec("position", "all+mover_pawns")
    move_spec = row_spec("move", "target+drop_columns")
    assert registered_rows("position")[-1].name == "mover_pawns"
    assert row_spec("position", "all") == POSITION_ROWS, "all does not change"
    assert position_spec.num_rows == POSITION_ROWS.num_rows + 19
    assert position_spec.built_in == POSITION_ROWS.names
    assert (position_spec.max_plugin_rows, POSITION_ROWS.max_plugin_rows) == (1, 0)
    reader = RowReader(position_spec, move_spec)
    game = ShogiGame("4k4/9/9/9/9/9/PPP6/9/4K4 b G 1")
    rows = reader.read_game(game)
    assert position_spec.describe(rows.position[-1]) == "mover_pawns: pawns 3"
    assert rows.position[:-1] == RowReader().read_game(game).position
    for move, found in zip(game.legal_moves, rows.moves, strict=True):
        words = [move_spec.describe(row) for row in found]
        expected = f"drop_columns: column {move.to_square % 9 + 1}"
        assert words[1:] == ([expected] if move.drop else [])


def test_plug_ins_keep_the_order_of_the_name_not_of_their_registration() -> None:
    register_rows("position", "second", [PAWNS], "")(mover_pawns)
    register_rows("position", "first", [PAWNS], "")(mover_pawns)
    spec = row_spec("position", "first+second+pieces")
    assert spec.names == ("pieces", "first", "second")
    positions = VectorShogi(2).observe()
    first, second = spec.first_row("first"), spec.first_row("second")
    assert spec.plugin_rows(positions).tolist() == [[first + 9, second + 9]] * 2


def test_without_plug_ins_there_is_nothing_to_write() -> None:
    positions = VectorShogi(3).observe()
    assert POSITION_ROWS.plugin_rows(positions).shape == (3, 0)
    assert MOVE_ROWS.plugin_rows(positions).shape == (*positions.legal_actions.shape, 0)


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        (np.zeros(2, dtype=int), "mine: its writer returned"),
        (np.zeros((2, 2), dtype=int), r"not integers of the shape \[2, 1\]"),
        (np.zeros((2, 1)), "float64"),
        (np.full((2, 1), 19), "returned rows from 19 to 19; it has rows 0 to 18"),
        (np.full((2, 1), -2), "returned rows from -2 to -2"),
    ],
)
def test_what_a_plug_in_writes_is_checked(rows: npt.NDArray[Any], message: str) -> None:
    register_rows("position", "mine", [PAWNS], "")(lambda positions: rows)
    with pytest.raises(PluginRowsError, match=message):
        row_spec("position", "mine").plugin_rows(VectorShogi(2).observe())


@pytest.mark.parametrize("table", ["position", "move"])
@pytest.mark.parametrize("name", ["all", "pieces", "target", "not a name", ""])
def test_names_that_a_plug_in_cannot_have(table: Table, name: str) -> None:
    register = register_rows(table, name, [PAWNS], "")
    is_free = name in ("pieces", "target") and name not in {g.name for g in registered_rows(table)}
    if is_free:
        register(mover_pawns)
    else:
        with pytest.raises(ValueError, match="cannot be named"):
            register(mover_pawns)


def test_installed_plug_ins_are_loaded_by_the_name_of_their_group(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    class Installed(EntryPoint):
        def load(self) -> Any:
            return register_rows("position", self.name, [PAWNS], "")(mover_pawns)

    def entry_points(*, group: str, name: str) -> list[EntryPoint]:
        assert group == "keisei.rows"
        return [Installed("installed", "some.module", group)] if name == "installed" else []

    monkeypatch.setattr(row_groups, "entry_points", entry_points)
    assert row_spec("position", "pieces+installed").names == ("pieces", "installed")
    with pytest.raises(UnknownRowsError, match="no group 'missing', here or in an installed"):
        row_spec("position", "pieces+missing")

"""What the tests of sparse networks share."""

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt
import pytest

from keisei.shogi import row_groups
from keisei.shogi.packed import Positions
from keisei.shogi.row_groups import register_rows
from keisei.shogi.row_numbering import Axis


@pytest.fixture
def plugins() -> Iterator[None]:
    """A plug-in for each table: pawns of the mover, and whether a move is a drop."""
    before = {table: list(groups) for table, groups in row_groups._registry.items()}
    pawns = Axis("pawns", tuple(map(str, range(19))))
    is_drop = Axis("drop", ("board move", "drop"))

    @register_rows("position", "mover_pawns", [pawns], "number of the mover's pawns")
    def mover_pawns(positions: Positions) -> npt.NDArray[np.int64]:
        board: npt.NDArray[np.uint8] = positions.packed.board
        return np.asarray(np.count_nonzero(board == 1, axis=1)[:, None], dtype=np.int64)

    @register_rows("move", "drops", [is_drop], "whether a move is a drop")
    def drops(positions: Positions) -> npt.NDArray[np.int8]:
        return (positions.legal_actions >= 12_960).astype(np.int8)[:, :, None]

    yield
    row_groups._registry.clear()
    row_groups._registry.update(before)

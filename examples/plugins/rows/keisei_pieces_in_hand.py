"""Rows of a sparse network: how many pieces the mover has in hand, all kinds together."""

import numpy as np
import numpy.typing as npt

from keisei.shogi.packed import Positions
from keisei.shogi.row_groups import register_rows
from keisei.shogi.row_numbering import Axis

MAX_PIECES = 12
"""More than this count as this."""

PIECES = Axis("pieces", tuple(str(number) for number in range(MAX_PIECES + 1)))


@register_rows("position", "pieces_in_hand", [PIECES], "number of pieces in the mover's hand")
def write_pieces_in_hand(positions: Positions) -> npt.NDArray[np.int64]:
    """Return ``[B, 1]``: the row of each of ``B`` positions."""
    held: npt.NDArray[np.int64] = positions.packed["hands"][:, 0].sum(axis=1, dtype=np.int64)
    return np.minimum(held, MAX_PIECES)[:, None]

"""Planes: the files on which each side has a pawn, where it cannot drop another one."""

import numpy as np
import numpy.typing as npt

from keisei.shogi.features import register_feature

OWN_PAWN, OPPONENT_PAWN = 1, 15
"""Codes of `keisei.shogi.packed`: pieces of the mover are 1 to 14, of the opponent 15 to 28."""


@register_feature("pawn_files", ["files of own pawns", "files of opponent pawns"])
def write_pawn_files(
    packed: npt.NDArray[np.void], planes: npt.NDArray[np.float32], first: int
) -> None:
    """Write two planes of ``float32[B, C, 81]``, from plane `first` on, for ``B`` positions."""
    board = packed["board"].reshape(-1, 9, 9)  # ranks, then files
    for offset, code in enumerate((OWN_PAWN, OPPONENT_PAWN)):
        has_pawn = (board == code).any(axis=1)
        planes[:, first + offset] = np.tile(has_pawn, 9)

"""Rows that are kept while acting, so that learning reads them again: entries of a ply each.

Writing the rows of a position and its moves takes longer than the forward pass, and learning would
do it a second time for every ply (``docs/decisions/024-rows-are-kept.md``).
"""

from typing import TYPE_CHECKING, Final, NamedTuple

import numpy as np
import numpy.typing as npt

from keisei.shogi.jit import int64, jit_inner
from keisei.shogi.position import Array

if TYPE_CHECKING:
    from keisei.network.sparse.forward import Workspace

WORDS_PER_PLY: Final = 1024
"""Room for each ply: a middle game with 100 legal moves takes some 900 words, a ply on average 600.
Plies share the room of those that are predicted together; what does not fit is written again."""

MAX_BYTES: Final = 1 << 29
"""Memory at most; the plies beyond are not kept."""


class KeptRows(NamedTuple):
    """The rows of a rollout's plies, as kernels read and write them."""

    words: npt.NDArray[np.uint16]
    """The entries of `keep_rows`."""

    starts: npt.NDArray[np.int64]
    """``[S]``: where the entry of each ply begins, -1 for none; empty if nothing is kept."""


NOTHING_KEPT: Final = KeptRows(np.empty(0, dtype=np.uint16), np.empty(0, dtype=np.int64))
"""A store without room."""


@jit_inner
def keep_rows(
    work: "Workspace", legal: Array, count: int, words: Array, start: int, end: int
) -> int:
    """Write the rows in `work` and the moves ``legal[:count]`` to ``words[start:end]``.

    Returns:
        The place behind the entry, or -1 if it does not fit.
    """
    position_rows = work.counts[0]
    move_rows = work.move_ends[count - 1] if count else 0
    behind: int = start + 2 + 2 * count + position_rows + move_rows
    if behind > end:
        return -1
    words[start], words[start + 1] = position_rows, count
    place = start + 2
    for k in range(count):
        words[place + k] = legal[k]
        words[place + count + k] = work.move_ends[k]
    place += 2 * count
    for k in range(position_rows):
        words[place + k] = work.position_rows[k]
    place += position_rows
    for k in range(move_rows):
        words[place + k] = work.move_rows[k]
    return behind


@jit_inner
def read_rows(words: Array, start: int, work: "Workspace", legal: Array) -> int:
    """Read an entry of `keep_rows` into `work` and `legal`; return the number of legal moves."""
    position_rows: int = int64(words[start])
    count: int = int64(words[start + 1])
    place = start + 2
    for k in range(count):
        legal[k] = words[place + k]
        work.move_ends[k] = words[place + count + k]
    place += 2 * count
    for k in range(position_rows):
        work.position_rows[k] = words[place + k]
    place += position_rows
    for k in range(work.move_ends[count - 1] if count else 0):
        work.move_rows[k] = words[place + k]
    work.counts[0] = position_rows
    return count

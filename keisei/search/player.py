"""The alpha-beta bot: searches many positions, each for itself."""

import numpy as np
import numpy.typing as npt

from keisei.errors import KeiseiError
from keisei.search.alphabeta import MAX_DEPTH, MAX_QUIET_PLIES, SearchMemory, search_columns
from keisei.shogi.position import Records


class AlphaBeta:
    """Looks `depth` plies ahead. The same seed gives the same moves."""

    def __init__(self, depth: int, *, quiet_plies: int = 0, margin: int = 0) -> None:
        """Make a bot.

        Args:
            depth: plies to look ahead.
            quiet_plies: how far captures are followed beyond the horizon; 0: not at all.
            margin: moves that are worse than the best by no more than so many hundredths of a
                pawn are as good, and one of them is drawn.
        """
        if not 1 <= depth <= MAX_DEPTH:
            raise KeiseiError(f"alpha-beta looks 1 to {MAX_DEPTH} plies ahead, not {depth}")
        if not 0 <= quiet_plies <= MAX_QUIET_PLIES:
            raise KeiseiError(
                f"captures can be followed 0 to {MAX_QUIET_PLIES} plies, not {quiet_plies}"
            )
        if margin < 0:
            raise KeiseiError(f"the margin is {margin}, it must not be negative")
        self.depth = depth
        self.quiet_plies = quiet_plies
        self.margin = margin
        self._memory = SearchMemory.new()

    @property
    def nodes(self) -> int:
        """Positions visited so far."""
        return int(self._memory.nodes[0])

    def search(
        self,
        positions: Records,
        legal_actions: npt.NDArray[np.uint16],
        legal_counts: npt.NDArray[np.int32],
        luck: npt.NDArray[np.uint64],
    ) -> tuple[npt.NDArray[np.int64], npt.NDArray[np.int64]]:
        """Columns of the legal lists, and what they are worth, ``[B]`` each.

        ``luck[B]`` decides among equal moves: `keisei.shogi.chance.seeds_of_luck`.
        """
        number = len(positions)
        columns = np.zeros(number, dtype=np.int64)
        values = np.zeros(number, dtype=np.int64)
        search_columns(
            positions,
            legal_actions,
            legal_counts,
            self.depth,
            self.quiet_plies,
            self.margin,
            luck,
            self._memory,
            columns,
            values,
        )
        return columns, values

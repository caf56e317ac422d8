"""What a player is: somebody who chooses moves for many games at once."""

from typing import Protocol

import numpy as np
import numpy.typing as npt

from keisei.shogi.vector import VectorShogi

Columns = npt.NDArray[np.int64]
"""``[G]``: for each of some games a column of its legal list, or a code of `choices`."""


class Player(Protocol):
    """Plays any number of games, all in the same step."""

    @property
    def name(self) -> str:
        """What people call it."""

    @property
    def identity(self) -> str:
        """What it is, exactly: players with the same identity are of the same strength."""

    def choose(self, env: VectorShogi, games: Columns, random: np.random.Generator) -> Columns:
        """For each of the `games` (indices) a column of its legal list, or a code of `choices`."""

    def close(self) -> None:
        """Let go of what it holds: processes, threads, memory."""

"""What a player is: somebody who chooses moves for many games at once."""

from typing import Final, Protocol

import numpy as np
import numpy.typing as npt

from keisei.shogi.vector import VectorShogi

RESIGNS: Final = -1
"""The player gives the game up."""

BROKE_RULES: Final = -2
"""The player answered with a move that is illegal, or no move at all."""

FAILED: Final = -3
"""The player did not answer: its program died, or thought for too long."""


Columns = npt.NDArray[np.int64]
"""``[G]``: for each of some games a legal_index of its legal list, or a code of `choices`."""


class Player(Protocol):
    """Plays any number of games, all in the same step."""

    @property
    def name(self) -> str:
        """What people call it."""

    @property
    def identity(self) -> str:
        """What it is, exactly: players with the same identity are of the same strength."""

    def choose(self, env: VectorShogi, games: Columns, random: np.random.Generator) -> Columns:
        """Choose a legal index for each of the `games`, or one of the codes below 0."""

    def close(self) -> None:
        """Let go of what it holds: processes, threads, memory."""

"""The `Player` protocol: chooses moves for any number of games at once."""

from typing import Final, Protocol

import numpy as np
import numpy.typing as npt

from keisei.shogi.vector import VectorShogi

RESIGNS: Final = -1
"""In place of a legal index: the player resigns."""

BROKE_RULES: Final = -2
"""In place of a legal index: the player's move was illegal, or not a move."""

FAILED: Final = -3
"""In place of a legal index: the player did not answer. Its program died, or timed out."""

LegalIndices = npt.NDArray[np.int64]
"""``[G]``: for each game an index into its legal list, or `RESIGNS`, `BROKE_RULES`, `FAILED`."""


class Player(Protocol):
    """Plays any number of games, all in the same step."""

    @property
    def name(self) -> str:
        """The name shown to people."""

    @property
    def identity(self) -> str:
        """Exact description: players with the same identity have the same strength."""

    def choose(
        self, env: VectorShogi, games: npt.NDArray[np.int64], random: np.random.Generator
    ) -> LegalIndices:
        """Choose a move for each of the `games`, which are indices ``[G]`` of the environment."""

    def close(self) -> None:
        """Release processes, threads and memory."""

"""A network as a player, by tree search."""

import numpy as np

from keisei.evaluation.player import Columns
from keisei.search.gumbel import TreeSearch
from keisei.search.judge import Judge
from keisei.shogi.vector import VectorShogi


class SearchPlayer:
    """Searches all its games together."""

    def __init__(
        self,
        judge: Judge,
        simulations: int,
        *,
        name: str,
        identity: str,
        mate_plies: int = 3,
        temperature: float = 0.0,
    ) -> None:
        self.name = name
        self.identity = identity
        self.judge = judge
        """The network that the search asks."""

        self._search = TreeSearch(
            judge, simulations, mate_plies=mate_plies, temperature=temperature
        )

    def choose(self, env: VectorShogi, games: Columns, random: np.random.Generator) -> Columns:
        """The best moves that the search finds."""
        return self._search.search(env, games, random).columns

    def close(self) -> None:
        """Nothing is held but memory."""

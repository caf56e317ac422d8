"""A network as a player, by tree search."""

import numpy as np

from keisei.network.predictor import Predictor, sample_policy
from keisei.players.player import Columns
from keisei.search.gumbel import TreeSearch
from keisei.search.mates import MateRule
from keisei.shogi.vector import VectorShogi


class PolicyPlayer:
    """Plays the likeliest move, or draws one; a short mate that it is shown comes first."""

    def __init__(
        self,
        predictor: Predictor,
        *,
        name: str,
        identity: str,
        temperature: float = 0.0,
        mate_plies: int = 1,
    ) -> None:
        """Make a player.

        Args:
            predictor: the network.
            name: what people call it.
            identity: what the network is, exactly.
            temperature: 0: always the likeliest move; 1: as the policy says.
            mate_plies: mates of up to so many plies are played whatever the policy says; 0: none.
        """
        self.name = name
        self.identity = identity
        self.predictor = predictor
        """The network that is asked."""

        self._temperature = temperature
        self._mate_rule = MateRule(mate_plies)

    def choose(self, env: VectorShogi, games: Columns, random: np.random.Generator) -> Columns:
        """Choose in all games, with one call of the network."""
        prediction = self.predictor.predict(env.observe(games))
        if self._temperature > 0.0:
            legal_indices = sample_policy(
                prediction.log_probs / np.float32(self._temperature), random
            )
        else:
            legal_indices = np.argmax(prediction.log_probs, axis=1)
        mates = self._mate_rule.legal_indices(env, games)
        return np.where(mates >= 0, mates, legal_indices)

    def close(self) -> None:
        """Nothing is held but memory."""


class SearchPlayer:
    """Searches all its games together."""

    def __init__(
        self,
        predictor: Predictor,
        simulations: int,
        *,
        name: str,
        identity: str,
        mate_plies: int = 3,
        temperature: float = 0.0,
    ) -> None:
        self.name = name
        self.identity = identity
        self.predictor = predictor
        """The network that the search asks."""

        self._search = TreeSearch(
            predictor, simulations, mate_plies=mate_plies, temperature=temperature
        )

    def choose(self, env: VectorShogi, games: Columns, random: np.random.Generator) -> Columns:
        """The best moves that the search finds."""
        return self._search.search(env, games, random).legal_indices

    def close(self) -> None:
        """Nothing is held but memory."""

"""Networks as players: by the policy alone, or by tree search."""

import numpy as np
import numpy.typing as npt

from keisei.network.predictor import Predictor, sample_policy, spread_policy
from keisei.players.player import LegalIndices
from keisei.search.mates import MateRule
from keisei.search.mcts import TreeSearch
from keisei.shogi.vector import VectorShogi


class PolicyPlayer:
    """Plays the likeliest move of the policy, or samples one; short mates by the mate rule."""

    def __init__(
        self,
        predictor: Predictor,
        *,
        name: str,
        identity: str,
        temperature: float = 0.0,
        spread: float = 0.0,
        mate_plies: int = 1,
    ) -> None:
        """Make a player.

        Args:
            predictor: the network.
            name: shown to people.
            identity: exact description of the network.
            temperature: of the policy that moves are sampled from; 0: always the likeliest move.
            spread: if above 0, moves are sampled by `spread_policy` instead.
            mate_plies: longest mate that the mate rule plays, in plies; 0: none.
        """
        self.name = name
        self.identity = identity
        self.predictor = predictor
        self._temperature = temperature
        self._spread = spread
        self._mate_rule = MateRule(mate_plies)

    def choose(
        self, env: VectorShogi, games: npt.NDArray[np.int64], random: np.random.Generator
    ) -> LegalIndices:
        """Choose moves with one call of the network."""
        prediction = self.predictor.predict(env.observe(games))
        if self._spread > 0.0:
            legal_indices = sample_policy(spread_policy(prediction.log_probs, self._spread), random)
        elif self._temperature > 0.0:
            legal_indices = sample_policy(
                prediction.log_probs / np.float32(self._temperature), random
            )
        else:
            legal_indices = np.argmax(prediction.log_probs, axis=1)
        mates = self._mate_rule.legal_indices(env, games)
        return np.where(mates >= 0, mates, legal_indices)

    def close(self) -> None:
        """Do nothing: it holds only memory."""


class SearchPlayer:
    """Plays the best move of a tree search of all its games together."""

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
        """Make a player.

        Args:
            predictor: the network.
            simulations: of the search, for each move.
            name: shown to people.
            identity: exact description of network and search.
            mate_plies: longest mate that is searched for at the root first, in plies; 0: none.
            temperature: moves are drawn by their visits to the power of 1 over this; 0: the best.
        """
        self.name = name
        self.identity = identity
        self.predictor = predictor
        self._search = TreeSearch(
            predictor, simulations, mate_plies=mate_plies, temperature=temperature
        )

    def choose(
        self, env: VectorShogi, games: npt.NDArray[np.int64], random: np.random.Generator
    ) -> LegalIndices:
        """Choose the best moves of a search."""
        return self._search.search(env, games, random).legal_indices

    def close(self) -> None:
        """Do nothing: it holds only memory."""

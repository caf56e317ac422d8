"""A network as a player, by its policy alone."""

import numpy as np

from keisei.evaluation.player import Columns
from keisei.search.judge import Judge, draw
from keisei.search.mates import MateRule
from keisei.shogi.vector import VectorShogi


class PolicyPlayer:
    """Plays the likeliest move, or draws one; a short mate that it is shown comes first."""

    def __init__(
        self,
        judge: Judge,
        *,
        name: str,
        identity: str,
        temperature: float = 0.0,
        mate_plies: int = 1,
    ) -> None:
        """Make a player.

        Args:
            judge: the network.
            name: what people call it.
            identity: what the network is, exactly.
            temperature: 0: always the likeliest move; 1: as the policy says.
            mate_plies: mates of up to so many plies are played whatever the policy says; 0: none.
        """
        self.name = name
        self.identity = identity
        self._judge = judge
        self._temperature = temperature
        self._mate_rule = MateRule(mate_plies)

    def choose(self, env: VectorShogi, games: Columns, random: np.random.Generator) -> Columns:
        """Judge all the boards in one call."""
        judgement = self._judge.judge(
            env.packed[games], env.legal_actions[games], env.legal_counts[games]
        )
        if self._temperature > 0.0:
            columns = draw(judgement.log_probs / np.float32(self._temperature), random)
        else:
            columns = np.argmax(judgement.log_probs, axis=1)
        mates = self._mate_rule.columns(env, games)
        return np.where(mates >= 0, mates, columns)

    def close(self) -> None:
        """Nothing is held but memory."""

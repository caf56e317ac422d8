"""The experience of one rollout, and what is to be learned from it: about 140 bytes a ply.

Legal lists and planes are not kept: a kernel makes them anew for each minibatch, in the same order
(`docs/decisions/006-legal-lists-are-made-anew.md`).
"""

import numpy as np
import numpy.typing as npt

from keisei.ppo.advantages import shaped_rewards, two_player_advantages
from keisei.ppo.experience import Experience
from keisei.shogi.material import material_potentials


class RolloutBuffer(Experience):
    """`T` plies of `N` games with their advantages and returns."""

    def __init__(self, plies: int, games: int) -> None:
        super().__init__(plies, games)
        self.advantages = np.zeros((plies, games), dtype=np.float32)
        self.returns = np.zeros((plies, games), dtype=np.float32)

    @property
    def bytes_per_ply(self) -> float:
        """Memory that a buffered ply takes."""
        arrays = [*self.arrays().values(), self.advantages, self.returns]
        return sum(array.nbytes for array in arrays) / len(self)

    def finish(self, *, gamma: float, gae_lambda: float, shaping: float = 0.0) -> None:
        """Compute advantages and returns once all plies are in, and the positions after them."""
        rewards = self.rewards
        if shaping > 0.0:
            potentials = material_potentials(self.packed.reshape(-1)).reshape(self.rewards.shape)
            last_potentials = material_potentials(self.last_packed)
            rewards = shaped_rewards(
                rewards, potentials, self.ends, last_potentials, gamma=gamma, weight=shaping
            )
        self.advantages[...] = two_player_advantages(
            rewards, self.values, self.ends, self.last_values, gamma=gamma, gae_lambda=gae_lambda
        )
        np.add(self.advantages, self.values, out=self.returns)

    def sample_order(self, random: np.random.Generator) -> npt.NDArray[np.int64]:
        """The flat indices of all plies to learn from, shuffled."""
        useful = np.flatnonzero((self.learns_policy | self.learns_value).reshape(-1))
        return random.permutation(useful)

"""The experience of one rollout: packed positions and what was done in them, about 140 bytes a ply.

Legal lists and planes are not kept: a kernel makes them anew for each minibatch, in the same order
(`docs/decisions/006-legal-lists-are-made-anew.md`).
"""

import numpy as np
import numpy.typing as npt

from keisei.ppo.advantages import Floats, shaped_rewards, two_player_advantages
from keisei.shogi.material import material_potentials
from keisei.shogi.packed import PACKED
from keisei.shogi.position import Records


class RolloutBuffer:
    """`T` plies of `N` games, allocated once and filled in place."""

    def __init__(self, plies: int, games: int) -> None:
        shape = (plies, games)
        self.plies, self.games = shape
        self.packed: Records = np.zeros(shape, dtype=PACKED).view(np.recarray)
        """``[T, N]``: positions as the network saw them, each in its mover's view."""

        self.actions = np.zeros(shape, dtype=np.uint16)
        self.log_probs = np.zeros(shape, dtype=np.float32)
        self.values = np.zeros(shape, dtype=np.float32)
        self.rewards = np.zeros(shape, dtype=np.float32)
        self.ends = np.zeros(shape, dtype=np.bool_)
        self.learns_policy = np.zeros(shape, dtype=np.bool_)
        """False for moves that the network did not choose: forced ones, the frozen side's."""

        self.learns_value = np.zeros(shape, dtype=np.bool_)
        """False for the positions of a frozen opponent."""

        self.advantages = np.zeros(shape, dtype=np.float32)
        self.returns = np.zeros(shape, dtype=np.float32)

    def __len__(self) -> int:
        """How many plies a full rollout holds."""
        return self.plies * self.games

    def __bool__(self) -> bool:
        """Always true: by its length, a buffer without plies would be taken for a missing one."""
        return True

    @property
    def bytes_per_ply(self) -> float:
        """Memory that a buffered ply takes."""
        arrays = [value for value in vars(self).values() if isinstance(value, np.ndarray)]
        return sum(array.nbytes for array in arrays) / len(self)

    def finish(
        self,
        last_values: Floats,
        last_packed: Records,
        *,
        gamma: float,
        gae_lambda: float,
        shaping: float = 0.0,
    ) -> None:
        """Compute advantages and returns once all plies are in.

        `last_values` and `last_packed`, ``[N]``, are of the positions after the last ply.
        """
        rewards = self.rewards
        if shaping > 0.0:
            potentials = material_potentials(self.packed.reshape(-1)).reshape(self.rewards.shape)
            last_potentials = material_potentials(last_packed)
            rewards = shaped_rewards(
                rewards, potentials, self.ends, last_potentials, gamma=gamma, weight=shaping
            )
        self.advantages[...] = two_player_advantages(
            rewards, self.values, self.ends, last_values, gamma=gamma, gae_lambda=gae_lambda
        )
        np.add(self.advantages, self.values, out=self.returns)

    def sample_order(self, random: np.random.Generator) -> npt.NDArray[np.int64]:
        """The flat indices of all plies to learn from, shuffled."""
        useful = np.flatnonzero((self.learns_policy | self.learns_value).reshape(-1))
        return random.permutation(useful)

"""Generalized advantage estimation (GAE) for two alternating players.

Values, rewards and advantages are from the mover's point of view. The next ply is the opponent's,
so both signs flip:

    delta_t = r_t - gamma * V(s_t+1) - V(s_t)
    A_t     = delta_t - gamma * lambda * A_t+1

within a game; both sums end with the game.
"""

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float32]


def two_player_advantages(
    rewards: Floats,
    values: Floats,
    ends: npt.NDArray[np.bool_],
    last_values: Floats,
    *,
    gamma: float,
    gae_lambda: float,
) -> Floats:
    """Compute advantages ``[T, N]`` of `T` consecutive plies in each of `N` games.

    Args:
        rewards: ``[T, N]``, each for the player who moved.
        values: ``[T, N]``, of the position before the move, for its mover.
        ends: ``[T, N]``, whether the move ended its game; the next row starts another.
        last_values: ``[N]``, of the position after the last row, for its mover.
        gamma: discount per ply.
        gae_lambda: 0 relies on the values only, 1 on the outcomes only.
    """
    advantages = np.empty_like(rewards)
    next_values, next_advantages = last_values, np.zeros_like(last_values)
    for t in range(len(rewards) - 1, -1, -1):
        continues = np.where(ends[t], np.float32(0.0), np.float32(1.0))
        delta = rewards[t] - gamma * continues * next_values - values[t]
        advantages[t] = delta - gamma * gae_lambda * continues * next_advantages
        next_values, next_advantages = values[t], advantages[t]
    return advantages


def shaped_rewards(
    rewards: Floats,
    potentials: Floats,
    ends: npt.NDArray[np.bool_],
    last_potentials: Floats,
    *,
    gamma: float,
    weight: float,
) -> Floats:
    """Add `weight` times the discounted gain of a potential to rewards ``[T, N]``.

    The potential is from the mover's point of view too, so the gain of a move is
    ``-gamma * P(s_t+1) - P(s_t)``; after the end of a game it is 0. Such shaping does not change
    which policy is optimal (Ng, Harada and Russell, 1999): over a game it adds up to the potential
    of the first position.
    """
    following = np.concatenate([potentials[1:], last_potentials[None]])
    gain = -gamma * np.where(ends, np.float32(0.0), following) - potentials
    return (rewards + np.float32(weight) * gain).astype(np.float32)

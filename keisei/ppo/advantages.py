"""Generalised advantage estimation for two alternating players.

Values, rewards and advantages are the mover's. The next ply is the opponent's, so whatever is good
there is bad here, and both signs flip:

    delta_t = r_t - gamma * V(s_t+1) - V(s_t)
    A_t     = delta_t - gamma * lambda * A_t+1

within a game, and cut where a game ends.
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
    """Advantages ``[T, N]`` of `T` consecutive plies in each of `N` games.

    Args:
        rewards: ``[T, N]``, each for the player who moved.
        values: ``[T, N]``, of the position before the move, for its mover.
        ends: ``[T, N]``, whether the move ended its game; the next row begins another.
        last_values: ``[N]``, of the position after the last row, for its mover.
        gamma: discount per ply.
        gae_lambda: 0 trusts the values, 1 the outcome.
    """
    advantages = np.empty_like(rewards)
    next_values, next_advantages = last_values, np.zeros_like(last_values)
    for t in range(len(rewards) - 1, -1, -1):
        goes_on = np.where(ends[t], np.float32(0.0), np.float32(1.0))
        delta = rewards[t] - gamma * goes_on * next_values - values[t]
        advantages[t] = delta - gamma * gae_lambda * goes_on * next_advantages
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
    """Rewards plus `weight` times the discounted gain of a potential, ``[T, N]``.

    The potential is the mover's too, so the gain of a move is ``-gamma * P(s_t+1) - P(s_t)``; a
    finished game has none. Such shaping does not change which policy is optimal (Ng, Harada and
    Russell, 1999): over a game it adds up to what the first position was worth.
    """
    following = np.concatenate([potentials[1:], last_potentials[None]])
    gain = -gamma * np.where(ends, np.float32(0.0), following) - potentials
    return (rewards + np.float32(weight) * gain).astype(np.float32)

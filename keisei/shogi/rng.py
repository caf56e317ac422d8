"""Chance inside kernels: a generator state of 64 bits that each caller owns."""

import numpy as np
import numpy.typing as npt

from keisei.shogi.jit import int64, jit, jit_inner
from keisei.shogi.position import Array


@jit_inner
def random_below(states: Array, index: int, bound: int) -> int:
    """A uniform number in ``0 .. bound - 1``; ``states[index]`` (uint64, not 0) moves on."""
    state = states[index]
    state ^= state << np.uint64(13)
    state ^= state >> np.uint64(7)
    state ^= state << np.uint64(17)
    states[index] = state
    return int64((state >> np.uint64(32)) * np.uint64(bound) >> np.uint64(32))


def seed_rng_states(random: np.random.Generator, number: int) -> npt.NDArray[np.uint64]:
    """Fresh states for `random_below`."""
    return random.integers(1, 1 << 63, size=number, dtype=np.uint64)


def draw_moves(
    log_probs: npt.NDArray[np.float32], states: npt.NDArray[np.uint64]
) -> npt.NDArray[np.int64]:
    """A legal_index ``[B]`` drawn from each row's distribution, by the chance of ``states[B]``."""
    legal_indices = np.empty(len(log_probs), dtype=np.int64)
    _draw_legal_indices(log_probs, states, legal_indices)
    return legal_indices


def toss_coins(states: npt.NDArray[np.uint64]) -> npt.NDArray[np.bool_]:
    """Heads or tails ``[B]``, by the chance of ``states[B]``."""
    coins = np.empty(len(states), dtype=np.bool_)
    _toss_coins(states, coins)
    return coins


@jit
def _draw_legal_indices(log_probs: Array, states: Array, legal_indices: Array) -> None:
    for row in range(len(legal_indices)):
        left = random_below(states, row, 1 << 32) / (1 << 32)
        chosen = 0
        for legal_index in range(log_probs.shape[1]):
            share = np.exp(log_probs[row, legal_index])
            if share > 0.0:
                chosen = (
                    legal_index  # the last one that can be, should rounding leave something over
                )
                left -= share
                if left < 0.0:
                    break
        legal_indices[row] = chosen


@jit
def _toss_coins(states: Array, coins: Array) -> None:
    for index in range(len(coins)):
        coins[index] = random_below(states, index, 2) == 0

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


def seeds_of_luck(random: np.random.Generator, number: int) -> npt.NDArray[np.uint64]:
    """Fresh states for `random_below`."""
    return random.integers(1, 1 << 63, size=number, dtype=np.uint64)


def draw_moves(
    log_probs: npt.NDArray[np.float32], states: npt.NDArray[np.uint64]
) -> npt.NDArray[np.int64]:
    """A column ``[B]`` drawn from each row's distribution, by the chance of ``states[B]``."""
    columns = np.empty(len(log_probs), dtype=np.int64)
    _draw_columns(log_probs, states, columns)
    return columns


def toss_coins(states: npt.NDArray[np.uint64]) -> npt.NDArray[np.bool_]:
    """Heads or tails ``[B]``, by the chance of ``states[B]``."""
    coins = np.empty(len(states), dtype=np.bool_)
    _toss_coins(states, coins)
    return coins


@jit
def _draw_columns(log_probs: Array, states: Array, columns: Array) -> None:
    for row in range(len(columns)):
        left = random_below(states, row, 1 << 32) / (1 << 32)
        chosen = 0
        for column in range(log_probs.shape[1]):
            share = np.exp(log_probs[row, column])
            if share > 0.0:
                chosen = column  # the last one that can be, should rounding leave something over
                left -= share
                if left < 0.0:
                    break
        columns[row] = chosen


@jit
def _toss_coins(states: Array, coins: Array) -> None:
    for index in range(len(coins)):
        coins[index] = random_below(states, index, 2) == 0

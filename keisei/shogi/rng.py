"""Random numbers inside kernels: xorshift generators whose 64-bit states the caller owns.

Each game has a generator state of its own, so that its moves do not depend on the other games.
"""

import numpy as np
import numpy.typing as npt

from keisei.shogi.jit import int64, jit, jit_inner
from keisei.shogi.position import Array


@jit_inner
def random_below(rng_states: Array, index: int, bound: int) -> int:
    """Sample uniformly from ``0 .. bound - 1``, advancing ``rng_states[index]`` (uint64, not 0)."""
    state = rng_states[index]
    state ^= state << np.uint64(13)
    state ^= state >> np.uint64(7)
    state ^= state << np.uint64(17)
    rng_states[index] = state
    return int64((state >> np.uint64(32)) * np.uint64(bound) >> np.uint64(32))


def seed_rng_states(random: np.random.Generator, number: int) -> npt.NDArray[np.uint64]:
    """Draw `number` states for `random_below` from a NumPy generator."""
    return random.integers(1, 1 << 63, size=number, dtype=np.uint64)


def game_rng_states(seed: int, number: int, first: int = 0) -> npt.NDArray[np.uint64]:
    """Derive a state for each of games `first`, `first` + 1 ... from a seed.

    The state of a game does not depend on `first` and `number`.
    """
    sequence = np.random.SeedSequence(seed)
    states = sequence.generate_state(first + number, dtype=np.uint64)[first:]
    return np.maximum(states, np.uint64(1))


def sample_moves(
    log_probs: npt.NDArray[np.float32], rng_states: npt.NDArray[np.uint64]
) -> npt.NDArray[np.int64]:
    """Sample a legal index ``[B]`` from each row of ``log_probs[B, M]``, advancing the states."""
    legal_indices = np.empty(len(log_probs), dtype=np.int64)
    _sample_legal_indices(log_probs, rng_states, legal_indices)
    return legal_indices


def coin_flips(rng_states: npt.NDArray[np.uint64]) -> npt.NDArray[np.bool_]:
    """Sample fair random booleans ``[B]``, advancing ``rng_states[B]``."""
    flips = np.empty(len(rng_states), dtype=np.bool_)
    _flip_coins(rng_states, flips)
    return flips


@jit
def _sample_legal_indices(log_probs: Array, rng_states: Array, legal_indices: Array) -> None:
    for row in range(len(legal_indices)):
        left = random_below(rng_states, row, 1 << 32) / (1 << 32)
        chosen = 0
        for legal_index in range(log_probs.shape[1]):
            share = np.exp(log_probs[row, legal_index])
            if share > 0.0:
                chosen = legal_index  # the last possible one, should rounding leave a remainder
                left -= share
                if left < 0.0:
                    break
        legal_indices[row] = chosen


@jit
def _flip_coins(rng_states: Array, flips: Array) -> None:
    for index in range(len(flips)):
        flips[index] = random_below(rng_states, index, 2) == 0

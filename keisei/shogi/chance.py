"""Chance inside kernels: a generator state of 64 bits that each caller owns."""

import numpy as np
import numpy.typing as npt

from keisei.shogi.jit import int64, jit_inner
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

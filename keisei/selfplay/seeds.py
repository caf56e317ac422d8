"""Where chance comes from: one seed for the run, a stream of its own for each purpose.

Games have numbers that count through all workers, and each has chance of its own; so game 7 of a
run is the same whether one process plays all games or many share them.
"""

from typing import NamedTuple

import numpy as np

_MASK = (1 << 63) - 1


class RunSeeds(NamedTuple):
    """The seeds of a run, by what they decide."""

    env: int
    """Start positions and opening plies."""

    weights: int
    """The network's first weights."""

    acting: int
    """Which moves are drawn."""

    learning: int
    """The order of samples."""

    pool: int
    """Which earlier selves are met, and with which colour."""

    @classmethod
    def of(cls, seed: int, resumed_at: int = 0) -> "RunSeeds":
        """The seeds that follow from ``run.seed``, and from the update at which it goes on."""
        entropy = [seed, resumed_at] if resumed_at else seed
        children = np.random.SeedSequence(entropy).spawn(len(cls._fields))
        return cls(*(int(child.generate_state(1, np.uint64)[0]) & _MASK for child in children))

"""Judges whose opinions are known, in place of networks."""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from keisei.network.predictor import Prediction
from keisei.shogi.material import material_potentials
from keisei.shogi.packed import Positions
from keisei.shogi.position import Records

Numbers = npt.NDArray[Any]


def equally(actions: Numbers) -> Numbers:
    """All moves alike."""
    return np.zeros(actions.shape)


def by_place(actions: Numbers) -> Numbers:
    """Moves the more the later they stand in the list."""
    return 0.1 * np.broadcast_to(np.arange(actions.shape[1]), actions.shape)


def no_opinion(packed: Records) -> Numbers:
    """Every position is worth nothing."""
    return np.zeros(len(packed))


class KnownPredictor:
    """Likes moves and values positions as two functions say; remembers what it was asked."""

    def __init__(
        self,
        liking: Callable[[Numbers], Numbers] = equally,
        value: Callable[[Records], Numbers] = material_potentials,
    ) -> None:
        """Make a predictor.

        Args:
            liking: the logits of actions, both ``[B, moves]``.
            value: of positions for their movers, ``[B]``; material if left out.
        """
        self._liking = liking
        self._value = value
        self.asked: list[Records] = []
        """The positions of each call."""

    def predict(self, positions: Positions) -> Prediction:
        packed, legal_actions, legal_counts = positions
        self.asked.append(packed.copy())
        width = int(legal_counts.max())
        is_legal = np.arange(width) < legal_counts[:, None]
        logits = np.where(is_legal, self._liking(legal_actions[:, :width]), -np.inf)
        log_probs = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
        return Prediction(log_probs.astype(np.float32), self._value(packed).astype(np.float32))

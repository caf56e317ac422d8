"""Predictors with known policies and values, in place of networks."""

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from keisei.network.predictor import Prediction
from keisei.shogi.material import material_potentials
from keisei.shogi.packed import Positions
from keisei.shogi.position import Records

Numbers = npt.NDArray[Any]


def uniform(actions: Numbers) -> Numbers:
    """Return equal logits for all moves."""
    return np.zeros(actions.shape)


def by_place(actions: Numbers) -> Numbers:
    """Return logits that grow with the place of a move in the legal list."""
    return 0.1 * np.broadcast_to(np.arange(actions.shape[1]), actions.shape)


def zero_value(packed: Records) -> Numbers:
    """Return the value 0 for every position."""
    return np.zeros(len(packed))


class KnownPredictor:
    """Predicts logits and values by two functions; keeps what it was called with."""

    def __init__(
        self,
        logits: Callable[[Numbers], Numbers] = uniform,
        value: Callable[[Records], Numbers] = material_potentials,
    ) -> None:
        """Make a predictor.

        Args:
            logits: of actions, both ``[B, moves]``.
            value: of positions for their movers, ``[B]``; material by default.
        """
        self._logits = logits
        self._value = value
        self.batches: list[Records] = []
        """The packed positions of each call."""

    def predict(self, positions: Positions) -> Prediction:
        packed, legal_actions, legal_counts = positions
        self.batches.append(packed.copy())
        width = int(legal_counts.max())
        is_legal = np.arange(width) < legal_counts[:, None]
        logits = np.where(is_legal, self._logits(legal_actions[:, :width]), -np.inf)
        log_probs = logits - np.log(np.exp(logits).sum(axis=1, keepdims=True))
        return Prediction(log_probs.astype(np.float32), self._value(packed).astype(np.float32))

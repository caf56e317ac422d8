"""What is asked about positions: a network, whatever computes it. Knows nothing of torch."""

from typing import NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from keisei.shogi.packed import Positions

WIDTH_STEP = 32
"""Legal lists are padded to multiples of this, so that a compiled network sees few shapes."""


class Prediction(NamedTuple):
    """What a network says of ``B`` positions."""

    log_probs: npt.NDArray[np.float32]
    """``[B, M]``: of the legal moves, in the order of their list; minus infinity beyond them."""

    values: npt.NDArray[np.float32]
    """``[B]``: from -1, lost for the mover, to 1, won."""


class Predictor(Protocol):
    """Predicts, for many positions at once, how likely each legal move is and who is winning."""

    def predict(self, positions: Positions) -> Prediction:
        """Predict the policy ``[B, M]`` and the value ``[B]`` of ``B`` positions."""
        ...


def padded_width(counts: npt.NDArray[np.int32], most: int) -> int:
    """Columns that hold the longest list, rounded up."""
    return min(-(-int(counts.max()) // WIDTH_STEP) * WIDTH_STEP, most)


def draw(log_probs: npt.NDArray[np.float32], random: np.random.Generator) -> npt.NDArray[np.int64]:
    """A legal_index ``[B]`` drawn from each row's distribution (by the Gumbel trick)."""
    noise = random.gumbel(size=log_probs.shape).astype(np.float32)
    legal_indices: npt.NDArray[np.int64] = np.argmax(log_probs + noise, axis=1)
    return legal_indices

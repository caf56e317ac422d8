"""`Predictor`, `Network` and `Prediction`: what the rest of Keisei knows of a network.

Self-play, search, players and the web call networks only through these. Nothing here needs torch:
the towers (`keisei.network.towers`) are one implementation, ONNX files another.
"""

import zlib
from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol, Self

import numpy as np
import numpy.typing as npt

from keisei.shogi.features import FeatureSpec
from keisei.shogi.packed import Positions

Weights = Mapping[str, npt.NDArray[Any]]
"""The weights of a network as named arrays: what checkpoints, workers and Ray carry."""

WIDTH_STEP = 32
"""Legal lists are padded to multiples of this, so that a compiled network sees few shapes."""


class Prediction(NamedTuple):
    """Policy and value of ``B`` positions."""

    log_probs: npt.NDArray[np.float32]
    """``[B, M]``: log-probabilities of the legal moves, in the order of their list; minus infinity
    beyond them."""

    values: npt.NDArray[np.float32]
    """``[B]``: from -1, lost for the mover, to 1, won."""


class Predictor(Protocol):
    """Predicts, for many positions at once, how likely each legal move is and who is winning."""

    def predict(self, positions: Positions) -> Prediction:
        """Predict the policy ``[B, M]`` and the value ``[B]`` of ``B`` positions."""
        ...


class Network(Predictor, Protocol):
    """A predictor whose weights can be read and replaced."""

    @property
    def spec(self) -> FeatureSpec:
        """The planes that it reads."""
        ...

    @property
    def device(self) -> str:
        """Where it computes: ``cpu``, ``cuda:0``, ``mps``."""
        ...

    @property
    def threads(self) -> int:
        """Threads that compute on the CPU."""
        ...

    def weights(self) -> Weights:
        """The weights as they are now; the arrays may be the network's own, so copy to keep."""
        ...

    def load_weights(self, weights: Weights) -> None:
        """Replace all weights.

        Raises:
            WeightsError: They are those of another network.
        """
        ...

    def copy(self) -> Self:
        """A network of the same kind with weights of its own."""
        ...


def weights_checksum(weights: Weights) -> int:
    """CRC-32 checksum of weights: equal for equal weights, and hardly ever for others."""
    checksum = 0
    for array in weights.values():
        checksum = zlib.crc32(array.tobytes(), checksum)
    return checksum


def padded_width(counts: npt.NDArray[np.int32], limit: int) -> int:
    """Width that holds the longest legal list, rounded up to `WIDTH_STEP`, at most `limit`."""
    return min(-(-int(counts.max()) // WIDTH_STEP) * WIDTH_STEP, limit)


def sample_policy(
    log_probs: npt.NDArray[np.float32], random: np.random.Generator
) -> npt.NDArray[np.int64]:
    """Legal indices ``[B]`` drawn from the distributions ``[B, M]`` (by the Gumbel trick)."""
    noise = random.gumbel(size=log_probs.shape).astype(np.float32)
    legal_indices: npt.NDArray[np.int64] = np.argmax(log_probs + noise, axis=1)
    return legal_indices

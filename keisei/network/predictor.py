"""`Predictor`, `Network` and `Prediction`: the interface between networks and the rest of Keisei.

Self-play, search, players and the web call networks only through these. Nothing here needs torch:
the towers (`keisei.network.towers`) are one implementation, the sparse network
(`keisei.network.sparse`) and ONNX files are others.
"""

import zlib
from collections.abc import Mapping
from typing import Any, Final, NamedTuple, Protocol, Self

import numpy as np
import numpy.typing as npt

from keisei.shogi.features import FeatureSpec
from keisei.shogi.packed import Positions

Weights = Mapping[str, npt.NDArray[Any]]
"""Weights of a network as named arrays, as checkpoints, workers and Ray carry them."""


class Prediction(NamedTuple):
    """Policy and value of ``B`` positions."""

    log_probs: npt.NDArray[np.float32]
    """``[B, M]``: log-probabilities of the legal moves, in the order of the legal list; minus
    infinity in the padding."""

    values: npt.NDArray[np.float32]
    """``[B]``: expected outcomes from -1, the mover loses, to 1."""


class Predictor(Protocol):
    """Predicts policy and value of a batch of positions."""

    def predict(self, positions: Positions) -> Prediction:
        """Predict the policy ``[B, M]`` and the value ``[B]`` of ``B`` positions."""
        ...


class Network(Predictor, Protocol):
    """A predictor whose weights can be read and replaced."""

    @property
    def spec(self) -> FeatureSpec:
        """Input planes."""
        ...

    @property
    def device(self) -> str:
        """Device that it computes on: ``cpu``, ``cuda:0``, ``mps``."""
        ...

    @property
    def threads(self) -> int:
        """Number of threads that compute on the CPU."""
        ...

    def weights(self) -> Weights:
        """Return the current weights; the arrays may be the network's own: copy to keep them."""
        ...

    def load_weights(self, weights: Weights) -> None:
        """Replace all weights by copies of `weights`.

        Raises:
            WeightsError: They belong to another network; this one is unchanged.
        """
        ...

    def copy(self) -> Self:
        """Return a copy of the network, with its own weights."""
        ...


def weights_checksum(weights: Weights) -> int:
    """CRC-32 checksum of weights: equal for equal weights, and hardly ever for others."""
    checksum = 0
    for array in weights.values():
        checksum = zlib.crc32(array.tobytes(), checksum)
    return checksum


MIN_DEVIATION: Final = 1e-3
"""A policy whose logarithms differ less than this has no preferences."""


def spread_policy(
    log_probs: npt.NDArray[np.floating[Any]], spread: float
) -> npt.NDArray[np.float32]:
    """Scale each row of log-probabilities ``[B, M]`` to a standard deviation; they are logits then.

    Minus infinity is padding, and stays.
    """
    is_legal = np.isfinite(log_probs)
    counts = is_legal.sum(axis=1, keepdims=True)
    known = np.where(is_legal, log_probs, 0.0)
    means = known.sum(axis=1, keepdims=True) / counts
    squares = np.where(is_legal, (known - means) ** 2, 0.0).sum(axis=1, keepdims=True) / counts
    scales = spread / np.maximum(np.sqrt(squares), MIN_DEVIATION)
    return np.where(is_legal, scales * (known - means), -np.inf).astype(np.float32)


def sample_policy(
    log_probs: npt.NDArray[np.float32], random: np.random.Generator
) -> npt.NDArray[np.int64]:
    """Draw legal indices ``[B]`` from log-probabilities ``[B, M]`` by the Gumbel-max trick."""
    noise = random.gumbel(size=log_probs.shape).astype(np.float32)
    legal_indices: npt.NDArray[np.int64] = np.argmax(log_probs + noise, axis=1)
    return legal_indices

"""Minibatches: planes, legal lists and targets of plies of a rollout, on the device."""

from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from keisei.constants import MAX_LEGAL_MOVES
from keisei.network.predictor import padded_width
from keisei.network.towers.device import Compute
from keisei.network.towers.torch_predictor import planes_tensor
from keisei.ppo.buffer import ExperienceBuffer
from keisei.shogi.features import FeatureSpec
from keisei.shogi.packed import legal_from_packed
from keisei.shogi.position import new_positions


class Minibatch(NamedTuple):
    """``B`` samples to train on."""

    planes: Tensor  # [B, C, 9, 9]
    legal: Tensor  # [B, M] int64: legal actions
    counts: Tensor  # [B]: number of legal actions
    legal_indices: Tensor  # [B] int64: the action played, as an index into `legal`
    log_probs: Tensor  # [B]: of that action, when it was played
    advantages: Tensor  # [B]
    returns: Tensor  # [B]
    learns_policy: Tensor  # [B] bool


class MinibatchMaker:
    """Makes minibatches in its own buffers; each minibatch overwrites the one before."""

    def __init__(self, spec: FeatureSpec, compute: Compute) -> None:
        self.spec = spec
        self.compute = compute
        self._scratch = new_positions(2)
        self._planes = np.empty((0, *spec.shape), dtype=np.float32)
        self._legal = np.zeros((0, MAX_LEGAL_MOVES), dtype=np.uint16)
        self._counts = np.zeros(0, dtype=np.int32)

    def make(self, buffer: ExperienceBuffer, indices: npt.NDArray[np.int64]) -> Minibatch:
        """Make the minibatch of the samples at flat `indices` of a finished rollout."""
        batch = len(indices)
        if len(self._planes) < batch:
            self._planes = np.empty((batch, *self.spec.shape), dtype=np.float32)
            self._legal = np.zeros((batch, MAX_LEGAL_MOVES), dtype=np.uint16)
            self._counts = np.zeros(batch, dtype=np.int32)
        packed = buffer.packed.reshape(-1)[indices]
        planes = self.spec.encode(packed, self._planes[:batch])
        legal_from_packed(packed, self._legal, self._counts, self._scratch, 0, batch)
        counts = self._counts[:batch]
        width = padded_width(counts, MAX_LEGAL_MOVES)
        legal = self._legal[:batch, :width].astype(np.int64)
        actions = buffer.actions.reshape(-1)[indices].astype(np.int64)
        # Beyond its count a row holds old entries, which may equal the action: they come later.
        legal_indices = np.argmax(legal == actions[:, None], axis=1)
        return Minibatch(
            planes=planes_tensor(planes, self.compute),
            legal=self._tensor(legal),
            counts=self._tensor(counts),
            legal_indices=self._tensor(legal_indices),
            log_probs=self._tensor(buffer.log_probs.reshape(-1)[indices]),
            advantages=self._tensor(buffer.advantages.reshape(-1)[indices]),
            returns=self._tensor(buffer.returns.reshape(-1)[indices]),
            learns_policy=self._tensor(buffer.learns_policy.reshape(-1)[indices]),
        )

    def _tensor(self, array: npt.NDArray[np.generic]) -> Tensor:
        return torch.from_numpy(array).to(self.compute.device, non_blocking=True)

"""Asking a network about many positions at once: legal-only log-probabilities and values."""

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from keisei.network.predictor import Prediction, padded_width
from keisei.network.towers.device import Compute
from keisei.network.towers.model import ActorCritic
from keisei.ppo.losses import legal_log_probs
from keisei.shogi.features import FeatureSpec
from keisei.shogi.packed import Positions
from keisei.timing import Stopwatch

CPU_BATCH = 256
"""Positions per call on a CPU: larger batches fall out of its cache and are slower."""


class TorchPredictor:
    """A network that is only asked, not trained."""

    def __init__(
        self,
        network: ActorCritic,
        compute: Compute,
        spec: FeatureSpec,
        stopwatch: Stopwatch | None = None,
    ) -> None:
        self.network = network
        self.compute = compute
        self.spec = spec
        self.stopwatch = stopwatch or Stopwatch()
        """Runs while the network computes."""

        self._planes = np.empty((0, *spec.shape), dtype=np.float32)

    def predict(self, positions: Positions) -> Prediction:
        """Predict the policy ``[B, M]`` and the value ``[B]`` of ``B`` positions."""
        packed, legal_actions, legal_counts = positions
        batch = len(packed)
        width = padded_width(legal_counts, legal_actions.shape[1])
        log_probs = np.empty((batch, width), dtype=np.float32)
        values = np.empty(batch, dtype=np.float32)
        if len(self._planes) < batch:
            self._planes = np.empty((batch, *self.spec.shape), dtype=np.float32)
        planes = self.spec.encode(packed, self._planes[:batch])
        step = CPU_BATCH if self.compute.device.type == "cpu" else batch
        for start in range(0, batch, step):
            rows = slice(start, start + step)
            part = self._forward(planes[rows], legal_actions[rows, :width], legal_counts[rows])
            log_probs[rows], values[rows] = part
        return Prediction(log_probs, values)

    @torch.inference_mode()
    def _forward(
        self,
        planes: npt.NDArray[np.float32],
        legal: npt.NDArray[np.uint16],
        counts: npt.NDArray[np.int32],
    ) -> tuple[npt.NDArray[np.float32], npt.NDArray[np.float32]]:
        device = self.compute.device
        board = planes_tensor(planes, self.compute)
        moves = torch.from_numpy(legal.astype(np.int64)).to(device)
        with self.stopwatch:
            with self.compute.autocast():
                output = self.network(board, moves)
            log_probs = legal_log_probs(output.logits, torch.from_numpy(counts).to(device))
            values = self.network.values(output.value).float()
            return log_probs.cpu().numpy(), values.cpu().numpy()


def planes_tensor(planes: npt.NDArray[np.float32], compute: Compute) -> Tensor:
    """Planes on the device, in the memory layout that is fastest there."""
    tensor = torch.from_numpy(planes).to(compute.device, non_blocking=True)
    return tensor.contiguous(memory_format=torch.channels_last) if compute.channels_last else tensor

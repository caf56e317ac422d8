"""`TorchPredictor`: a tower as a `Network`, as the rest of Keisei calls it."""

import copy
from typing import Self

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from keisei.config_schema import AppConfig, DeviceConfig
from keisei.network.model_factory import build_model
from keisei.network.predictor import Prediction, Weights
from keisei.network.towers.device import Compute, choose_compute
from keisei.network.towers.model import ActorCritic, legal_log_probs
from keisei.network.towers.weights import load_weights, weight_tensors
from keisei.shogi.features import FeatureSpec, feature_spec
from keisei.shogi.packed import Positions, padded_width
from keisei.timing import Stopwatch

CPU_BATCH = 256
"""Positions per call on a CPU: larger batches fall out of its cache and are slower."""


def make_network(config: AppConfig, device: DeviceConfig) -> "TorchPredictor":
    """Build a tower with random weights, on its device, compiled if the settings say so."""
    spec = feature_spec(config.env.input_features)
    compute = choose_compute(device)
    model = compute.prepare(build_model(config.model, spec)).eval()
    return TorchPredictor(compute.compiled(model), compute, spec, ply_limit=config.env.ply_limit)


class TorchPredictor:
    """A tower on its device, which predicts for packed positions."""

    def __init__(
        self,
        model: ActorCritic,
        compute: Compute,
        spec: FeatureSpec,
        stopwatch: Stopwatch | None = None,
        *,
        ply_limit: int = 0,
    ) -> None:
        self.model = model
        self.compute = compute
        self.spec = spec
        self.stopwatch = stopwatch or Stopwatch()
        """Runs while the tower computes; encoding planes is not counted."""

        self.ply_limit = ply_limit
        """That of the games it is trained on; 0: that of each game is taken for it."""

        self._planes = np.empty((0, *spec.shape), dtype=np.float32)

    @property
    def device(self) -> str:
        """Device that it computes on: ``cpu``, ``cuda:0``, ``mps``."""
        return str(self.compute.device)

    @property
    def threads(self) -> int:
        """Number of torch threads."""
        return self.compute.threads

    def weights(self) -> Weights:
        """Current weights; on a CPU the arrays share the memory of the tower: copy to keep them."""
        return model_weights(self.model)

    def load_weights(self, weights: Weights) -> None:
        """Replace all weights.

        Raises:
            WeightsError: They are those of another network.
        """
        load_weights(self.model, weight_tensors(weights))

    def copy(self) -> Self:
        """Copy the tower with its weights; the copy is not compiled and has no gradients."""
        model = copy.deepcopy(self.model).requires_grad_(False)
        return type(self)(model, self.compute, self.spec, self.stopwatch, ply_limit=self.ply_limit)

    def predict(self, positions: Positions) -> Prediction:
        """Predict the policy ``[B, M]`` and the value ``[B]`` of ``B`` positions."""
        packed, legal_actions, legal_counts = positions.as_trained(self.ply_limit)
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
                output = self.model(board, moves)
            log_probs = legal_log_probs(output.logits, torch.from_numpy(counts).to(device))
            values = self.model.values(output.value).float()
            return log_probs.cpu().numpy(), values.cpu().numpy()


def tower_shapes(config: AppConfig) -> dict[str, tuple[int, ...]]:
    """Return the shapes of all weights of a tower, by name, without allocating them."""
    with torch.device("meta"):
        model = build_model(config.model, feature_spec(config.env.input_features))
    return {name: tuple(tensor.shape) for name, tensor in model.state_dict().items()}


def planes_tensor(planes: npt.NDArray[np.float32], compute: Compute) -> Tensor:
    """Move planes ``[B, C, 9, 9]`` to the device, in the memory layout that is fastest there."""
    tensor = torch.from_numpy(planes).to(compute.device, non_blocking=True)
    return tensor.contiguous(memory_format=torch.channels_last) if compute.channels_last else tensor


def model_weights(model: ActorCritic) -> Weights:
    """Return the weights of a tower as named arrays; on a CPU they share its memory."""
    return {name: tensor.detach().cpu().numpy() for name, tensor in model.state_dict().items()}

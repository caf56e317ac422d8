"""`export_onnx`: a stored network as an ONNX file, which plays without torch."""

import io
import warnings
from pathlib import Path
from typing import Final

import numpy as np
import torch
from torch import Tensor, nn

from keisei import __version__
from keisei.network.loading import StoredNetwork
from keisei.network.model_factory import build_model
from keisei.network.onnx.onnx_model import (
    FORMAT_VERSION,
    GRAPH_DIGEST,
    LEGAL,
    LOGITS,
    PLANES,
    PREFIX,
    VALUE,
    OnnxError,
    OnnxFacts,
    graph_digest,
    import_onnx,
    onnx_model,
)
from keisei.network.towers.model import ActorCritic, legal_log_probs
from keisei.network.towers.weights import load_weights, weight_tensors
from keisei.shogi.packed import Positions
from keisei.shogi.vector import VectorShogi

OPSET: Final = 17
"""Version of the ONNX operators: the first with LayerNorm; onnxruntime has it since 1.13."""

TOLERANCE: Final = 1e-4
"""Largest allowed difference of probabilities and values from torch's."""

_COMPARED_GAMES: Final = 16
_COMPARED_PLIES: Final = 40


def export_onnx(network: StoredNetwork) -> bytes:
    """Return a network as the bytes of an ONNX file, after comparing its outputs with torch's.

    Raises:
        OnnxError: The model cannot be exported, or would predict something else.
    """
    onnx, _ = import_onnx()
    model = build_model(network.config.model, network.spec).eval()
    load_weights(model, weight_tensors(network.weights))
    traced = _TracedModel(model)
    proto = onnx.ModelProto.FromString(_graph(traced, network.spec.num_planes))
    facts = OnnxFacts(
        format_version=FORMAT_VERSION,
        keisei_version=__version__,
        run=network.run,
        timestep=network.timestep,
        weights_sha256=network.digest,
        features=network.spec.name,
        plane_names=network.spec.plane_names,
        temperature=network.config.evaluation.temperature,
        mate_plies=network.config.evaluation.mate_plies,
        ply_limit=network.config.evaluation.ply_limit,
        trained_ply_limit=network.config.env.ply_limit,
    )
    digest = {PREFIX + GRAPH_DIGEST: graph_digest(proto)}
    onnx.helper.set_model_props(proto, facts.as_metadata() | digest)
    proto.producer_name, proto.producer_version = "keisei", __version__
    data: bytes = proto.SerializeToString(deterministic=True)
    _require_same_predictions(data, traced, network)
    return data


class _TracedModel(nn.Module):
    """The computation of the file: logits and, for any value head, values."""

    def __init__(self, model: ActorCritic) -> None:
        super().__init__()
        self.model = model

    def forward(self, planes: Tensor, legal: Tensor) -> tuple[Tensor, Tensor]:
        """Compute logits ``[B, M]`` and values ``[B]``."""
        output = self.model.forward_eager(planes, legal)
        # The tanh of onnxruntime may exceed 1 in the last bit.
        return output.logits, self.model.values(output.value).float().clamp(-1.0, 1.0)


def _graph(traced: _TracedModel, num_planes: int) -> bytes:
    """Return the ONNX graph of a network, with any number of boards and moves.

    Uses torch's older exporter. It is deprecated, but does the same in every torch that Keisei
    allows and needs no other package; the newer one needs onnxscript, which follows torch's
    releases.
    """
    example = torch.zeros(2, num_planes, 9, 9), torch.zeros(2, 3, dtype=torch.int64)
    boards, moves = {0: "batch"}, {0: "batch", 1: "moves"}
    buffer = io.BytesIO()
    with warnings.catch_warnings():
        # Deprecated; and the tracer takes the number of unpacked parts for a variable one.
        warnings.simplefilter("ignore", DeprecationWarning)
        warnings.simplefilter("ignore", torch.jit.TracerWarning)  # type: ignore[attr-defined]
        try:
            torch.onnx.export(
                traced,
                example,
                buffer,  # type: ignore[arg-type]  # only the newer exporter wants a path
                input_names=[PLANES, LEGAL],
                output_names=[LOGITS, VALUE],
                dynamic_axes={PLANES: boards, LEGAL: moves, LOGITS: moves, VALUE: boards},
                opset_version=OPSET,
                dynamo=False,
            )
        except (RuntimeError, torch.onnx.OnnxExporterError) as error:
            raise OnnxError(
                f"{type(traced.model).__name__} cannot be written as ONNX: {error}"
            ) from error
    return buffer.getvalue()


def _require_same_predictions(data: bytes, traced: _TracedModel, network: StoredNetwork) -> None:
    """Compare both on some positions: tracing may lose parts of a plug-in's model."""
    env = VectorShogi(_COMPARED_GAMES, network.spec, opening_plies=_COMPARED_PLIES)
    width = int(env.legal_counts.max())
    legal, counts = env.legal_actions[:, :width], env.legal_counts
    positions = Positions(env.packed, legal, counts)
    exported = onnx_model(data, Path(network.name), threads=1).predict(positions)
    known = positions.as_trained(network.config.env.ply_limit)  # the file does this itself
    with torch.inference_mode():
        logits, values = traced(
            torch.from_numpy(network.spec.encode(known.packed)),
            torch.from_numpy(legal.astype(np.int64)),
        )
        log_probs = legal_log_probs(logits, torch.from_numpy(counts)).numpy()
    gap = max(
        float(np.abs(np.exp(exported.log_probs) - np.exp(log_probs)).max()),
        float(np.abs(exported.values - values.numpy()).max()),
    )
    if not gap <= TOLERANCE:  # also if it is NaN
        raise OnnxError(
            f"{network.name}: as ONNX its predictions would differ by up to {gap:.2g}; it is not "
            "written"
        )

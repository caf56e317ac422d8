"""The network behind the engine, from whatever file it is in. torch is imported for runs only."""

import importlib
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from keisei.errors import KeiseiError
from keisei.search.judge import Judge

ONNX_SUFFIX: Final = ".onnx"


@dataclass(frozen=True)
class LoadedJudge:
    """A network that is ready to be asked."""

    judge: Judge
    name: str
    """For people."""

    mate_plies: int = 1
    """Mates that it is shown when it plays by its policy alone."""

    ply_limit: int = 512
    """The length of game that it was measured with."""


def load_judge(path: Path, *, threads: int = 1) -> LoadedJudge:
    """The network of a run, a checkpoint, or an ONNX file.

    Args:
        path: of an ``.onnx`` file; or as for `keisei.checkpoints.network.load_network`.
        threads: that it computes with, no more.

    Raises:
        KeiseiError: There is none, or what it needs is not installed; the message says what.
    """
    if path.suffix == ONNX_SUFFIX:
        return _load_onnx(path)
    try:
        import torch  # noqa: F401  # only to say clearly what is missing
    except ImportError:
        raise KeiseiError(
            f"{path}: runs and checkpoints need torch, which is not installed here; "
            f"without it, play with a network that was exported as {ONNX_SUFFIX}"
        ) from None
    from keisei.checkpoints.network import load_network
    from keisei.config_schema import DeviceConfig
    from keisei.models.compute import choose_compute
    from keisei.ppo.inference import Inference

    network = load_network(path)
    device = DeviceConfig(device="cpu", torch_threads=threads, deterministic=False)
    compute = choose_compute(device)
    usual = network.config.evaluation
    return LoadedJudge(
        Inference(compute.prepare(network.model), compute, network.spec),
        network.name,
        usual.mate_plies,
        usual.ply_limit,
    )


def _load_onnx(path: Path) -> LoadedJudge:
    try:
        module = importlib.import_module("keisei.models.onnx_judge")
    except ModuleNotFoundError as error:
        raise KeiseiError(
            f"{path}: {ONNX_SUFFIX} files need what is missing here: {error}"
        ) from None
    model = module.load_onnx(path)
    return LoadedJudge(model.judge, model.name)

"""Networks by where they lie, ready to be asked: those of runs and checkpoints, and ONNX files.

Torch is imported only for those that need it.
"""

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from pydantic import ValidationError

from keisei.config_schema import DeviceConfig
from keisei.errors import KeiseiError
from keisei.network.onnx.onnx_model import SUFFIX, load_onnx
from keisei.network.predictor import Predictor

if TYPE_CHECKING:
    from keisei.network.stored import StoredNetwork
    from keisei.network.towers.torch_predictor import TorchPredictor


class LoadedNetwork(NamedTuple):
    """A network, and how its run measures it."""

    predictor: Predictor
    name: str
    """What people call it."""

    identity: str
    """What it is, exactly."""

    temperature: float
    """Of its moves, when it plays by its policy; 0: always the likeliest."""

    mate_plies: int
    """Mates of up to so many plies are played whatever the policy says; 0: none."""

    ply_limit: int
    """The ply at which its games are drawn. Networks see how far that is."""


def load_network(path: Path, *, device: str = "cpu", threads: int = 0) -> LoadedNetwork:
    """The network of a run, a checkpoint or an ONNX file.

    Args:
        path: of any of them, or the name of a run in ``runs``.
        device: where it computes.
        threads: that compute on the CPU; 0: one for each core.

    Raises:
        KeiseiError: There is none, or it is damaged; the message says why.
    """
    if _is_onnx(path):
        model = load_onnx(path, threads, device=device)
        return LoadedNetwork(
            model,
            model.name,
            model.identity,
            model.temperature,
            model.mate_plies,
            model.ply_limit,
        )
    chosen = device_config(device, threads)
    return loaded_network(load_stored(path), chosen)


def read_network(path: Path) -> Callable[[int], LoadedNetwork]:
    """The network of `load_network`, read but not set up: that is done for a number of threads.

    Reading is the longer part by far, because of the import of torch.

    Raises:
        KeiseiError: There is none, or it is damaged; the message says why.
    """
    if _is_onnx(path):
        return lambda threads: load_network(path, threads=threads)
    stored = load_stored(path)
    return lambda threads: loaded_network(stored, device_config("cpu", threads))


def _is_onnx(path: Path) -> bool:
    return path.suffix.lower() == SUFFIX and not path.is_dir()


def load_stored(path: Path) -> "StoredNetwork":
    """The network of a run or a checkpoint.

    Raises:
        KeiseiError: There is none, it is damaged, or torch is not installed.
    """
    try:
        from keisei.network.stored import load_stored_network
    except ModuleNotFoundError as error:
        if error.name != "torch":
            raise
        raise KeiseiError(
            f"{path}: runs and checkpoints need torch, which is not installed; an ONNX file needs "
            "none: keisei export writes it, on a machine that has torch"
        ) from error
    return load_stored_network(path)


def loaded_network(network: "StoredNetwork", device: DeviceConfig) -> LoadedNetwork:
    """A stored network that is loaded already."""
    usual = network.config.evaluation
    return LoadedNetwork(
        predictor_of(network, device),
        network.name,
        network.identity,
        usual.temperature,
        usual.mate_plies,
        usual.ply_limit,
    )


def predictor_of(network: "StoredNetwork", device: DeviceConfig) -> "TorchPredictor":
    """A stored network, ready to be asked."""
    from keisei.network.towers.device import choose_compute
    from keisei.network.towers.torch_predictor import TorchPredictor

    compute = choose_compute(device)
    return TorchPredictor(compute.prepare(network.model), compute, network.spec)


def device_config(device: str, threads: int) -> DeviceConfig:
    """Where networks compute, and with how many threads of torch; 0: one for each core."""
    try:
        # Whoever is only asked need not be repeatable bit by bit on a GPU, and starts sooner.
        return DeviceConfig(device=device, torch_threads=threads, deterministic=False)
    except ValidationError as error:
        raise KeiseiError(f"device {device}: {error.errors()[0]['msg']}") from None

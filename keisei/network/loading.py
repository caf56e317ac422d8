"""`load_network`: networks of runs, checkpoints, network files and ONNX files.

Only the code that a network's type needs is imported, and nothing in a file can run code.
"""

import logging
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Final, NamedTuple, TypeVar

from pydantic import ValidationError

from keisei import run_files
from keisei.checkpoints.manifest import CONFIG, MANIFEST, read_manifest
from keisei.checkpoints.rotation import list_checkpoints
from keisei.checkpoints.store import (
    load_config_json,
    load_model_weights,
    playing_weights,
    weight_shapes,
)
from keisei.config_schema import AppConfig, DeviceConfig
from keisei.constants import BUILTIN
from keisei.errors import (
    CheckpointError,
    KeiseiError,
    ModelError,
    TorchMissingError,
    WeightsError,
)
from keisei.network.model_factory import (
    ONNX_HINT,
    make_network,
    network_type,
    require_fitting,
    resolve,
)
from keisei.network.onnx.onnx_model import ONNX_SUFFIX, load_onnx
from keisei.network.predictor import Network, Predictor, Weights
from keisei.shogi.features import FeatureSpec, feature_spec
from keisei.system import require_possible

logger = logging.getLogger(__name__)

Result = TypeVar("Result")

FILE_SUFFIX: Final = ".keisei"
"""Suffix of network files."""


class LoadedNetwork(NamedTuple):
    """A network that is ready to predict, with the settings it plays with in evaluations."""

    predictor: Predictor
    name: str
    """Run and timestep, for people: ``quickstart@163840``."""

    identity: str
    """Name and digest of the weights; unique."""

    temperature: float
    """Temperature of the policy when it plays without search; 0: always the most likely move."""

    mate_plies: int
    """Mates of up to this many plies are played by rule, whatever the policy says; 0: none."""

    ply_limit: int
    """Ply at which its games are drawn; the distance to it is one of the input planes."""


@dataclass(frozen=True, eq=False)
class StoredNetwork:
    """Weights of a network as stored in a checkpoint or a file, and the settings of their run."""

    path: Path
    """Directory of the checkpoint, or the network file."""

    weights: Weights = field(repr=False)
    config: AppConfig = field(repr=False)
    timestep: int
    """Timestep of the run: plies played until then."""

    digest: str
    """SHA-256 of the file with the weights."""

    run: str
    """Name of the run: ``quickstart``."""

    suffix: str = ""
    """Last part of the name of a network that comes from a file."""

    builtin: bool = False
    """Whether it is the network in the package."""

    @property
    def spec(self) -> FeatureSpec:
        """Input planes."""
        return feature_spec(self.config.env.input_features)

    @property
    def name(self) -> str:
        """Run and timestep, for people: ``quickstart@163840``."""
        if self.builtin:
            return BUILTIN
        return f"{self.run}@{self.timestep}{self.suffix}"

    @property
    def identity(self) -> str:
        """Name and digest of the weights; unique."""
        return f"{self.name}#{self.digest[:12]}"

    def network(self, device: DeviceConfig) -> Network:
        """Build the network on a device.

        Raises:
            CheckpointError: The weights do not fit the settings.
            KeiseiError: The device does not exist, or torch is not installed.
        """
        try:
            require_fitting(self.config, {name: w.shape for name, w in self.weights.items()})
            network = make_network(self.config, device)
            network.load_weights(self.weights)
        except (ModelError, WeightsError) as error:
            raise CheckpointError(f"{self.path}: {error}") from error
        return network

    def loaded(self, device: DeviceConfig) -> LoadedNetwork:
        """Build the network on a device, with its name and evaluation settings."""
        usual = self.config.evaluation
        return LoadedNetwork(
            self.network(device),
            self.name,
            self.identity,
            usual.temperature,
            usual.mate_plies,
            usual.ply_limit,
        )


def load_network(path: Path, *, device: str = "cpu", threads: int = 0) -> LoadedNetwork:
    """Load the network of a run, a checkpoint, a network file or an ONNX file.

    Args:
        path: of any of them, the name of a run in ``runs``, or ``builtin``.
        device: ``cpu``, ``cuda``, ``cuda:1``, ``mps`` or ``auto``.
        threads: that compute on the CPU; 0: one for each core.

    Raises:
        KeiseiError: There is no network, or it is damaged; the message says why.
    """
    require_possible(path)
    if is_onnx(path):
        model = load_onnx(path, threads, device=device)
        return LoadedNetwork(
            model,
            model.name,
            model.identity,
            model.facts.temperature,
            model.facts.mate_plies,
            model.facts.ply_limit,
        )
    chosen = device_config(device, threads)
    if is_network_file(path) or is_builtin(path):
        return read_network(path).loaded(chosen)
    return _newest_good(path, lambda checkpoint: _read(checkpoint).loaded(chosen))


def open_network(path: Path) -> Callable[[int], LoadedNetwork]:
    """Read the network of `load_network` now; return a function that builds it for some threads.

    Reading takes most of the time, because of the imports.

    Raises:
        KeiseiError: There is no network, or it is damaged; the message says why.
    """
    require_possible(path)
    if is_onnx(path):
        return lambda threads: load_network(path, threads=threads)
    stored = read_network(path)
    resolve(network_type(stored.config.model.type).network, str(path), instead=ONNX_HINT)
    return lambda threads: stored.loaded(device_config("cpu", threads))


def read_network(path: Path) -> StoredNetwork:
    """Read the weights of a network file, of a checkpoint, or of a run's newest good checkpoint.

    Args:
        path: of a file, of a run, of one of its checkpoints, the name of a run in ``runs``, or
            ``builtin``.

    Raises:
        KeiseiError: There is no network, or it is damaged; the message says why.
    """
    require_possible(path)
    if is_builtin(path):
        with resources.as_file(builtin_file()) as file:
            return replace(read_network(file), builtin=True)
    if is_network_file(path):
        from keisei.network.network_file import read_network_file

        facts, config, weights, digest = read_network_file(path)
        return StoredNetwork(path, weights, config, facts.timestep, digest, facts.run, FILE_SUFFIX)
    return _newest_good(path, _read)


def device_config(device: str, threads: int) -> DeviceConfig:
    """Device settings of a network that is not trained; 0 threads: one for each core."""
    try:
        # Without training, results need not be equal bit by bit on a GPU, and it starts sooner.
        return DeviceConfig(device=device, threads=threads, deterministic=False)
    except ValidationError as error:
        raise KeiseiError(f"device {device}: {error.errors()[0]['msg']}") from None


def is_onnx(path: Path) -> bool:
    """Return whether a path names an ONNX file."""
    return path.suffix.lower() == ONNX_SUFFIX and not path.is_dir()


def is_builtin(path: Path) -> bool:
    """Return whether a path is the name of the network in the package."""
    return str(path) == BUILTIN


def builtin_file() -> Traversable:
    """Return the file of the network in the package."""
    return resources.files("keisei.network").joinpath(f"{BUILTIN}{FILE_SUFFIX}")


def is_network_file(path: Path) -> bool:
    """Return whether a path names a network file: see `keisei.network.network_file`."""
    return path.suffix.lower() == FILE_SUFFIX and not path.is_dir()


def _newest_good(path: Path, load: Callable[[Path], Result]) -> Result:
    """Return the result of `load` for the newest checkpoint that it accepts."""
    reasons = []
    for checkpoint in reversed(_candidates(path)):
        try:
            return load(checkpoint)
        except CheckpointError as error:
            reasons.append(str(error))
            logger.warning("skipping a bad checkpoint: %s", error)
    raise CheckpointError(f"no network can be loaded from {path}: {'; '.join(reasons)}")


def _candidates(path: Path) -> list[Path]:
    """List the checkpoints that `path` refers to, the newest last."""
    for place in run_files.run_places(path):
        if (place / MANIFEST).is_file():
            return [place]
        for directory in (place / run_files.CHECKPOINTS, place):
            if found := list_checkpoints(directory) if directory.is_dir() else []:
                return found
        if (place / run_files.CONFIG).is_file():
            raise CheckpointError(f"the run {place} has no checkpoint yet")
    raise CheckpointError(f"there is no run or checkpoint {path}{run_files.similar_run(path)}")


def _read(path: Path) -> StoredNetwork:
    try:
        config = AppConfig.model_validate_json(load_config_json(path))
    except ValidationError as error:
        problems = "; ".join(
            f"{'.'.join(map(str, problem['loc']))}: {problem['msg']}" for problem in error.errors()
        )
        raise CheckpointError(f"{path / CONFIG}: settings unknown here: {problems}") from error
    try:
        require_fitting(config, weight_shapes(path))
    except (ModelError, WeightsError) as error:
        raise CheckpointError(f"{path}: {error}") from error
    except TorchMissingError:
        pass  # the shapes of a tower are not known without it, and it can't be built either
    weights, _ = load_model_weights(path)
    manifest = read_manifest(path)
    digest = manifest.files[playing_weights(manifest)].sha256
    run = path.resolve().parent.parent.name
    return StoredNetwork(path, weights, config, manifest.timestep, digest, run)

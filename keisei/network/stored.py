"""Networks out of checkpoints: to play with, to measure, to start another run from.

Only the weights and the configuration are read, and nothing in them can run code.
"""

import logging
from dataclasses import dataclass, field
from pathlib import Path

from pydantic import ValidationError

from keisei import run_files
from keisei.checkpoints.manifest import CONFIG, MANIFEST, read_manifest
from keisei.checkpoints.rotation import list_checkpoints
from keisei.checkpoints.store import load_model_weights, playing_weights
from keisei.config_schema import AppConfig
from keisei.errors import CheckpointError, KeiseiError
from keisei.network.model_factory import build_model
from keisei.network.towers.model import ActorCritic
from keisei.network.towers.weights import load_weights
from keisei.shogi.features import FeatureSpec, feature_spec

logger = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False)
class StoredNetwork:
    """A network as it was saved."""

    path: Path
    """The checkpoint that it comes from."""

    model: ActorCritic = field(repr=False)
    spec: FeatureSpec
    """The planes that it reads."""

    config: AppConfig = field(repr=False)
    timestep: int
    """Plies that it had learned from."""

    digest: str
    """SHA-256 of the file with its weights."""

    @property
    def run(self) -> str:
        """Name of the run that it comes from: ``quickstart``."""
        return self.path.resolve().parent.parent.name

    @property
    def name(self) -> str:
        """Run and step, for people: ``quickstart@163840``."""
        return f"{self.run}@{self.timestep}"

    @property
    def identity(self) -> str:
        """Its name, and a sum of its weights: no other network has the same."""
        return f"{self.name}#{self.digest[:12]}"


def load_stored_network(path: Path) -> StoredNetwork:
    """The network of a checkpoint, or of the newest good checkpoint of a run.

    Args:
        path: of a run, of one of its checkpoints, or the name of a run in ``runs``.

    Raises:
        CheckpointError: There is none, or it is damaged; the message says why.
    """
    reasons = []
    for checkpoint in reversed(_candidates(path)):
        try:
            return _load(checkpoint)
        except CheckpointError as error:
            reasons.append(str(error))
            logger.warning("skipping a bad checkpoint: %s", error)
    raise CheckpointError(f"no network can be loaded from {path}: {'; '.join(reasons)}")


def _candidates(path: Path) -> list[Path]:
    """The checkpoints that `path` may mean, the newest last."""
    for place in run_files.run_places(path):
        if (place / MANIFEST).is_file():
            return [place]
        for directory in (place / run_files.CHECKPOINTS, place):
            if found := list_checkpoints(directory) if directory.is_dir() else []:
                return found
        if (place / run_files.CONFIG).is_file():
            raise CheckpointError(f"the run {place} has no checkpoint yet")
    raise CheckpointError(f"there is no run or checkpoint {path}")


def _load(path: Path) -> StoredNetwork:
    weights, config_json = load_model_weights(path)
    try:
        config = AppConfig.model_validate_json(config_json)
    except ValidationError as error:
        problems = "; ".join(
            f"{'.'.join(map(str, problem['loc']))}: {problem['msg']}" for problem in error.errors()
        )
        raise CheckpointError(f"{path / CONFIG}: settings unknown here: {problems}") from error
    spec = feature_spec(config.env.input_features)
    try:
        model = build_model(config.model, spec.num_planes)
        load_weights(model, weights)
    except KeiseiError as error:
        raise CheckpointError(f"{path}: {error}") from error
    manifest = read_manifest(path)
    digest = manifest.files[playing_weights(manifest)].sha256
    return StoredNetwork(path, model.eval(), spec, config, manifest.timestep, digest)

"""Small sparse networks as if they had been saved."""

from pathlib import Path

import numpy as np

from keisei.config_schema import AppConfig
from keisei.network.loading import StoredNetwork
from keisei.network.sparse.sparse_network import SparseNetwork
from keisei.shogi.features import feature_spec


def stored_sparse(**settings: object) -> StoredNetwork:
    """A network with opinions: its weights are far from where they start."""
    small = {"type": "sparse", "accumulators": 16, "hidden": 8, "context": 16}
    config = AppConfig.model_validate(
        {
            "model": small | settings,
            "evaluation": {"temperature": 0.5, "mate_plies": 3, "ply_limit": 300},
        }
    )
    network = SparseNetwork.new(config.model, feature_spec("core46"), threads=1, seed=0)
    random = np.random.default_rng(1)
    network.load_weights(
        {
            name: array + np.float32(0.2) * random.standard_normal(array.shape, np.float32)
            for name, array in network.weights().items()
        }
    )
    path = Path("runs", "mine", "checkpoints", "step-000000000192")
    return StoredNetwork(path, network.weights(), config, 192, "ab" * 32, "mine")

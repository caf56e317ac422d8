"""Small networks as if they had been saved, and files made of them."""

from pathlib import Path

import torch

from keisei.config_schema import AppConfig
from keisei.network.loading import StoredNetwork
from keisei.network.model_factory import build_model
from keisei.network.towers.torch_predictor import model_weights
from keisei.shogi.features import feature_spec
from tests.network.towers.samples import SMALL


def stored_network(features: str = "core46", **settings: object) -> StoredNetwork:
    """A network with opinions: its weights are far from where they start, its values are not 1."""
    torch.manual_seed(2)
    config = AppConfig.model_validate(
        {
            "model": SMALL | settings,
            "env": {"input_features": features},
            "evaluation": {"temperature": 0.5, "mate_plies": 3, "ply_limit": 300},
        }
    )
    model = build_model(config.model, feature_spec(features))
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.add_(torch.randn_like(parameter), alpha=0.13)
    path = Path("runs", "mine", "checkpoints", "step-000000000192")
    return StoredNetwork(path, model_weights(model), config, 192, "ab" * 32, "mine")

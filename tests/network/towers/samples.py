"""Small networks and real positions to try them on."""

from typing import NamedTuple

import torch
from torch import Tensor

from keisei.config_schema import ModelConfig
from keisei.network.model_factory import build_model
from keisei.network.towers.model import ActorCritic
from keisei.shogi.features import feature_spec
from keisei.shogi.vector import VectorShogi

MODEL_TYPES = ("resnet", "transformer")
POLICY_HEADS = ("from_to", "flat")
VALUE_HEADS = ("tanh", "wdl")

SMALL = {
    "type": "resnet",
    "tower_depth": 2,
    "tower_width": 16,
    "policy_width": 8,
    "value_width": 8,
}


class Positions(NamedTuple):
    planes: Tensor
    legal: Tensor
    counts: Tensor

    @property
    def is_filling(self) -> Tensor:
        """``bool[B, M]``: where a row of `legal` holds no legal action."""
        return torch.arange(self.legal.shape[1]) >= self.counts[:, None]


def positions(number: int, features: str = "core46", *, plies: int = 40) -> Positions:
    """Positions of random games, with their legal actions."""
    env = VectorShogi(number, features, seed=1, opening_plies=plies)
    longest = int(env.legal_counts.max())
    return Positions(
        torch.from_numpy(env.planes().copy()),
        torch.from_numpy(env.legal_actions[:, :longest].astype("int64")),
        torch.from_numpy(env.legal_counts.astype("int64")),
    )


def small_model(features: str = "core46", **settings: object) -> ActorCritic:
    config = ModelConfig.model_validate(SMALL | settings)
    return build_model(config, feature_spec(features))

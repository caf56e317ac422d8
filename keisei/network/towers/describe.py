"""`describe_model`: the parts of a model with their parameters and multiplications."""

from collections.abc import Iterator
from typing import Final

import torch
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from keisei.config_schema import AppConfig
from keisei.constants import BOARD_SIZE
from keisei.network.description import (
    TYPICAL_LEGAL_MOVES,
    Description,
    InputGroup,
    InputTable,
    Part,
)
from keisei.network.model_factory import build_model
from keisei.network.towers.model import ActorCritic
from keisei.shogi.features import FeatureSpec, feature_spec

FLOPS_PER_MAC: Final = 2


def describe_tower(config: AppConfig) -> Description:
    """Describe the tower of a configuration."""
    features = feature_spec(config.env.input_features)
    return describe_model(build_model(config.model, features), features)


def describe_model(model: ActorCritic, features: FeatureSpec) -> Description:
    """Describe a model that reads these features."""
    macs = _macs(model)
    parts = tuple(
        Part(name, sum(p.numel() for p in parameters), macs.get(name, 0))
        for name, parameters in _parameters_by_part(model)
    )
    planes = InputTable("input", "planes", tuple(_inputs(features)))
    return Description(type(model).__name__, (planes,), parts)


def _inputs(features: FeatureSpec) -> Iterator[InputGroup]:
    first = 0
    for feature in features.features:
        yield InputGroup(feature.name, first, len(feature.planes))
        first += len(feature.planes)


def _parameters_by_part(model: ActorCritic) -> Iterator[tuple[str, list[nn.Parameter]]]:
    """Parameters by part: each layer and block of the trunk, and each head as a whole."""
    for name, parameter in model.trunk.named_parameters(recurse=False):
        yield f"trunk.{name}", [parameter]
    for name, child in model.trunk.named_children():
        if isinstance(child, nn.Sequential | nn.ModuleList):
            for number, block in child.named_children():
                yield f"trunk.{name}.{number}", list(block.parameters())
        elif parameters := list(child.parameters()):
            yield f"trunk.{name}", parameters
    yield "policy", list(model.policy.parameters())
    yield "value", list(model.value.parameters())


def _macs(model: ActorCritic) -> dict[str, int]:
    device = next(model.parameters()).device
    planes = torch.zeros(1, model.in_planes, BOARD_SIZE, BOARD_SIZE, device=device)
    legal = torch.zeros(1, TYPICAL_LEGAL_MOVES, dtype=torch.int64, device=device)
    counter = FlopCounterMode(display=False)
    # Fused attention is not counted on every device, its plain form is.
    with torch.inference_mode(), sdpa_kernel(SDPBackend.MATH), counter:
        model(planes, legal)
    root = f"{type(model).__name__}."
    return {
        name.removeprefix(root): sum(counts.values()) // FLOPS_PER_MAC
        for name, counts in counter.get_flop_counts().items()
        if name.startswith(root)
    }

"""`describe_model`: the parts of a model with their parameters and multiplications."""

from collections.abc import Iterator
from dataclasses import asdict, dataclass
from typing import Any, Final

import torch
from torch import nn
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from keisei.constants import BOARD_SIZE
from keisei.network.towers.model import ActorCritic
from keisei.shogi.features import FeatureSpec

COUNTED_LEGAL_MOVES: Final = 80
"""Legal moves of the position that multiplications are counted for: a typical number."""

FLOPS_PER_MAC: Final = 2


@dataclass(frozen=True)
class InputGroup:
    """Input planes of one feature."""

    feature: str
    first: int
    planes: int


@dataclass(frozen=True)
class Part:
    """A layer, a block or a head."""

    name: str
    parameters: int
    macs: int
    """Multiply-accumulate operations for one position, in convolutions and matrix products."""


@dataclass(frozen=True)
class Description:
    """Input planes and parts of a model."""

    model: str
    """Name of its class."""

    inputs: tuple[InputGroup, ...]
    parts: tuple[Part, ...]

    @property
    def in_planes(self) -> int:
        """Number of input planes."""
        return sum(group.planes for group in self.inputs)

    @property
    def parameters(self) -> int:
        """Number of parameters."""
        return sum(part.parameters for part in self.parts)

    @property
    def macs(self) -> int:
        """Multiply-accumulate operations for one position."""
        return sum(part.macs for part in self.parts)

    def as_dict(self) -> dict[str, Any]:
        """Description as plain values, for JSON."""
        totals = {
            "in_planes": self.in_planes,
            "parameters": self.parameters,
            "macs_per_position": self.macs,
        }
        return asdict(self) | totals


def describe_model(model: ActorCritic, features: FeatureSpec) -> Description:
    """Describe a model that reads these features."""
    macs = _macs(model)
    parts = tuple(
        Part(name, sum(p.numel() for p in parameters), macs.get(name, 0))
        for name, parameters in _parameters_by_part(model)
    )
    return Description(type(model).__name__, tuple(_inputs(features)), parts)


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
    legal = torch.zeros(1, COUNTED_LEGAL_MOVES, dtype=torch.int64, device=device)
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

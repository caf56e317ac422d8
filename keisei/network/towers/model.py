"""`ActorCritic`: a trunk, a policy head and a value head, whatever the type of the trunk."""

import math
from collections.abc import Callable, Mapping
from typing import Any, ClassVar, Final, NamedTuple

import torch
from torch import Tensor, nn

from keisei.errors import ModelError
from keisei.network.towers.heads import (
    POLICY_HEADS,
    VALUE_HEADS,
    PolicyHead,
    ValueHead,
)

ACTIVATIONS: Final[Mapping[str, Callable[[], nn.Module]]] = {
    "relu": nn.ReLU,
    "silu": nn.SiLU,
    "gelu": nn.GELU,
    "mish": nn.Mish,
}

BEFORE_ACTIVATION: Final = math.sqrt(2)
"""Gain of layers before an activation, which lets half of the signal through (He et al., 2015)."""

SMALL: Final = 0.1
"""Gain of layers that should say little at first.

Not 0: a layer that starts at zero sends no gradient to the layers before it."""


class Trunk(nn.Module):
    """The body of a network: from planes ``[B, C, 9, 9]`` to features of squares ``[B, 81, W]``.

    A model type is a trunk; the heads are the same for all. Each is made from the number of planes,
    the depth and width of the tower, the ratio of squeeze-and-excitation, and the activation.
    """

    input_weight: ClassVar[str]
    """Name of the parameter that reads the planes; its dimension 1 counts them."""

    width: int
    """W: how many features a square has."""


class SqueezeExcitation(nn.Module):
    """Scales each channel by what the whole board looks like (Hu et al., 2018)."""

    def __init__(self, width: int, ratio: float, activation: str) -> None:
        super().__init__()
        hidden = max(1, round(width * ratio))
        self.squeeze = nn.Linear(width, hidden)
        self.activation = make_activation(activation)
        self.excite = nn.Linear(hidden, width)
        start(self.squeeze, BEFORE_ACTIVATION)
        start(self.excite, 1.0)

    def forward(self, mean: Tensor) -> Tensor:
        """The factors ``[B, W]`` of channels whose mean over the board is ``[B, W]``."""
        hidden = self.activation(self.squeeze(mean))
        return torch.sigmoid(self.excite(hidden))


def make_activation(name: str) -> nn.Module:
    """The activation function called `name`."""
    return ACTIVATIONS[require_choice("activation", name, ACTIVATIONS)]()


def start(layer: nn.Conv2d | nn.Linear, gain: float) -> None:
    """Draw a layer's weights so that it multiplies the size of its input by `gain`; no biases."""
    inputs = layer.weight[0].numel()
    nn.init.normal_(layer.weight, std=gain / math.sqrt(inputs))
    if layer.bias is not None:
        nn.init.zeros_(layer.bias)


def lay_out(module: nn.Module, layout: torch.memory_format) -> None:
    """Let convolutions keep their weights, and so what they compute, in this memory layout."""
    module.to(memory_format=layout)  # type: ignore[call-overload]


def require_positive(**sizes: int) -> None:
    """Refuse sizes of less than 1."""
    for name, size in sizes.items():
        if size < 1:
            raise ModelError(f"{name} is {size}, it must be at least 1")


def require_fraction(**fractions: float) -> None:
    """Refuse numbers outside 0 to 1."""
    for name, fraction in fractions.items():
        if not 0.0 <= fraction <= 1.0:
            raise ModelError(f"{name} is {fraction}, it must be from 0 to 1")


def require_choice(setting: str, name: str, choices: Mapping[str, object]) -> str:
    """Refuse a name that is none of the `choices`; return it if it is."""
    if name not in choices:
        raise ModelError(f"{setting} {name!r} does not exist; there are {', '.join(choices)}")
    return name


class Output(NamedTuple):
    """What the network says of ``B`` positions, in float32."""

    logits: Tensor
    """``[B, M]``: of the legal actions that were asked for."""

    value: Tensor
    """What the value head says: `ActorCritic.values` and `ActorCritic.value_loss` read it."""


class ActorCritic(nn.Module):
    """Judges positions: logits of their legal actions, and a value for the mover.

    A model type is a subclass that names its `trunk_type`; all take the same settings.
    """

    trunk_type: ClassVar[type[Trunk]]
    """What makes the trunk of this model type."""

    trunk: Trunk
    policy: PolicyHead
    value: ValueHead

    in_planes: int
    """C: how many planes it reads."""

    compiled: Callable[[Tensor, Tensor], Output] | None = None
    """What `forward` calls instead of `forward_eager`, once `compile_forward` has set it."""

    def __init__(
        self,
        in_planes: int,
        *,
        tower_depth: int,
        tower_width: int,
        se_ratio: float,
        activation: str,
        policy_head: str,
        policy_width: int,
        value_head: str,
        value_width: int,
    ) -> None:
        super().__init__()
        require_positive(
            in_planes=in_planes,
            tower_depth=tower_depth,
            tower_width=tower_width,
            policy_width=policy_width,
            value_width=value_width,
        )
        require_fraction(se_ratio=se_ratio)
        policy_type = POLICY_HEADS[require_choice("policy head", policy_head, POLICY_HEADS)]
        value_type = VALUE_HEADS[require_choice("value head", value_head, VALUE_HEADS)]
        self.in_planes = in_planes
        self.trunk = self.trunk_type(in_planes, tower_depth, tower_width, se_ratio, activation)
        self.policy = policy_type(self.trunk.width, policy_width, activation)
        self.value = value_type(self.trunk.width, value_width, activation)

    def forward(self, planes: Tensor, legal: Tensor) -> Output:
        """Logits of the legal moves and the value of ``B`` positions.

        Args:
            planes: ``[B, C, 9, 9]``, floating point.
            legal: ``[B, M]`` int64, legal actions; rows are filled up with any action, and what
                is said of that filling is to be ignored.
        """
        forward = self.forward_eager if self.compiled is None else self.compiled
        return forward(planes, legal)

    def forward_eager(self, planes: Tensor, legal: Tensor) -> Output:
        """What `forward` does when it is not compiled."""
        squares = self.trunk(planes)
        return Output(self.policy(squares, legal).float(), self.value(squares))

    def all_logits(self, planes: Tensor) -> Tensor:
        """Logits ``[B, 13527]`` of all actions, legal or not: for tests and for export."""
        return self.policy.all_logits(self.trunk(planes)).float()

    def values(self, output_value: Tensor) -> Tensor:
        """Values ``[B]`` in [-1, 1], the mover's, from `Output.value`."""
        return self.value.values(output_value)

    def value_loss(self, output_value: Tensor, returns: Tensor) -> Tensor:
        """Losses ``[B]`` of `Output.value` given the returns ``[B]``, always in float32."""
        return self.value.loss(output_value, returns)

    @property
    def input_weight(self) -> str:
        """Name of the parameter that reads the planes; its dimension 1 counts them."""
        return f"trunk.{self.trunk.input_weight}"

    def __getstate__(self) -> dict[str, Any]:
        # Compiled code belongs to this object: copies and pickles are plain again.
        state: dict[str, Any] = super().__getstate__()  # type: ignore[no-untyped-call]
        state.pop("compiled", None)
        return state

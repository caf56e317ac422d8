"""Parts that the trunks share: activations, squeeze-and-excitation, initialisation, checks."""

import math
from collections.abc import Callable, Mapping
from typing import ClassVar, Final

import torch
from torch import Tensor, nn

from keisei.errors import ModelError

ACTIVATIONS: Final[Mapping[str, Callable[[], nn.Module]]] = {
    "relu": nn.ReLU,
    "silu": nn.SiLU,
    "gelu": nn.GELU,
    "mish": nn.Mish,
}

BEFORE_ACTIVATION: Final = math.sqrt(2)
"""Gain of layers before an activation, which lets half of the signal through (He et al., 2015)."""

SMALL: Final = 0.1
"""Gain of layers whose output should be small at first.

Not 0: a layer that starts at zero passes no gradient on to the layers before it."""


class Trunk(nn.Module):
    """Body of a model: maps planes ``[B, C, 9, 9]`` to features of squares ``[B, 81, W]``.

    Model types differ in their trunks; the heads are the same for all. The arguments are the number
    of planes, depth and width of the tower, the squeeze-and-excitation ratio, and the activation.
    """

    input_weight: ClassVar[str]
    """Name of the parameter that reads the planes; they are its dimension 1."""

    width: int
    """W: number of features of a square."""


class SqueezeExcitation(nn.Module):
    """Scales each channel by a factor that depends on the whole board (Hu et al., 2018)."""

    def __init__(self, width: int, ratio: float, activation: str) -> None:
        super().__init__()
        hidden = max(1, round(width * ratio))
        self.squeeze = nn.Linear(width, hidden)
        self.activation = make_activation(activation)
        self.excite = nn.Linear(hidden, width)
        start(self.squeeze, BEFORE_ACTIVATION)
        start(self.excite, 1.0)

    def forward(self, mean: Tensor) -> Tensor:
        """Compute the factors ``[B, W]`` of channels from their means over the board ``[B, W]``."""
        hidden = self.activation(self.squeeze(mean))
        return torch.sigmoid(self.excite(hidden))


def make_activation(name: str) -> nn.Module:
    """Make the activation function called `name`."""
    return ACTIVATIONS[require_choice("activation", name, ACTIVATIONS)]()


def start(layer: nn.Conv2d | nn.Linear, gain: float) -> None:
    """Draw a layer's weights so that it scales its input by `gain`; set its biases to zero."""
    inputs = layer.weight[0].numel()
    nn.init.normal_(layer.weight, std=gain / math.sqrt(inputs))
    if layer.bias is not None:
        nn.init.zeros_(layer.bias)


def lay_out(module: nn.Module, layout: torch.memory_format) -> None:
    """Convert the weights of convolutions, and so their outputs, to a memory layout."""
    module.to(memory_format=layout)  # type: ignore[call-overload]


def require_positive(**sizes: int) -> None:
    """Raise `ModelError` for a size below 1."""
    for name, size in sizes.items():
        if size < 1:
            raise ModelError(f"{name} is {size}, it must be at least 1")


def require_fraction(**fractions: float) -> None:
    """Raise `ModelError` for a number outside of 0 to 1."""
    for name, fraction in fractions.items():
        if not 0.0 <= fraction <= 1.0:
            raise ModelError(f"{name} is {fraction}, it must be from 0 to 1")


def require_choice(setting: str, name: str, choices: Mapping[str, object]) -> str:
    """Return `name` if it is one of the `choices`, or raise `ModelError`."""
    if name not in choices:
        raise ModelError(f"{setting} {name!r} does not exist; there are {', '.join(choices)}")
    return name

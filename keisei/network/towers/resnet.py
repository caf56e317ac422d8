"""`ActorCriticResTower`: a tower of residual blocks of 3x3 convolutions."""

from collections.abc import Sequence

from torch import Tensor, nn

from keisei.network.towers.model import (
    BEFORE_ACTIVATION,
    SMALL,
    ActorCritic,
    SqueezeExcitation,
    Trunk,
    make_activation,
    start,
)
from keisei.network.towers.plane_split import PlaneSplit


class ResTower(Trunk):
    """A convolution, then `depth` residual blocks of `width` channels.

    Planes that are constant over the board go through a linear layer instead of the convolution.

    There is no batch normalisation: the output for a position would depend on the others of its
    batch, and differ between acting and learning. Instead each block starts close to the identity
    (compare Zhang et al., "Fixup initialization", 2019), so depth does not blow up the signal.
    """

    input_weight = "stem.weight"

    def __init__(
        self,
        in_planes: int,
        depth: int,
        width: int,
        se_ratio: float,
        activation: str,
        constant_planes: Sequence[int] = (),
    ) -> None:
        super().__init__()
        self.width = width
        self.split = PlaneSplit(in_planes, constant_planes)
        self.constant_planes = self.split.constant
        gain = BEFORE_ACTIVATION * self.split.varying_gain
        self.stem = _conv3x3(len(self.split.varying), width, gain)
        self.constants = self.split.constant_layer(width, BEFORE_ACTIVATION)
        self.activation = make_activation(activation)
        self.blocks = nn.Sequential(
            *(ResidualBlock(width, se_ratio, activation) for _ in range(depth))
        )

    def forward(self, planes: Tensor) -> Tensor:
        """Compute features of squares ``[B, 81, W]`` from planes ``[B, C, 9, 9]``."""
        board: Tensor = self.stem(self.split.varying_planes(planes))
        if self.constants is not None:
            board = board + self.constants(self.split.constant_values(planes))[:, :, None, None]
        board = self.blocks(self.activation(board))
        return board.flatten(2).transpose(1, 2)


class ActorCriticResTower(ActorCritic):
    """Residual tower with optional squeeze-and-excitation, and 1x1 heads."""

    trunk_type = ResTower


class ResidualBlock(nn.Module):
    """Two convolutions and squeeze-and-excitation, with a skip connection."""

    def __init__(self, width: int, se_ratio: float, activation: str) -> None:
        super().__init__()
        self.conv1 = _conv3x3(width, width, BEFORE_ACTIVATION)
        self.conv2 = _conv3x3(width, width, SMALL)
        self.se = SqueezeExcitation(width, se_ratio, activation) if se_ratio > 0 else None
        self.activation = make_activation(activation)

    def forward(self, board: Tensor) -> Tensor:
        """Map ``[B, W, 9, 9]`` to the same shape."""
        change: Tensor = self.conv2(self.activation(self.conv1(board)))
        if self.se is not None:
            change = change * self.se(change.mean(dim=(2, 3)))[:, :, None, None]
        result: Tensor = self.activation(board + change)
        return result


def _conv3x3(in_channels: int, out_channels: int, gain: float) -> nn.Conv2d:
    convolution = nn.Conv2d(in_channels, out_channels, kernel_size=3, padding=1)
    start(convolution, gain)
    return convolution

"""`ActorCriticResTower`: a tower of residual blocks of 3x3 convolutions."""

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


class ResTower(Trunk):
    """A convolution, then `depth` residual blocks of `width` channels.

    There is no batch normalisation: the output for a position would depend on the others of its
    batch, and differ between acting and learning. Instead each block starts close to the identity
    (compare Zhang et al., "Fixup initialization", 2019), so depth does not blow up the signal.
    """

    input_weight = "stem.weight"

    def __init__(
        self, in_planes: int, depth: int, width: int, se_ratio: float, activation: str
    ) -> None:
        super().__init__()
        self.width = width
        self.stem = _conv3x3(in_planes, width, BEFORE_ACTIVATION)
        self.activation = make_activation(activation)
        self.blocks = nn.Sequential(
            *(ResidualBlock(width, se_ratio, activation) for _ in range(depth))
        )

    def forward(self, planes: Tensor) -> Tensor:
        """Compute features of squares ``[B, 81, W]`` from planes ``[B, C, 9, 9]``."""
        board: Tensor = self.blocks(self.activation(self.stem(planes)))
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

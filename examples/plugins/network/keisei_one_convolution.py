"""A network with torch: one convolution as its trunk, and the heads that all towers have."""

from collections.abc import Sequence

from torch import Tensor, nn

from keisei.network.towers.model import ActorCritic, Trunk, make_activation


class Convolution(Trunk):
    """A convolution of 5x5 squares. All trunks take the same arguments; not all mean much here."""

    input_weight = "convolution.weight"

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
        self.convolution = nn.Conv2d(in_planes, width, kernel_size=5, padding=2)
        self.activation = make_activation(activation)

    def forward(self, planes: Tensor) -> Tensor:
        """Compute features of squares ``[B, 81, W]`` from planes ``[B, C, 9, 9]``."""
        board: Tensor = self.activation(self.convolution(planes))
        return board.flatten(2).transpose(1, 2)


class OneConvolution(ActorCritic):
    """The network: ``model.type: one_convolution``."""

    trunk_type = Convolution

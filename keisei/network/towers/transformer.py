"""`SquareTransformer`: a transformer whose tokens are the 81 squares."""

from collections.abc import Sequence
from typing import Final

import torch
from torch import Tensor, nn
from torch.nn import functional

from keisei.constants import NUM_SQUARES
from keisei.errors import ModelError
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

ATTENTION_HEADS: Final = 4
FEED_FORWARD_RATIO: Final = 2
"""Hidden width of the feed-forward part divided by the width of the tower."""

FEATURE_SIZE: Final = 0.2
"""Initial scale of the trunk's output, about that of a residual tower."""

POSITION_SCALE: Final = 0.02
"""Standard deviation of the initial position embeddings."""


class TransformerTower(Trunk):
    """A linear embedding of each square's planes, then `depth` transformer layers.

    LayerNorm normalises each square of each sample alone, so samples stay independent.
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
        if width % ATTENTION_HEADS:
            raise ModelError(
                f"tower_width is {width}, for the transformer it must be a multiple of its "
                f"{ATTENTION_HEADS} attention heads"
            )
        super().__init__()
        self.width = width
        self.split = PlaneSplit(in_planes, constant_planes)
        self.constant_planes = self.split.constant
        self.stem = nn.Linear(len(self.split.varying), width)
        start(self.stem, self.split.varying_gain)
        self.constants = self.split.constant_layer(width, 1.0)
        self.place = nn.Parameter(torch.randn(NUM_SQUARES, width) * POSITION_SCALE)
        self.blocks = nn.Sequential(
            *(TransformerLayer(width, se_ratio, activation) for _ in range(depth))
        )
        self.norm = nn.LayerNorm(width)
        nn.init.constant_(self.norm.weight, FEATURE_SIZE)

    def forward(self, planes: Tensor) -> Tensor:
        """Compute features of squares ``[B, 81, W]`` from planes ``[B, C, 9, 9]``."""
        varying = self.split.varying_planes(planes)
        squares = self.stem(varying.flatten(2).transpose(1, 2)) + self.place
        if self.constants is not None:
            squares = squares + self.constants(self.split.constant_values(planes))[:, None]
        result: Tensor = self.norm(self.blocks(squares))
        return result


class SquareTransformer(ActorCritic):
    """Transformer whose tokens are the squares of the board."""

    trunk_type = TransformerTower


class TransformerLayer(nn.Module):
    """Attention and a feed-forward part, each with a LayerNorm before and a skip connection."""

    def __init__(self, width: int, se_ratio: float, activation: str) -> None:
        super().__init__()
        self.attention_norm = nn.LayerNorm(width)
        self.attention = SquareAttention(width)
        self.forward_norm = nn.LayerNorm(width)
        self.expand = nn.Linear(width, FEED_FORWARD_RATIO * width)
        self.activation = make_activation(activation)
        self.contract = nn.Linear(FEED_FORWARD_RATIO * width, width)
        self.se = SqueezeExcitation(width, se_ratio, activation) if se_ratio > 0 else None
        start(self.expand, BEFORE_ACTIVATION)
        start(self.contract, SMALL)

    def forward(self, squares: Tensor) -> Tensor:
        """Map ``[B, 81, W]`` to the same shape."""
        squares = squares + self.attention(self.attention_norm(squares))
        change: Tensor = self.contract(self.activation(self.expand(self.forward_norm(squares))))
        if self.se is not None:
            change = change * self.se(change.mean(dim=1))[:, None]
        return squares + change


class SquareAttention(nn.Module):
    """Self-attention with a learned bias for each pair of squares.

    How pieces move makes the geometry of the board the same in every position.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.queries_keys_values = nn.Linear(width, 3 * width)
        self.geometry = nn.Parameter(torch.zeros(ATTENTION_HEADS, NUM_SQUARES, NUM_SQUARES))
        self.mix = nn.Linear(width, width)
        start(self.queries_keys_values, 1.0)
        start(self.mix, SMALL)

    def forward(self, squares: Tensor) -> Tensor:
        """Map ``[B, 81, W]`` to the same shape."""
        parts = self.queries_keys_values(squares)
        queries, keys, values = parts.unflatten(2, (3, ATTENTION_HEADS, -1)).permute(2, 0, 3, 1, 4)
        geometry = self.geometry.to(queries.dtype)
        mixed = functional.scaled_dot_product_attention(queries, keys, values, attn_mask=geometry)
        result: Tensor = self.mix(mixed.transpose(1, 2).flatten(2))
        return result

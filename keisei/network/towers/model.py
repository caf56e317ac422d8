"""`ActorCritic`: the base of all towers, a trunk with a policy head and a value head."""

from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple

from torch import Tensor, nn

from keisei.network.towers.heads import (
    POLICY_HEADS,
    VALUE_HEADS,
    PolicyHead,
    ValueHead,
)
from keisei.network.towers.layers import Trunk, require_choice, require_fraction, require_positive


class ModelOutput(NamedTuple):
    """Output of a model for ``B`` positions, in float32."""

    logits: Tensor
    """``[B, M]``: logits of the legal actions that were passed in."""

    value: Tensor
    """Raw output of the value head, for `ActorCritic.values` and `ActorCritic.value_loss`."""


class ActorCritic(nn.Module):
    """Computes the logits of the legal actions of positions, and a value for the mover.

    A model type is a subclass that sets `trunk_type`; all take the same settings.
    """

    trunk_type: ClassVar[type[Trunk]]
    """Class of the trunk."""

    trunk: Trunk
    policy: PolicyHead
    value: ValueHead

    in_planes: int
    """C: number of input planes."""

    compiled: Callable[[Tensor, Tensor], ModelOutput] | None = None
    """Called by `forward` instead of `forward_eager`; set by `compile_forward`."""

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

    def forward(self, planes: Tensor, legal: Tensor) -> ModelOutput:
        """Compute the logits ``[B, M]`` of legal actions and the value of ``B`` positions.

        Args:
            planes: ``[B, C, 9, 9]``, floating point.
            legal: ``[B, M]`` int64, legal actions; rows are padded with any action, whose logits
                mean nothing.
        """
        forward = self.forward_eager if self.compiled is None else self.compiled
        return forward(planes, legal)

    def forward_eager(self, planes: Tensor, legal: Tensor) -> ModelOutput:
        """Compute what `forward` does, without compiled code."""
        squares = self.trunk(planes)
        return ModelOutput(self.policy(squares, legal).float(), self.value(squares))

    def all_logits(self, planes: Tensor) -> Tensor:
        """Logits ``[B, 13527]`` of all actions, legal or not; for tests."""
        return self.policy.all_logits(self.trunk(planes)).float()

    def values(self, output_value: Tensor) -> Tensor:
        """Convert `ModelOutput.value` to values ``[B]`` from -1, the mover loses, to 1."""
        return self.value.values(output_value)

    def value_loss(self, output_value: Tensor, returns: Tensor) -> Tensor:
        """Losses ``[B]`` of `ModelOutput.value` given the returns ``[B]``, in float32."""
        return self.value.loss(output_value, returns)

    @property
    def input_weight(self) -> str:
        """Name of the parameter that reads the planes; its dimension 1 counts them."""
        return f"trunk.{self.trunk.input_weight}"

    def __getstate__(self) -> dict[str, Any]:
        # Compiled code belongs to this object: copies and pickles are not compiled.
        state: dict[str, Any] = super().__getstate__()  # type: ignore[no-untyped-call]
        state.pop("compiled", None)
        return state

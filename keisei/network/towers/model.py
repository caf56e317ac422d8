"""`ActorCritic`: a trunk, a policy head and a value head, with the layers that they are made of.

The types of trunk are in `resnet` and `transformer`.
"""

import math
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar, Final, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from keisei.constants import (
    NUM_ACTIONS,
    NUM_BOARD_ACTIONS,
    NUM_HAND_KINDS,
    NUM_SQUARES,
)
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
    of planes, depth and width of the tower, the squeeze-and-excitation ratio, the activation, and
    the indices of the planes that are constant over the board.
    """

    input_weight: ClassVar[str]
    """Name of the parameter that reads the planes; they are its dimension 1."""

    constant_weight: ClassVar[str] = "constants.weight"
    """Name of the parameter that reads `constant_planes` instead, if there are any."""

    constant_planes: tuple[int, ...] = ()
    """Planes that are read as one value each (`plane_split`)."""

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


NUM_BOARD_ENTRIES: Final = NUM_SQUARES * NUM_SQUARES * 2
"""Board moves in the table of the from-to head: every (from, to, promote), also from = to."""

FLAT_CHANNELS: Final = 2
"""Channels that the flat policy head and the value heads read square by square."""

POOLED_CHANNELS: Final = 32
"""Channels that the value heads read as means over the board."""


class PolicyHead(nn.Module):
    """Maps features of squares to logits of actions."""

    def forward(self, squares: Tensor, legal: Tensor) -> Tensor:
        """Compute logits ``[B, M]`` of the actions ``legal[B, M]``."""
        raise NotImplementedError

    def all_logits(self, squares: Tensor) -> Tensor:
        """Compute logits ``[B, 13527]`` of all actions."""
        raise NotImplementedError


class FromToPolicy(PolicyHead):
    """Policy head in which a board move's logit is the query of its origin times its target's key.

    A target has two keys, one for moving there and one for promoting there. Drops have a logit
    for each target and piece. It has far fewer weights than a flat layer, and what is learned about
    a square holds for all moves from or to it: the clone of a bot reached 22 % top-1 accuracy, and
    9.7 % with a flat head (prototype).
    """

    table_index: Tensor

    def __init__(self, in_width: int, width: int, activation: str) -> None:
        super().__init__()
        del activation  # queries and keys are linear
        self.width = width
        self.query = nn.Linear(in_width, width)
        self.key = nn.Linear(in_width, 2 * width)
        self.drop = nn.Linear(in_width, NUM_HAND_KINDS)
        start(self.query, SMALL)
        start(self.key, 1.0)
        start(self.drop, SMALL)
        self.register_buffer("table_index", _table_index(), persistent=False)

    def forward(self, squares: Tensor, legal: Tensor) -> Tensor:
        """Compute logits ``[B, M]`` of the actions ``legal[B, M]``."""
        return self._table(squares).gather(1, self.table_index[legal])

    def all_logits(self, squares: Tensor) -> Tensor:
        """Compute logits ``[B, 13527]`` of all actions."""
        return self._table(squares).index_select(1, self.table_index)

    def _table(self, squares: Tensor) -> Tensor:
        """Logits ``[B, 81 * 81 * 2 + 81 * 7]`` by (from, to, promote), then by (to, piece)."""
        queries = self.query(squares) * self.width**-0.5
        keys = self.key(squares).view(-1, NUM_SQUARES * 2, self.width)
        moves = torch.bmm(queries, keys.transpose(1, 2))
        return torch.cat((moves.flatten(1), self.drop(squares).flatten(1)), dim=1)


def _table_index() -> Tensor:
    """Index ``int64[13527]`` of each action in the table of the from-to head."""
    origin = torch.arange(NUM_SQUARES).view(-1, 1, 1)
    other = torch.arange(NUM_SQUARES - 1).view(1, -1, 1)
    target = other + (other >= origin)  # actions leave out the origin among the targets
    moves = (origin * NUM_SQUARES + target) * 2 + torch.arange(2)
    drops = NUM_BOARD_ENTRIES + torch.arange(NUM_ACTIONS - NUM_BOARD_ACTIONS)
    return torch.cat((moves.flatten(), drops))


class FlatPolicy(PolicyHead):
    """Policy head in which each action has its own weights on one vector of the whole board.

    `width` is the length of that vector, which keeps the number of weights at 13,527 * width.
    """

    def __init__(self, in_width: int, width: int, activation: str) -> None:
        super().__init__()
        self.channels = nn.Linear(in_width, FLAT_CHANNELS)
        self.hidden = nn.Linear(FLAT_CHANNELS * NUM_SQUARES, width)
        self.activation = make_activation(activation)
        self.actions = nn.Linear(width, NUM_ACTIONS)
        start(self.channels, BEFORE_ACTIVATION)
        start(self.hidden, BEFORE_ACTIVATION)
        start(self.actions, SMALL)

    def forward(self, squares: Tensor, legal: Tensor) -> Tensor:
        """Compute logits ``[B, M]`` of the actions ``legal[B, M]``."""
        # Only the legal actions' weights are read: at width 32 that is 2 to 7 times as fast as
        # all logits, and more than that with batches of 1.
        weights = functional.embedding(legal, self.actions.weight)
        biases = self.actions.bias[legal]
        return torch.bmm(weights, self._board(squares).unsqueeze(2)).squeeze(2) + biases

    def all_logits(self, squares: Tensor) -> Tensor:
        """Compute logits ``[B, 13527]`` of all actions."""
        logits: Tensor = self.actions(self._board(squares))
        return logits

    def _board(self, squares: Tensor) -> Tensor:
        channels = self.activation(self.channels(squares)).flatten(1)
        board: Tensor = self.activation(self.hidden(channels))
        return board


class ValueHead(nn.Module):
    """Maps features of squares to the expected outcome for the mover.

    Most channels are averaged over the board, since a piece counts wherever it stands. A few are
    read square by square.
    """

    def __init__(self, in_width: int, width: int, activation: str, outputs: int) -> None:
        super().__init__()
        self.channels = nn.Linear(in_width, POOLED_CHANNELS + FLAT_CHANNELS)
        self.hidden = nn.Linear(POOLED_CHANNELS + FLAT_CHANNELS * NUM_SQUARES, width)
        self.activation = make_activation(activation)
        self.outcome = nn.Linear(width, outputs)
        start(self.channels, BEFORE_ACTIVATION)
        start(self.hidden, BEFORE_ACTIVATION)
        start(self.outcome, SMALL)

    def forward(self, squares: Tensor) -> Tensor:
        """Compute the raw output ``[B, outputs]``, for `values` and `loss`."""
        channels: Tensor = self.activation(self.channels(squares))
        pooled, flat = channels[:, :, :POOLED_CHANNELS], channels[:, :, POOLED_CHANNELS:]
        # The mean over 81 squares varies 1/9 as much as one square does.
        board = torch.cat((pooled.mean(dim=1) * math.sqrt(NUM_SQUARES), flat.flatten(1)), dim=1)
        outcome: Tensor = self.outcome(self.activation(self.hidden(board)))
        return outcome.float()

    def values(self, output: Tensor) -> Tensor:
        """Convert the raw output to values ``[B]`` from -1, the mover loses, to 1."""
        raise NotImplementedError

    def loss(self, output: Tensor, returns: Tensor) -> Tensor:
        """Losses ``[B]`` of the raw output, given the returns ``[B]``."""
        raise NotImplementedError


class TanhValue(ValueHead):
    """Value head with one output, the expected outcome; trained by squared error."""

    def __init__(self, in_width: int, width: int, activation: str) -> None:
        super().__init__(in_width, width, activation, outputs=1)

    def forward(self, squares: Tensor) -> Tensor:
        """Compute the values ``[B]``."""
        return torch.tanh(super().forward(squares).squeeze(1))

    def values(self, output: Tensor) -> Tensor:
        """Return the output itself."""
        return output

    def loss(self, output: Tensor, returns: Tensor) -> Tensor:
        """Squared errors ``(value - return)^2``, ``[B]``."""
        return (output.float() - returns.float()).square()


class WinDrawLossValue(ValueHead):
    """Value head with the probabilities of win, draw and loss; trained by cross-entropy."""

    def __init__(self, in_width: int, width: int, activation: str) -> None:
        super().__init__(in_width, width, activation, outputs=3)

    def values(self, output: Tensor) -> Tensor:
        """Values P(win) - P(loss), ``[B]``."""
        win, _, loss = output.float().softmax(dim=1).unbind(dim=1)
        return win - loss

    def loss(self, output: Tensor, returns: Tensor) -> Tensor:
        """Cross-entropy with P(win) = max(r, 0), P(loss) = max(-r, 0), P(draw) = 1 - abs(r)."""
        returns = returns.float().clamp(-1.0, 1.0)
        target = torch.stack((returns.relu(), 1.0 - returns.abs(), (-returns).relu()), dim=1)
        return -(target * output.float().log_softmax(dim=1)).sum(dim=1)


POLICY_HEADS: Final[Mapping[str, type[FromToPolicy | FlatPolicy]]] = {
    "from_to": FromToPolicy,
    "flat": FlatPolicy,
}
VALUE_HEADS: Final[Mapping[str, type[TanhValue | WinDrawLossValue]]] = {
    "tanh": TanhValue,
    "wdl": WinDrawLossValue,
}


def legal_mask(counts: Tensor, width: int) -> Tensor:
    """Mask ``bool[B, width]`` of the entries of each row that are legal moves."""
    return torch.arange(width, device=counts.device) < counts[:, None]


def legal_log_probs(logits: Tensor, counts: Tensor) -> Tensor:
    """Log-probabilities ``[B, M]`` of the legal moves, in float32; minus infinity beyond them."""
    logits = logits.float()
    padding = ~legal_mask(counts, logits.shape[1])
    return torch.log_softmax(logits.masked_fill(padding, -torch.inf), dim=1)


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
        constant_planes: Sequence[int] = (),
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
        self.trunk = self.trunk_type(
            in_planes, tower_depth, tower_width, se_ratio, activation, constant_planes
        )
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

    @property
    def constant_weight(self) -> str:
        """Name of the parameter that reads planes that are constant over the board, if any are."""
        return f"trunk.{self.trunk.constant_weight}"

    def __getstate__(self) -> dict[str, Any]:
        # Compiled code belongs to this object: copies and pickles are not compiled.
        state: dict[str, Any] = super().__getstate__()  # type: ignore[no-untyped-call]
        state.pop("compiled", None)
        return state

"""Policy heads for the 13,527 actions, and value heads for the outcome.

Heads read the trunk's features of squares ``[B, 81, W]``. A linear layer over them is the same as
a 1x1 convolution over the board. Policy heads compute the logits of the legal actions only: a
position has about 80 of them.
"""

import math
from collections.abc import Mapping
from typing import Final

import torch
from torch import Tensor, nn
from torch.nn import functional

from keisei.constants import (
    NUM_ACTIONS,
    NUM_BOARD_ACTIONS,
    NUM_HAND_KINDS,
    NUM_SQUARES,
)
from keisei.network.towers.layers import BEFORE_ACTIVATION, SMALL, make_activation, start

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

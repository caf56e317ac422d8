"""Several learners as one: what they have to agree on while each learns from its own games.

Under ``torchrun`` every process is a rank. Gradients are averaged before each step of the
optimizer, so all ranks keep the same weights; whatever decides about such a step is agreed on too.
Why this is not torch's own wrapper: `docs/decisions/011-learners-average-by-hand.md`.
"""

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, Final, TypeVar

import torch
import torch.distributed
from torch import Tensor, nn
from torch.distributed import ReduceOp

from keisei.errors import KeiseiError

TIMEOUT: Final = timedelta(hours=2)
"""How long one rank waits for the others. The first may be evaluating, so it is long; a rank that
died is noticed at once all the same, by its connection."""

Item = TypeVar("Item")


class RankLostError(KeiseiError):
    """Another learner is gone, so this one cannot go on."""


class Ranks:
    """All learners of a run, of which this process is one; also a single one.

    Except for names and numbers, everything here waits for all ranks, so all have to ask the same
    questions in the same order.
    """

    def __init__(
        self, rank: int = 0, size: int = 1, *, local_rank: int = 0, local_size: int = 1
    ) -> None:
        self.rank, self.size = rank, size
        self.local_rank, self.local_size = local_rank, local_size
        """The same, among those on this machine."""

    @property
    def is_first(self) -> bool:
        """Whether this rank writes, evaluates and decides."""
        return self.rank == 0

    def __str__(self) -> str:
        return f"learner {self.rank + 1} of {self.size}"

    def average_gradients(self, parameters: Iterable[nn.Parameter]) -> None:
        """Give all ranks the mean of their gradients, in one message."""
        if self.size == 1:
            return
        gradients = [p.grad for p in parameters if p.grad is not None]
        flat = _sendable(torch.cat([gradient.reshape(-1) for gradient in gradients]))
        self._reduce(flat)
        flat /= self.size
        means = torch.split(flat, [gradient.numel() for gradient in gradients])
        for gradient, mean in zip(gradients, means, strict=True):
            gradient.copy_(mean.view_as(gradient))

    def any(self, is_true: bool) -> bool:
        """Whether it is true for some rank."""
        return self.all_min(int(not is_true)) == 0

    def is_same(self, number: int) -> bool:
        """Whether all ranks name the same number."""
        return self.all_min(number) == -self.all_min(-number)

    def all_min(self, number: int) -> int:
        """The smallest number of all ranks."""
        if self.size == 1:
            return number
        tensor = torch.tensor(number, dtype=torch.int64)
        self._reduce(tensor, ReduceOp.MIN)
        return int(tensor)

    def sums(self, numbers: Sequence[float]) -> list[float]:
        """Each number, summed over all ranks."""
        if self.size == 1:
            return list(numbers)
        tensor = torch.tensor(numbers, dtype=torch.float64)
        self._reduce(tensor)
        return [float(number) for number in tensor]

    def means(self, numbers: Sequence[float]) -> list[float]:
        """Each number, averaged over all ranks."""
        return [total / self.size for total in self.sums(numbers)]

    def all_gather(self, item: Item) -> list[Item]:
        """What each rank has, by rank."""
        return [item] if self.size == 1 else self._gather(item)

    def broadcast(self, decision: Item) -> Item:
        """What the first rank decided."""
        return self.all_gather(decision if self.is_first else None)[0]  # type: ignore[return-value]

    def broadcast_weights(self, module: nn.Module) -> None:
        """Give all ranks the weights of the first."""
        if self.size == 1:
            return
        for tensor in module.state_dict().values():
            message = _sendable(tensor)
            self._broadcast(message)
            tensor.copy_(message)

    def leave(self) -> None:
        """Go separate ways: from here on nothing can be agreed on, and nobody waits."""
        if torch.distributed.is_initialized():
            torch.distributed.destroy_process_group()

    def _reduce(self, tensor: Tensor, operation: ReduceOp.RedOpType = ReduceOp.SUM) -> None:
        with _others_may_be_gone():
            torch.distributed.all_reduce(tensor, operation)

    def _broadcast(self, tensor: Tensor) -> None:
        with _others_may_be_gone():
            torch.distributed.broadcast(tensor, src=0)

    def _gather(self, item: Any) -> list[Any]:
        items: list[Any] = [None] * self.size
        with _others_may_be_gone():
            torch.distributed.all_gather_object(items, item)
        return items


def require_launched(*, ddp: bool) -> None:
    """Refuse ``--ddp`` without torchrun, and several processes of torchrun without ``--ddp``."""
    number = os.environ.get("WORLD_SIZE", "")
    is_launched = "RANK" in os.environ and bool(number)
    if ddp and not is_launched:
        raise KeiseiError(
            "several learners are started by torchrun: "
            "torchrun --nproc-per-node 2 -m keisei train --ddp ...; "
            "to go on with one, add --set parallel.ddp=false"
        )
    if not ddp and is_launched and number != "1":
        raise KeiseiError(
            f"torchrun has started {number} processes, which would all train the same run; "
            "add --ddp, so that they learn together"
        )


@contextmanager
def joined(device: torch.device) -> Iterator[Ranks]:
    """Join the other processes that torchrun has started.

    Raises:
        KeiseiError: This process was not started by torchrun, or the others cannot be reached.
    """
    require_launched(ddp=True)
    # What is agreed on goes through the CPU also with GPUs: there it is in the way of nothing, and
    # Gloo raises when a rank is gone, where NCCL ends the whole process.
    backend = "cpu:gloo,cuda:nccl" if device.type == "cuda" else "gloo"
    try:
        torch.distributed.init_process_group(backend, timeout=TIMEOUT)
    except (RuntimeError, ValueError) as error:
        raise KeiseiError(f"the other learners cannot be reached: {_line(error)}") from error
    ranks = Ranks(
        torch.distributed.get_rank(),
        torch.distributed.get_world_size(),
        local_rank=int(os.environ.get("LOCAL_RANK", "0")),
        local_size=int(os.environ.get("LOCAL_WORLD_SIZE", "1")),
    )
    try:
        yield ranks
    finally:
        ranks.leave()


@contextmanager
def _others_may_be_gone() -> Iterator[None]:
    try:
        yield
    except RuntimeError as error:
        raise RankLostError(
            f"another learner is gone, so this one stops too ({_line(error)})"
        ) from error


def _sendable(tensor: Tensor) -> Tensor:
    """The tensor itself, or a copy where no transport takes it from."""
    return tensor if tensor.device.type in ("cpu", "cuda") else tensor.cpu()


def _line(error: Exception) -> str:
    """The first sentence of an error, without the place in torch's sources that it begins with."""
    return re.sub(r"^\[\S+:\d+\]\s*", "", str(error).strip()).partition("\n")[0].partition(". ")[0]

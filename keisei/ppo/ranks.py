"""Several learners as one: what they have to agree on while each learns from its own games.

Under ``torchrun`` every process is a rank. Gradients are averaged before each step of the
optimizer, so all ranks keep the same weights; whatever decides about such a step is agreed on too.
"""

import logging
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Final, TypeVar

import torch
import torch.distributed
from torch import Tensor, nn
from torch.distributed import ReduceOp

from keisei.errors import KeiseiError

logger = logging.getLogger(__name__)

TIMEOUT: Final = timedelta(minutes=30)
"""How long one rank waits for the others; rank 0 evaluates meanwhile."""

Decision = TypeVar("Decision")


class RankLostError(KeiseiError):
    """Another learner is gone, so this one cannot go on."""


class Ranks:
    """All learners of a run, of which this process is one; also a single one."""

    def __init__(self, rank: int = 0, size: int = 1, device: torch.device | None = None) -> None:
        self.rank, self.size = rank, size
        self._device = device or torch.device("cpu")

    @property
    def is_first(self) -> bool:
        """Whether this rank writes, evaluates and decides."""
        return self.rank == 0

    def average_gradients(self, parameters: Iterable[nn.Parameter]) -> None:
        """Give all ranks the mean of their gradients, in one message."""
        if self.size == 1:
            return
        gradients = [p.grad for p in parameters if p.grad is not None]
        flat = torch.cat([gradient.reshape(-1) for gradient in gradients])
        self._reduce(flat)
        flat /= self.size
        means = torch.split(flat, [gradient.numel() for gradient in gradients])
        for gradient, mean in zip(gradients, means, strict=True):
            gradient.copy_(mean.view_as(gradient))

    def all_agree(self, is_true: bool) -> bool:
        """Whether it is true for every rank."""
        return self.least(int(is_true)) == 1

    def least(self, number: int) -> int:
        """The smallest number of all ranks."""
        if self.size == 1:
            return number
        tensor = torch.tensor(-number, dtype=torch.int64, device=self._device)
        self._reduce(tensor, ReduceOp.MAX)
        return -int(tensor)

    def total(self, number: float) -> float:
        """The sum over all ranks."""
        if self.size == 1:
            return number
        tensor = torch.tensor(number, dtype=torch.float64, device=self._device)
        self._reduce(tensor)
        return float(tensor)

    def decided(self, decision: Decision) -> Decision:
        """What the first rank decided."""
        if self.size == 1:
            return decision
        box = [decision]
        with _others_may_be_gone():
            torch.distributed.broadcast_object_list(box, src=0, device=self._device)
        return box[0]

    def copy_first(self, module: nn.Module) -> None:
        """Give all ranks the weights of the first."""
        if self.size > 1:
            with _others_may_be_gone():
                for tensor in module.state_dict().values():
                    torch.distributed.broadcast(tensor, src=0)

    def _reduce(self, tensor: Tensor, operation: ReduceOp.RedOpType = ReduceOp.SUM) -> None:
        with _others_may_be_gone():
            torch.distributed.all_reduce(tensor, operation)


@contextmanager
def joined(device: torch.device) -> Iterator[Ranks]:
    """Join the other processes that torchrun has started.

    Raises:
        KeiseiError: This process was not started by torchrun, or the others cannot be reached.
    """
    if "RANK" not in os.environ or "WORLD_SIZE" not in os.environ:
        raise KeiseiError(
            "several learners are started by torchrun: "
            "torchrun --nproc-per-node 2 -m keisei train --ddp ..."
        )
    backend = "nccl" if device.type == "cuda" else "gloo"
    try:
        torch.distributed.init_process_group(backend, timeout=TIMEOUT)
    except (RuntimeError, ValueError) as error:
        raise KeiseiError(f"the other learners cannot be reached: {error}") from error
    try:
        ranks = Ranks(torch.distributed.get_rank(), torch.distributed.get_world_size(), device)
        logger.info("learner %d of %d", ranks.rank + 1, ranks.size)
        yield ranks
    finally:
        torch.distributed.destroy_process_group()


@contextmanager
def _others_may_be_gone() -> Iterator[None]:
    try:
        yield
    except RuntimeError as error:
        raise RankLostError(f"another learner is gone: {error}") from error

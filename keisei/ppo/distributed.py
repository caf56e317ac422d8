"""`TorchRanks`: several learners that train one network together, by torch.distributed.

Under ``torchrun`` every process is a rank and plays its own games. Gradients are averaged before
each step of the optimizer, so all ranks keep the same weights; all decisions about a step are made
together too. Why not DistributedDataParallel: `docs/decisions/010-gradients-averaged-by-hand.md`.
"""

import os
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from typing import Any, Final, TypeVar

import numpy as np
import numpy.typing as npt
import torch
import torch.distributed
from torch import Tensor, nn
from torch.distributed import ReduceOp

from keisei.config_schema import AppConfig
from keisei.errors import KeiseiError
from keisei.network.towers.device import choose_device, learner_device
from keisei.ppo.learner import RankLostError, Ranks, require_launched

TIMEOUT: Final = timedelta(hours=2)
"""Timeout of collectives. It is long because the first rank may be evaluating; a rank that died is
noticed at once, by its connection."""

Item = TypeVar("Item")


class TorchRanks(Ranks):
    """Ranks of torch's process group."""

    def all_min(self, number: int) -> int:
        """Smallest number of all ranks."""
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

    def all_gather(self, item: Item) -> list[Item]:
        """Items of all ranks, in the order of the ranks."""
        return [item] if self.size == 1 else self._gather(item)

    def leave(self) -> None:
        """Leave the process group: from here on no rank waits for another."""
        if torch.distributed.is_initialized():
            torch.distributed.destroy_process_group()

    def average_gradients(self, parameters: Iterable[nn.Parameter]) -> None:
        """Replace the gradients of all ranks by their means, with one all-reduce."""
        if self.size == 1:
            return
        gradients = [p.grad for p in parameters if p.grad is not None]
        flat = _sendable(torch.cat([gradient.reshape(-1) for gradient in gradients]))
        self._reduce(flat)
        flat /= self.size
        means = torch.split(flat, [gradient.numel() for gradient in gradients])
        for gradient, mean in zip(gradients, means, strict=True):
            gradient.copy_(mean.view_as(gradient))

    def average_arrays(self, arrays: Sequence[npt.NDArray[np.float32]]) -> None:
        """Replace each array by its mean over all ranks, in place."""
        if self.size == 1:
            return
        for array in arrays:
            self._reduce(torch.from_numpy(array))
            np.divide(array, np.float32(self.size), out=array)

    def max_arrays(self, arrays: Sequence[npt.NDArray[np.uint8]]) -> None:
        """Replace each element by the largest one of all ranks, in place."""
        if self.size > 1:
            for array in arrays:
                self._reduce(torch.from_numpy(array), ReduceOp.MAX)

    def broadcast_arrays(self, arrays: Sequence[npt.NDArray[np.float32]]) -> None:
        """Replace each array by that of the first rank, in place."""
        if self.size > 1:
            for array in arrays:
                self._broadcast(torch.from_numpy(array))

    def broadcast_weights(self, module: nn.Module) -> None:
        """Copy the weights of the first rank to all others."""
        if self.size == 1:
            return
        for tensor in module.state_dict().values():
            message = _sendable(tensor)
            self._broadcast(message)
            tensor.copy_(message)

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


@contextmanager
def process_group(config: AppConfig) -> Iterator[TorchRanks]:
    """Join the process group that torchrun has set up; leave it at the end of the block.

    Raises:
        KeiseiError: This process was not started by torchrun, or the others cannot be reached.
    """
    require_launched(ddp=True)
    # Small collectives use the CPU also with GPUs: they block nothing there, and Gloo raises an
    # error when a rank is gone, where NCCL ends the whole process.
    is_cuda = choose_device(config.device.device).type == "cuda"
    try:
        torch.distributed.init_process_group(
            "cpu:gloo,cuda:nccl" if is_cuda else "gloo", timeout=TIMEOUT
        )
    except (RuntimeError, ValueError) as error:
        raise KeiseiError(f"the other learners cannot be reached: {_line(error)}") from error
    ranks = TorchRanks(
        torch.distributed.get_rank(),
        torch.distributed.get_world_size(),
        local_rank=int(os.environ.get("LOCAL_RANK", "0")),
        local_size=int(os.environ.get("LOCAL_WORLD_SIZE", "1")),
    )
    try:
        device = learner_device(config.device.device, ranks.local_rank, ranks.size)
        if device.type == "cuda":
            torch.cuda.set_device(device)
        yield ranks
    except KeiseiError as error:
        if ranks.is_first:
            raise
        raise KeiseiError(f"{ranks}: {error}") from error
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
    """Return the tensor, or a copy on the CPU if no backend sends from its device."""
    return tensor if tensor.device.type in ("cpu", "cuda") else tensor.cpu()


def _line(error: Exception) -> str:
    """First sentence of an error, without the location in torch's sources at its start."""
    return re.sub(r"^\[\S+:\d+\]\s*", "", str(error).strip()).partition("\n")[0].partition(". ")[0]

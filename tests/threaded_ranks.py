"""Learners in threads of one process instead of processes of torchrun."""

import pickle
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from typing import Any, TypeVar

import torch
from torch import Tensor
from torch.distributed import ReduceOp

from keisei.ppo.distributed import TorchRanks

Answer = TypeVar("Answer")

REDUCTIONS: dict[ReduceOp.RedOpType, Callable[[Tensor, int], Tensor]] = {
    ReduceOp.SUM: torch.sum,
    ReduceOp.MIN: torch.amin,
    ReduceOp.MAX: torch.amax,
}


class Table:
    """Where the ranks meet: what each puts down, all can see."""

    def __init__(self, size: int) -> None:
        self._items: list[Any] = [None] * size
        self._barrier = threading.Barrier(size, timeout=60.0)

    def exchange(self, rank: int, item: Any) -> list[Any]:
        self._items[rank] = item
        self._barrier.wait()
        items = list(self._items)
        # One that fails right after this exchange must not break it for slower ones.
        with suppress(threading.BrokenBarrierError):
            self._barrier.wait()
        return items

    def leave(self) -> None:
        """Fail in all ranks that wait for one that failed."""
        self._barrier.abort()


class ThreadedRanks(TorchRanks):
    """One of several threads."""

    def __init__(self, rank: int, size: int, table: Table) -> None:
        super().__init__(rank, size, local_rank=rank, local_size=size)
        self.table = table

    def leave(self) -> None:
        pass

    def _reduce(self, tensor: Tensor, operation: ReduceOp.RedOpType = ReduceOp.SUM) -> None:
        parts = torch.stack(self.table.exchange(self.rank, tensor.clone()))
        tensor.copy_(REDUCTIONS[operation](parts, 0))

    def _broadcast(self, tensor: Tensor) -> None:
        tensor.copy_(self.table.exchange(self.rank, tensor.clone())[0])

    def _gather(self, item: Any) -> list[Any]:
        # As between processes, every rank gets copies.
        return [pickle.loads(box) for box in self.table.exchange(self.rank, pickle.dumps(item))]


def make_ranks(size: int) -> list[ThreadedRanks]:
    """Ranks that belong together."""
    table = Table(size)
    return [ThreadedRanks(rank, size, table) for rank in range(size)]


def run_all(
    ranks: Sequence[ThreadedRanks], work: Callable[[ThreadedRanks], Answer]
) -> list[Answer]:
    """Run the work of all ranks at the same time; return their results."""

    def do(rank: ThreadedRanks) -> Answer:
        try:
            return work(rank)
        except BaseException:
            rank.table.leave()
            raise

    with ThreadPoolExecutor(len(ranks)) as pool:
        futures = [pool.submit(do, rank) for rank in ranks]
    failures = [error for future in futures if (error := future.exception()) is not None]
    for error in failures:  # the first cause, not the waiting of the others for it
        if not isinstance(error, threading.BrokenBarrierError):
            raise error
    return [future.result() for future in futures]

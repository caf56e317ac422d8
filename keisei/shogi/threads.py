"""A thread pool for kernels: each thread works on a range of the games.

Kernels run without the GIL, so plain threads run in parallel. Numba's ``prange`` was slower as
soon as any other process used the processor (``docs/decisions/005-threads-not-prange.md``).
"""

import os
import weakref
from collections.abc import Callable
from queue import SimpleQueue
from threading import Thread
from typing import Any, NamedTuple

MIN_RANGE = 128
"""Minimum number of games in a range: for fewer, waking another thread costs more than it saves."""

LATE, EARLY = 12, 2
"""Games added to the caller's share after it had to wait, and taken from it after it had not.

A woken thread starts late by 20 to 100 us, depending on the machine. If the caller finishes first,
it goes to sleep and has to be woken in turn, which costs as much again; so its share is adjusted
until it just finishes last.
"""


class RangePool:
    """Calls ``function(*args, start, stop)`` for ranges that together cover ``0 .. number``."""

    def __init__(self, threads: int, min_range: int = MIN_RANGE) -> None:
        """Start the threads.

        Args:
            threads: their number, including the calling one.
            min_range: minimum size of a range, for which it is worth waking another thread.
        """
        if threads < 1:
            raise ValueError(f"threads is {threads}, it must be at least 1")
        self.threads = threads
        self._min_range = min_range
        self._head_start = 0
        self._is_closed = False
        self._start()

    def _start(self) -> None:
        self._process = os.getpid()
        # A plain queue: submitting to a ThreadPoolExecutor takes the caller 10 us longer.
        self._tasks: SimpleQueue[_Task | None] = SimpleQueue()
        # The calling thread works too. Daemon threads do not keep the interpreter from exiting.
        self._workers = [
            Thread(target=_work, args=(self._tasks,), name=f"keisei-{number}", daemon=True)
            for number in range(1, self.threads)
        ]
        for worker in self._workers:
            worker.start()
        self._dismiss = weakref.finalize(self, _dismiss, self._tasks, len(self._workers))

    def run(self, function: Callable[..., Any], number: int, *args: Any) -> None:
        """Call `function` for all ranges, and return when all of them are done."""
        if self._is_closed:
            raise RuntimeError("this environment is closed")
        parts = max(1, min(self.threads, number // self._min_range))
        if parts == 1:
            function(*args, 0, number)
            return
        self._start_after_fork()
        share = max(1, (number - min(self._head_start, number // 2)) // parts)
        first = number - (parts - 1) * share
        results: SimpleQueue[BaseException | None] = SimpleQueue()
        for start in range(first, number, share):
            self._tasks.put(_Task(function, (*args, start, start + share), results))
        try:
            function(*args, 0, first)
        finally:
            had_to_wait = results.qsize() < parts - 1
            step = LATE if had_to_wait else -EARLY
            self._head_start = min(max(self._head_start + step, 0), number // 2)
            errors = [results.get() for _ in range(parts - 1)]
        for error in errors:
            if error is not None:
                raise error

    def run_each(self, function: Callable[..., Any], *args: Any) -> None:
        """Call ``function(*args, number, threads)`` once per thread, with `number` from 0.

        Unlike the ranges of `run`, whose limits depend on how busy the machine is, these calls are
        always the same: for sums that have to be repeatable.
        """
        if self._is_closed:
            raise RuntimeError("this environment is closed")
        self._start_after_fork()
        results: SimpleQueue[BaseException | None] = SimpleQueue()
        for number in range(1, self.threads):
            self._tasks.put(_Task(function, (*args, number, self.threads), results))
        try:
            function(*args, 0, self.threads)
        finally:
            errors = [results.get() for _ in range(1, self.threads)]
        for error in errors:
            if error is not None:
                raise error

    def _start_after_fork(self) -> None:
        """Start the threads again in a forked process, whose copy of the pool has none."""
        if self._process != os.getpid():
            self._dismiss.detach()
            self._start()

    def __reduce__(self) -> tuple[Any, ...]:
        """Give a copy, also one in another process, its own threads."""
        return type(self), (self.threads, self._min_range)

    def close(self) -> None:
        """Stop the threads; `run` raises afterwards."""
        self._is_closed = True
        self._dismiss()
        for worker in self._workers:
            worker.join()
        self._workers.clear()


class _Task(NamedTuple):
    function: Callable[..., Any]
    args: tuple[Any, ...]
    results: "SimpleQueue[BaseException | None]"


def _work(tasks: "SimpleQueue[_Task | None]") -> None:
    """Run tasks until None arrives. Holds no reference to the pool, so that it can be collected."""
    while (task := tasks.get()) is not None:
        error = None
        try:
            task.function(*task.args)
        except BaseException as raised:  # noqa: BLE001 -- raised again in the calling thread
            error = raised
        task.results.put(error)
        del task, error  # do not keep arrays alive while waiting for the next task


def _dismiss(tasks: "SimpleQueue[_Task | None]", workers: int) -> None:
    for _ in range(workers):
        tasks.put(None)

"""Sharing the work of a kernel among threads: each takes a range of the games.

Kernels run without the GIL, so plain threads run side by side. Numba's ``prange`` was slower as
soon as anything else wanted the processor (``docs/decisions/005-threads-not-prange.md``).
"""

import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from itertools import pairwise
from typing import Any

MIN_RANGE = 128
"""Fewer games than this are not worth waking another thread for."""


class RangePool:
    """Calls ``function(*args, start, stop)`` for ranges that together cover ``0 .. number``."""

    def __init__(self, threads: int) -> None:
        if threads < 1:
            raise ValueError(f"threads is {threads}, it must be at least 1")
        self.threads = threads
        # The calling thread takes the first range itself.
        self._executor = ThreadPoolExecutor(threads - 1, "keisei") if threads > 1 else None
        if self._executor is not None:
            weakref.finalize(self, self._executor.shutdown, wait=False)

    def run(self, function: Callable[..., Any], number: int, *args: Any) -> None:
        """Do the whole range, and return when all of it is done."""
        parts = max(1, min(self.threads, number // MIN_RANGE))
        if self._executor is None or parts == 1:
            function(*args, 0, number)
            return
        bounds = [number * part // parts for part in range(parts + 1)]
        waiting = [
            self._executor.submit(function, *args, start, stop)
            for start, stop in pairwise(bounds[1:])
        ]
        try:
            function(*args, bounds[0], bounds[1])
        finally:
            for future in waiting:
                future.result()

    def close(self) -> None:
        """End the threads."""
        if self._executor is not None:
            self._executor.shutdown()

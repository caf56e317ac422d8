"""Stopwatches for training: seconds by section of a step, and seconds of network computation."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType


class SectionTimer:
    """Adds up the seconds spent in named sections; the rest is ``other``."""

    def __init__(self) -> None:
        self._seconds: dict[str, float] = {}
        self._start = time.perf_counter()

    @contextmanager
    def section(self, name: str) -> Iterator[None]:
        """Count the time inside the context as `name`. Sections do not nest."""
        start = time.perf_counter()
        try:
            yield
        finally:
            self._seconds[name] = self._seconds.get(name, 0.0) + time.perf_counter() - start

    def take(self) -> dict[str, float]:
        """Return the seconds by section since the last call, ``other`` included, and reset."""
        now = time.perf_counter()
        seconds = dict(self._seconds)
        seconds["other"] = max(now - self._start - sum(seconds.values()), 0.0)
        self._seconds, self._start = {}, now
        return seconds


class Stopwatch:
    """Adds up the seconds of the ``with`` blocks it is used for.

    GPU work that is still running when a block ends is missed, unless the block waits for its
    result. The blocks in this package wait for the forward and the backward pass; only the
    optimizer's step, which returns no result, may still be running.
    """

    def __init__(self) -> None:
        self._seconds = 0.0
        self._start = 0.0

    def take(self) -> float:
        """Return the seconds since the last call, and reset."""
        seconds, self._seconds = self._seconds, 0.0
        return seconds

    def __enter__(self) -> None:
        self._start = time.perf_counter()

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        self._seconds += time.perf_counter() - self._start

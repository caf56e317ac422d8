"""Timers: `SectionTimer` for the sections of an update, `Stopwatch` for the network's time."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType


class SectionTimer:
    """Adds up the seconds spent in named sections; the rest of the time is ``other``."""

    def __init__(self) -> None:
        self._seconds: dict[str, float] = {}
        self._start = time.perf_counter()

    @contextmanager
    def section(self, name: str) -> Iterator[None]:
        """Count the time of the block for `name`. Sections must not be nested."""
        start = time.perf_counter()
        try:
            yield
        finally:
            self._seconds[name] = self._seconds.get(name, 0.0) + time.perf_counter() - start

    def take(self) -> dict[str, float]:
        """Return the seconds by section, ``other`` included, and reset them."""
        now = time.perf_counter()
        seconds = dict(self._seconds)
        seconds["other"] = max(now - self._start - sum(seconds.values()), 0.0)
        self._seconds, self._start = {}, now
        return seconds


class Stopwatch:
    """Adds up the seconds of the blocks that it is the context of.

    Work that a GPU still does when a block ends is not counted, unless the block waits for a
    result. The blocks in Keisei wait for the forward and the backward pass; only the optimizer
    step, which has no result, may still be running.
    """

    def __init__(self) -> None:
        self._seconds = 0.0
        self._start = 0.0

    def take(self) -> float:
        """Return the seconds, and reset them."""
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

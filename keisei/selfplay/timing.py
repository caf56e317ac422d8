"""Where the time goes: seconds by section."""

import time
from collections.abc import Iterator
from contextlib import contextmanager


class SectionTimer:
    """Adds up the seconds spent in named sections; what no section claims is ``other``."""

    def __init__(self) -> None:
        self._seconds: dict[str, float] = {}
        self._start = time.perf_counter()

    @contextmanager
    def section(self, name: str) -> Iterator[None]:
        """Everything inside counts for `name`. Sections do not nest."""
        start = time.perf_counter()
        try:
            yield
        finally:
            self._seconds[name] = self._seconds.get(name, 0.0) + time.perf_counter() - start

    def take(self) -> dict[str, float]:
        """Seconds by section since the last call, ``other`` included; starts anew."""
        now = time.perf_counter()
        seconds = dict(self._seconds)
        seconds["other"] = max(now - self._start - sum(seconds.values()), 0.0)
        self._seconds, self._start = {}, now
        return seconds

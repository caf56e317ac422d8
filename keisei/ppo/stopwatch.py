"""How long the network was at work."""

import time
from types import TracebackType


class Stopwatch:
    """Adds up the seconds of the blocks it is entered for.

    What a GPU still does when its block ends is missed, unless the block waits for a result. Those
    in this package wait for the forward and the backward pass; only the optimizer's own step, which
    changes the weights and gives no result, may still be under way.
    """

    def __init__(self) -> None:
        self._seconds = 0.0
        self._start = 0.0

    def take(self) -> float:
        """Seconds since the last call; starts anew."""
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

"""Ctrl-C and SIGTERM: the first ends the run properly, the second at once."""

import logging
import signal
import threading
from types import FrameType
from typing import Any, Self

logger = logging.getLogger(__name__)


class InterruptFlag:
    """Set by the first SIGINT or SIGTERM while used as a context; the second interrupts.

    SIGTERM is how torchrun, job schedulers and containers ask for the end.
    """

    def __init__(self) -> None:
        self.is_set = False
        self._previous: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                self._previous[number] = signal.signal(number, self._hear)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)
        self._previous = {}

    def _hear(self, signum: int, frame: FrameType | None) -> None:
        if self.is_set:
            raise KeyboardInterrupt
        self.is_set = True
        logger.warning("ending after this update; press Ctrl-C again to stop at once")

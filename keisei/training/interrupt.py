"""Ctrl-C: the first one ends the run properly, the second one at once."""

import logging
import signal
import threading
from types import FrameType
from typing import Any, Self

logger = logging.getLogger(__name__)


class InterruptFlag:
    """Set by the first SIGINT while used as a context; the second raises `KeyboardInterrupt`."""

    def __init__(self) -> None:
        self.is_set = False
        self._previous: Any = None

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            self._previous = signal.signal(signal.SIGINT, self._hear)
        return self

    def __exit__(self, *_: object) -> None:
        if self._previous is not None:
            signal.signal(signal.SIGINT, self._previous)
            self._previous = None

    def _hear(self, signum: int, frame: FrameType | None) -> None:
        if self.is_set:
            raise KeyboardInterrupt
        self.is_set = True
        logger.warning("ending after this update; press Ctrl-C again to stop at once")

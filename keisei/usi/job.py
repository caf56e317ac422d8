"""One ``go``, shared by who thinks about it and who hears what the GUI says meanwhile."""

import time
from threading import Condition

from keisei.usi.limits import Limits
from keisei.usi.options import Settings


class Job:
    """A search that was asked for. It has exactly one answer."""

    def __init__(self, limits: Limits, settings: Settings) -> None:
        self.settings = settings
        """As they were when it was asked for."""

        self._changed = Condition()
        self._limits = limits
        self._is_pondering = limits.ponder
        self._is_stopped = False
        self._is_abandoned = False
        self._clock_start = time.monotonic()
        self.arrival = self._clock_start
        """When it was asked for; what it waited for its turn is on its clock."""

    @property
    def limits(self) -> Limits:
        """What it may use."""
        return self._limits

    @property
    def is_stopped(self) -> bool:
        """Whether the answer is wanted now."""
        return self._is_stopped

    @property
    def is_abandoned(self) -> bool:
        """Whether nobody waits for the answer any more."""
        return self._is_abandoned

    @property
    def may_answer(self) -> bool:
        """Whether the GUI expects an answer by now, should it be known."""
        return self._is_stopped or not (self._is_pondering or self._limits.infinite)

    @property
    def clock_start(self) -> float | None:
        """Since when the clock runs, by `time.monotonic`; None while it does not."""
        return None if self._is_pondering else self._clock_start

    def begin(self, earliest: float) -> None:
        """It is its turn, after another one was answered at `earliest`: that was not its time."""
        with self._changed:
            self._clock_start = max(self._clock_start, earliest)
            self.arrival = max(self.arrival, earliest)

    def stop(self) -> None:
        """The answer is wanted now."""
        with self._changed:
            self._is_stopped = True
            self._changed.notify_all()

    def abandon(self) -> None:
        """The answer is not wanted."""
        with self._changed:
            self._is_stopped = self._is_abandoned = True
            self._changed.notify_all()

    def ponder_hit(self, limits: Limits | None = None) -> None:
        """The expected move was played: from now on the clock runs; some GUIs say what is on it."""
        with self._changed:
            if not self._is_pondering:
                return
            if limits is not None:
                self._limits = limits
            self._clock_start = time.monotonic()
            self._is_pondering = False
            self._changed.notify_all()

    def wait_until_it_may_answer(self) -> None:
        """Keep an answer back that is known before the GUI expects one."""
        with self._changed:
            self._changed.wait_for(lambda: self.may_answer)

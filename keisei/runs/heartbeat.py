"""``heartbeat.json``: a sign of life that a thread of a run writes every few seconds.

A run writes nothing to its journal during a long update, an evaluation or a pause. Its heartbeat
tells it apart from one that was killed, and says what it is doing.
"""

import json
import time
from typing import Any, Final, NamedTuple, get_args

from keisei.callbacks import Phase, PhaseProgress

HEARTBEAT_INTERVAL: Final = 5.0
"""Seconds between two heartbeats."""

HEARTBEAT_TIMEOUT: Final = 60.0
"""Seconds after the last heartbeat from which a run counts as killed. Longer than the interval by
far: the machine may be overloaded, and the clock of another machine may differ."""


class RunHeartbeat(NamedTuple):
    """The last sign of life of a run."""

    time: float
    """When it was written, in seconds since 1970."""

    progress: PhaseProgress
    is_stopping: bool = False
    """Whether the run was asked to end after this update."""

    def is_fresh(self, now: float) -> bool:
        """Return whether the run is alive; `now` is in seconds since 1970."""
        return now - self.time <= HEARTBEAT_TIMEOUT

    def to_json(self) -> bytes:
        """Return the content of the file."""
        fields = {"time": round(self.time, 3), "phase": self.progress.phase}
        fields |= {"done": self.progress.done, "total": self.progress.total}
        return json.dumps(fields | {"is_stopping": self.is_stopping}).encode()

    @classmethod
    def now(cls, progress: PhaseProgress, *, is_stopping: bool) -> "RunHeartbeat":
        """Return the heartbeat of this moment."""
        return cls(time.time(), progress, is_stopping)


def parse_heartbeat(data: bytes | None) -> RunHeartbeat | None:
    """Return the heartbeat in a file; None if there is none, or it cannot be parsed."""
    try:
        fields: Any = json.loads(data or b"")
        phase = fields["phase"]
        if phase not in get_args(Phase):
            return None
        progress = PhaseProgress(phase, int(fields["done"]), int(fields["total"]))
        return RunHeartbeat(float(fields["time"]), progress, bool(fields["is_stopping"]))
    except (ValueError, KeyError, TypeError, OverflowError, RecursionError):
        return None

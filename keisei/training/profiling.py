"""``--profile``: an update under torch.profiler."""

import logging
from pathlib import Path
from typing import Final

import torch
from torch.profiler import ProfilerActivity, profile, schedule, tensorboard_trace_handler

from keisei.callbacks import (
    Callback,
    StepEnd,
    TrainingEnd,
    TrainingStart,
)
from keisei.system import write_atomically

logger = logging.getLogger(__name__)

PROFILE: Final = "profile"
"""The directory of a run that the traces go to."""

SUMMARY: Final = "summary.txt"
WARM_UP: Final = 1
"""Updates that pass before: the first is slower than those that follow."""

RECORDED: Final = 1
"""Updates that are recorded: a trace of one is already large."""

SHOWN_ROWS: Final = 30


class Profiler(Callback):
    """Records an update, writes its trace and a table of what took longest."""

    def __init__(self, run_directory: Path) -> None:
        self.directory = run_directory / PROFILE
        self._profile: profile | None = None

    def on_training_start(self, event: TrainingStart) -> None:
        """Begin to wait for the update that is recorded."""
        activities = [ProfilerActivity.CPU]
        if torch.cuda.is_available():
            activities.append(ProfilerActivity.CUDA)
        self._profile = profile(
            activities=activities,
            schedule=schedule(wait=0, warmup=WARM_UP, active=RECORDED, repeat=1),
            on_trace_ready=self._write,
        )
        self._profile.start()

    def on_step_end(self, event: StepEnd) -> None:
        """Go on to the next update."""
        if self._profile is not None:
            self._profile.step()

    def on_training_end(self, event: TrainingEnd) -> None:
        """Stop, whether there was something to record or not."""
        if self._profile is not None:
            self._profile.stop()
            self._profile = None

    def _write(self, recorded: profile) -> None:
        self.directory.mkdir(parents=True, exist_ok=True)
        tensorboard_trace_handler(str(self.directory))(recorded)
        key = "self_cuda_time_total" if torch.cuda.is_available() else "self_cpu_time_total"
        table = recorded.key_averages().table(sort_by=key, row_limit=SHOWN_ROWS)
        write_atomically(self.directory / SUMMARY, table.encode())
        logger.info("profile of an update: %s", self.directory / SUMMARY)

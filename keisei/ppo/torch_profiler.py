"""`TorchProfiler`: records an update with torch.profiler."""

import logging
from pathlib import Path
from typing import Final

import torch
from torch.profiler import ProfilerActivity, profile, schedule, tensorboard_trace_handler

from keisei.system import write_atomically

logger = logging.getLogger(__name__)

SUMMARY: Final = "summary.txt"
"""Name of the file with the table."""

WARM_UP: Final = 1
"""Updates before the recorded one: the first is slower than those that follow."""

RECORDED: Final = 1
"""Updates that are recorded: a trace of one is already large."""

SHOWN_ROWS: Final = 30


class TorchProfiler:
    """Records one update: a trace for TensorBoard, and a table of the slowest operations."""

    def __init__(self, directory: Path) -> None:
        """Prepare to write into `directory`, which need not exist."""
        self._directory = directory
        activities = [ProfilerActivity.CPU]
        if torch.cuda.is_available():
            activities.append(ProfilerActivity.CUDA)
        self._profile = profile(
            activities=activities,
            schedule=schedule(wait=0, warmup=WARM_UP, active=RECORDED, repeat=1),
            on_trace_ready=self._write,
        )

    def start(self) -> None:
        """Start before the first update."""
        self._profile.start()

    def step(self) -> None:
        """Mark the end of an update."""
        self._profile.step()

    def stop(self) -> None:
        """Stop, whether anything was recorded or not."""
        self._profile.stop()

    def _write(self, recorded: profile) -> None:
        self._directory.mkdir(parents=True, exist_ok=True)
        tensorboard_trace_handler(str(self._directory))(recorded)
        key = "self_cuda_time_total" if torch.cuda.is_available() else "self_cpu_time_total"
        table = recorded.key_averages().table(sort_by=key, row_limit=SHOWN_ROWS)
        write_atomically(self._directory / SUMMARY, table.encode())
        logger.info("profile of an update: %s", self._directory / SUMMARY)

"""``--profile``: one update, recorded by the learner's profiler."""

from typing import Final

from keisei.callbacks import Callback, StepEnd, TrainingEnd, TrainingStart
from keisei.ppo.learner import UpdateProfiler

PROFILE: Final = "profile"
"""The directory of a run that the traces go to."""


class Profiler(Callback):
    """Starts, steps and stops a profiler with the updates of a run."""

    def __init__(self, profiler: UpdateProfiler) -> None:
        self._profiler = profiler
        self._is_running = False

    def on_training_start(self, event: TrainingStart) -> None:
        """Start before the first update."""
        self._profiler.start()
        self._is_running = True

    def on_step_end(self, event: StepEnd) -> None:
        """Count an update."""
        if self._is_running:
            self._profiler.step()

    def on_training_end(self, event: TrainingEnd) -> None:
        """Stop, whether anything was recorded or not."""
        if self._is_running:
            self._profiler.stop()
            self._is_running = False

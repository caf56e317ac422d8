"""Trackers: callbacks that write down what is measured.

JSON lines and TensorBoard need no account; Weights & Biases is optional and has a module of its
own, `keisei.training.wandb_tracker`.
"""

import logging
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from keisei.config_schema import AppConfig
from keisei.metric_names import evaluation_metrics
from keisei.runs import journal, run_files
from keisei.training.callbacks import (
    Callback,
    CheckpointSaved,
    EvaluationEnd,
    Progress,
    StepEnd,
    TrainingEnd,
    TrainingStart,
)
from keisei.training.wandb_tracker import WandbTracker, import_wandb

if TYPE_CHECKING:
    from torch.utils.tensorboard import SummaryWriter

__all__ = ["JsonlTracker", "NullTracker", "TensorBoardTracker", "WandbTracker", "make_trackers"]

logger = logging.getLogger(__name__)

TENSORBOARD_FLUSH_SECONDS = 30
"""How much of TensorBoard's curves a killed run may lose; metrics.jsonl loses nothing."""


class NullTracker(Callback):
    """Stands in for a tracker that is off."""


class JsonlTracker(Callback):
    """Keeps the run's journal, ``metrics.jsonl``: see `keisei.runs.journal`.

    A line is handed to the system as soon as it is made, so that a killed run has lost none. After
    a resume the same file is continued, without what was written after the checkpoint.
    """

    def __init__(self, run_directory: Path) -> None:
        self.path = run_directory / run_files.METRICS
        self._is_ready = False
        self._line_is_torn = False

    def on_training_start(self, event: TrainingStart) -> None:
        """Bring the journal to the place where the run begins or goes on."""
        journal.rewind(self.path, event.progress.update)
        self._is_ready = True
        self._write(journal.START, event.progress, facts=dict(event.facts))

    def on_step_end(self, event: StepEnd) -> None:
        """Write a step's metrics."""
        self._write(journal.STEP, event.progress, metrics=event.metrics)

    def on_evaluation(self, event: EvaluationEnd) -> None:
        """Write the scores."""
        self._write(journal.EVALUATION, event.progress, metrics=evaluation_metrics(event.scores))

    def on_checkpoint(self, event: CheckpointSaved) -> None:
        """Write where the checkpoint is, as seen from the run's directory."""
        path = event.path
        if path.is_relative_to(self.path.parent):
            path = path.relative_to(self.path.parent)
        self._write(journal.CHECKPOINT, event.progress, path=path.as_posix())

    def on_training_end(self, event: TrainingEnd) -> None:
        """Write why the run ends."""
        self._write(journal.END, event.progress, reason=event.reason)

    def _write(self, name: str, progress: Progress, **fields: Any) -> None:
        if not self._is_ready:
            return  # the old lines are still there, which was reported as an error
        entry = journal.Entry(
            event=name,
            update=progress.update,
            timestep=progress.timestep,
            total_timesteps=progress.total_timesteps,
            games=progress.games,
            seconds=round(progress.seconds, 3),
            time=round(time.time(), 3),
            **fields,
        )
        line = entry.to_line()
        if self._line_is_torn:
            line = b"\n" + line
        # A full disk may take half a line; the next one then begins with a newline.
        self._line_is_torn = True
        # Unbuffered: the system has the whole line, so a kill cannot take any of it.
        with self.path.open("ab", buffering=0) as file:
            if file.write(line) != len(line):
                raise OSError(f"{self.path}: only a part of a line could be written")
        self._line_is_torn = False


class TensorBoardTracker(Callback):
    """Writes scalars, over timesteps, and the settings for TensorBoard."""

    def __init__(self, run_directory: Path) -> None:
        self.directory = run_directory / run_files.TENSORBOARD
        self._writer: SummaryWriter | None = None

    def on_training_start(self, event: TrainingStart) -> None:
        """Open the event file; after a resume, hide what was written after the checkpoint."""
        from torch.utils.tensorboard import SummaryWriter  # takes seconds to import

        timestep = event.progress.timestep
        self._writer = SummaryWriter(
            str(self.directory),
            purge_step=timestep + 1 if timestep else None,
            flush_secs=TENSORBOARD_FLUSH_SECONDS,
        )
        settings = event.config.model_dump_json(indent=2)
        self._writer.add_text("config", _as_code(settings), timestep)
        facts = "\n".join(f"{name}: {value}" for name, value in event.facts.items())
        self._writer.add_text("facts", _as_code(facts), timestep)

    def on_step_end(self, event: StepEnd) -> None:
        """Write a step's metrics."""
        self._add(event.metrics, event.progress)

    def on_evaluation(self, event: EvaluationEnd) -> None:
        """Write the scores."""
        self._add(evaluation_metrics(event.scores), event.progress)

    def on_training_end(self, event: TrainingEnd) -> None:
        """Write what is still in memory and close the file."""
        if self._writer is not None:
            self._writer.close()
            self._writer = None

    def _add(self, metrics: Mapping[str, float], progress: Progress) -> None:
        if self._writer is not None:
            for name, value in metrics.items():
                self._writer.add_scalar(name, value, progress.timestep)


def _as_code(text: str) -> str:
    """As Markdown that TensorBoard shows line by line."""
    return "\n".join(f"    {line}" for line in text.splitlines())


def make_trackers(config: AppConfig, run_directory: Path) -> list[Callback]:
    """The trackers that the settings ask for; the journal is always kept, and comes first."""
    return [
        JsonlTracker(run_directory),
        TensorBoardTracker(run_directory) if config.logging.tensorboard else NullTracker(),
        _wandb_tracker(config, run_directory),
    ]


def _wandb_tracker(config: AppConfig, run_directory: Path) -> Callback:
    if config.logging.wandb == "off":
        return NullTracker()
    return WandbTracker(
        import_wandb(),
        run_directory,
        project=config.logging.wandb_project,
        mode=config.logging.wandb,
        finish_timeout=config.logging.wandb_timeout,
    )

"""Trackers: callbacks that record the metrics of a run.

The journal and TensorBoard need no account; Weights & Biases is optional and has a module of its
own, `keisei.training.wandb_tracker`.
"""

import logging
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from keisei import run_files
from keisei.callbacks import (
    Callback,
    CheckpointSaved,
    EvaluationEnd,
    Progress,
    StepEnd,
    TrainingEnd,
    TrainingStart,
)
from keisei.config_schema import AppConfig
from keisei.runs import journal
from keisei.runs.journal import evaluation_metrics

if TYPE_CHECKING:
    from tensorboard.summary.writer.event_file_writer import EventFileWriter

logger = logging.getLogger(__name__)

TENSORBOARD_FLUSH_INTERVAL: Final = 30
"""Seconds of TensorBoard's curves that a killed run may lose; metrics.jsonl loses nothing."""


class NullTracker(Callback):
    """Does nothing, in place of a tracker that is switched off."""


class JsonlTracker(Callback):
    """Writes the run's journal, ``metrics.jsonl``: see `keisei.runs.journal`.

    Lines are not buffered, so that a killed run loses none. After a resume the same file is
    continued, without what was written after the checkpoint.
    """

    def __init__(self, run_directory: Path) -> None:
        self.path = run_directory / run_files.METRICS
        self._is_ready = False
        self._resumed_at: int | None = None
        """Update at which the session started, until its first step."""

        self._line_is_torn = False

    def on_training_start(self, event: TrainingStart) -> None:
        """Rewind the journal to where the run starts or resumes, and write the start."""
        journal.rewind(self.path, event.progress.update)
        self._is_ready = True
        self._resumed_at = event.progress.update
        self._write(journal.START, event.progress, facts=dict(event.facts))

    def on_step_end(self, event: StepEnd) -> None:
        """Write the metrics of a step."""
        self._resumed_at = None
        self._write(journal.STEP, event.progress, metrics=event.metrics)

    def on_evaluation(self, event: EvaluationEnd) -> None:
        """Write the scores."""
        if self._is_ready and event.progress.update == self._resumed_at:
            journal.drop_repeated_evaluation(self.path, event.progress.update)
        self._write(
            journal.EVALUATION,
            event.progress,
            metrics=evaluation_metrics(event.scores, event.placement, event.calibration),
        )

    def on_checkpoint(self, event: CheckpointSaved) -> None:
        """Write the path of the checkpoint, relative to the run's directory."""
        path = event.path
        if path.is_relative_to(self.path.parent):
            path = path.relative_to(self.path.parent)
        self._write(journal.CHECKPOINT, event.progress, path=path.as_posix())

    def on_training_end(self, event: TrainingEnd) -> None:
        """Write why the run ends."""
        self._write(journal.END, event.progress, reason=event.reason)

    def _write(self, name: str, progress: Progress, **fields: Any) -> None:
        if not self._is_ready:
            return  # rewinding failed, which was logged
        entry = journal.JournalEntry(
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
        # A full disk may store half a line; the next line then begins with a newline.
        self._line_is_torn = True
        # Unbuffered: once the system has the line, a kill cannot lose it.
        with self.path.open("ab", buffering=0) as file:
            if file.write(line) != len(line):
                raise OSError(f"{self.path}: only part of a line could be written")
        self._line_is_torn = False


class TensorBoardTracker(Callback):
    """Writes metrics over timesteps, and the settings, as TensorBoard event files."""

    def __init__(self, run_directory: Path) -> None:
        self.directory = run_directory / run_files.TENSORBOARD
        self._writer: EventFileWriter | None = None

    def on_training_start(self, event: TrainingStart) -> None:
        """Open an event file; after a resume, hide what was written after the checkpoint."""
        # Takes more than a second to import, which runs without TensorBoard are spared.
        from tensorboard.compat.proto.event_pb2 import SessionLog
        from tensorboard.summary.writer.event_file_writer import EventFileWriter

        self._writer = EventFileWriter(str(self.directory), flush_secs=TENSORBOARD_FLUSH_INTERVAL)
        timestep = event.progress.timestep
        if timestep > 0:
            # A start makes TensorBoard drop the events of this step and later ones.
            self._add_event(timestep + 1, session_log=SessionLog(status=SessionLog.START))
        self._add_text("config", event.config.model_dump_json(indent=2), timestep)
        facts = "\n".join(f"{name}: {value}" for name, value in event.facts.items())
        self._add_text("facts", facts, timestep)

    def on_step_end(self, event: StepEnd) -> None:
        """Write the metrics of a step."""
        self._add_scalars(event.metrics, event.progress)

    def on_evaluation(self, event: EvaluationEnd) -> None:
        """Write the scores."""
        self._add_scalars(
            evaluation_metrics(event.scores, event.placement, event.calibration), event.progress
        )

    def on_training_end(self, event: TrainingEnd) -> None:
        """Flush and close the file."""
        if self._writer is not None:
            self._writer.close()
            self._writer = None

    def _add_scalars(self, metrics: Mapping[str, float], progress: Progress) -> None:
        from tensorboard.compat.proto.summary_pb2 import Summary

        values = [
            Summary.Value(tag=name, simple_value=float(value)) for name, value in metrics.items()
        ]
        self._add_event(progress.timestep, summary=Summary(value=values))

    def _add_text(self, tag: str, text: str, timestep: int) -> None:
        from tensorboard.compat.proto.summary_pb2 import Summary, SummaryMetadata
        from tensorboard.compat.proto.tensor_pb2 import TensorProto
        from tensorboard.compat.proto.tensor_shape_pb2 import TensorShapeProto
        from tensorboard.plugins.text.plugin_data_pb2 import TextPluginData

        plugin = SummaryMetadata.PluginData(
            plugin_name="text", content=TextPluginData(version=0).SerializeToString()
        )
        tensor = TensorProto(
            dtype="DT_STRING",
            string_val=[_as_code(text).encode()],
            tensor_shape=TensorShapeProto(dim=[TensorShapeProto.Dim(size=1)]),
        )
        value = Summary.Value(
            tag=f"{tag}/text_summary",
            metadata=SummaryMetadata(plugin_data=plugin),
            tensor=tensor,
        )
        self._add_event(timestep, summary=Summary(value=[value]))

    def _add_event(self, timestep: int, **content: Any) -> None:
        from tensorboard.compat.proto.event_pb2 import Event

        if self._writer is not None:
            self._writer.add_event(Event(wall_time=time.time(), step=timestep, **content))


def _as_code(text: str) -> str:
    """Return text as Markdown that TensorBoard shows line by line."""
    return "\n".join(f"    {line}" for line in text.splitlines())


def make_trackers(config: AppConfig, run_directory: Path) -> list[Callback]:
    """Return the trackers that the settings ask for; the journal is always written, and first."""
    return [
        JsonlTracker(run_directory),
        TensorBoardTracker(run_directory) if config.logging.tensorboard else NullTracker(),
        _wandb_tracker(config, run_directory),
    ]


def require_trackers(config: AppConfig) -> None:
    """Raise `KeiseiError` if a tracker of the settings lacks a package or an API key.

    Of several learners only the first one needs them, since it alone makes trackers.
    """
    is_first = not config.parallel.ddp or os.environ.get("RANK", "0") == "0"
    if config.logging.wandb == "off" or not is_first:
        return
    from keisei.training.wandb_tracker import import_wandb, require_key

    wandb = import_wandb()
    if config.logging.wandb == "online":
        require_key(wandb)


def _wandb_tracker(config: AppConfig, run_directory: Path) -> Callback:
    if config.logging.wandb == "off":
        return NullTracker()
    from keisei.training.wandb_tracker import WandbTracker, import_wandb

    return WandbTracker(
        import_wandb(),
        run_directory,
        project=config.logging.wandb_project,
        mode=config.logging.wandb,
        finish_timeout=config.logging.wandb_timeout,
    )

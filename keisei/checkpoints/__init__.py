"""Checkpoints: the state of a run on disk, written atomically and verified when loaded."""

from keisei.checkpoints.rotation import list_checkpoints
from keisei.checkpoints.store import (
    Checkpoint,
    load_checkpoint,
    load_model_weights,
    load_newest,
    save_checkpoint,
)
from keisei.errors import CheckpointError

__all__ = [
    "Checkpoint",
    "CheckpointError",
    "list_checkpoints",
    "load_checkpoint",
    "load_model_weights",
    "load_newest",
    "save_checkpoint",
]

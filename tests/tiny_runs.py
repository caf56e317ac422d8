"""Runs with a few checkpoints that take a second, for tests of what is done with them."""

from pathlib import Path

import torch

from keisei.config import save_config
from keisei.run_files import CONFIG
from tests.tiny import tiny_trainer


def tiny_run(directory: Path, *, checkpoints: int = 3) -> Path:
    """A run that was trained for as many steps, 64 plies each."""
    torch.set_num_threads(1)
    trainer = tiny_trainer(directory, "checkpoint.keep=100")
    for _ in range(checkpoints):
        trainer.train_step()
        trainer.save()
    save_config(trainer.config, directory / CONFIG)
    return directory

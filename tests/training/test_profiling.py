"""``--profile`` leaves a trace and a table of one update behind."""

from pathlib import Path

import pytest
import torch

from keisei.ppo.torch_state import SUMMARY
from keisei.training.run import Profiler
from keisei.training.trainer import Trainer
from tests.tiny import tiny_trainer

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning", "ignore::FutureWarning")
"""torch warns of the profiler's own matters."""


def profiled_trainer(directory: Path, *overrides: str) -> Trainer:
    torch.set_num_threads(1)
    trainer = tiny_trainer(directory, *overrides)
    trainer.bus.callbacks.append(Profiler(trainer.learner.profiler(directory / "profile")))
    return trainer


def test_an_update_is_recorded(tmp_path: Path) -> None:
    assert profiled_trainer(tmp_path).run() == "finished"
    assert "conv" in (tmp_path / "profile" / SUMMARY).read_text(encoding="utf-8")
    assert len(list((tmp_path / "profile").glob("*.json*"))) == 1


def test_a_run_that_is_too_short_is_no_error(tmp_path: Path) -> None:
    assert profiled_trainer(tmp_path, "run.total_timesteps=64").run() == "finished"

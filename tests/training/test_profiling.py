"""``--profile`` leaves a trace and a table of one update behind."""

from pathlib import Path

import pytest
import torch

from keisei.training.profiling import PROFILE, SUMMARY, Profiler
from tests.tiny import tiny_trainer

pytestmark = pytest.mark.filterwarnings("ignore::UserWarning", "ignore::FutureWarning")
"""torch warns of the profiler's own matters."""


def test_an_update_is_recorded(tmp_path: Path) -> None:
    torch.set_num_threads(1)
    trainer = tiny_trainer(tmp_path, callbacks=[Profiler(tmp_path)])
    assert trainer.run() == "finished"
    assert "conv" in (tmp_path / PROFILE / SUMMARY).read_text(encoding="utf-8")
    assert len(list((tmp_path / PROFILE).glob("*.json*"))) == 1


def test_a_run_that_is_too_short_is_no_error(tmp_path: Path) -> None:
    torch.set_num_threads(1)
    trainer = tiny_trainer(tmp_path, "run.total_timesteps=64", callbacks=[Profiler(tmp_path)])
    assert trainer.run() == "finished"

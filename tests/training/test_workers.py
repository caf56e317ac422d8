"""A run whose games are played by workers: counted, shown and resumed like any other."""

from pathlib import Path

import pytest

from keisei import metric_names as names
from keisei.callbacks import Callback, StepEnd
from keisei.checkpoints.store import load_newest
from keisei.run_files import CHECKPOINTS
from tests.tiny import tiny_trainer

WORKERS = ("parallel.num_workers=2", "selfplay.pool_share=0.25", "selfplay.pool_interval=1")


class Steps(Callback):
    """Keeps the events of all steps."""

    def __init__(self) -> None:
        self.events: list[StepEnd] = []

    def on_step_end(self, event: StepEnd) -> None:
        self.events.append(event)


@pytest.mark.slow
def test_a_run_with_workers_and_its_resumption_without(tmp_path: Path, family: str) -> None:
    steps = Steps()
    trainer = tiny_trainer(tmp_path, family, *WORKERS, "run.total_timesteps=384", callbacks=[steps])
    assert trainer.run() == "finished"
    assert trainer.timestep == 384
    assert [event.progress.timestep for event in steps.events] == [64 * n for n in range(1, 7)]
    for event in steps.events:
        metrics = event.metrics
        assert metrics[names.SPS] == pytest.approx(
            64 / sum(metrics.get(name, 0.0) for name in names.TIMES)
        )
        assert names.worker_numbers(metrics) == [0, 1]
        assert metrics[names.POLICY_LAG] <= 1
        assert metrics[names.FAILURES] == 0
        assert event.board is not None
    last = steps.events[-1].metrics
    assert last[names.POOL_SHARE] == 0.25

    checkpoint = load_newest(tmp_path / CHECKPOINTS)
    assert checkpoint is not None
    alone = tiny_trainer(tmp_path, family, "run.total_timesteps=512", "selfplay.pool_share=0.25")
    alone.restore(checkpoint)
    assert alone.timestep == 384
    assert alone.run() == "finished"
    assert alone.timestep == 512

    checkpoint = load_newest(tmp_path / CHECKPOINTS)
    assert checkpoint is not None
    again = tiny_trainer(tmp_path, family, *WORKERS, "run.total_timesteps=576")
    again.restore(checkpoint)
    assert again.run() == "finished"
    assert again.timestep == 576

"""Calibration of values, and its picture in the report."""

import json
from pathlib import Path

import numpy as np
import pytest

from keisei.evaluation.calibration import Calibration, measure_calibration
from keisei.network.predictor import Prediction
from keisei.runs.report import write_report
from keisei.shogi.packed import Positions
from keisei.training.run import start_run
from tests.tiny import tiny_config


class WhiteWins:
    """Any move, and a value in favour of White."""

    def __init__(self, value: float) -> None:
        self.value = value

    def predict(self, positions: Positions) -> Prediction:
        width = positions.legal_actions.shape[1]
        is_legal = np.arange(width) < positions.legal_counts[:, None]
        log_probs = np.where(is_legal, -np.log(positions.legal_counts)[:, None], -np.inf)
        values = np.where(positions.packed["turn"] == 1, self.value, -self.value)
        return Prediction(log_probs.astype(np.float32), values.astype(np.float32))


def test_results_are_those_of_the_side_to_move() -> None:
    """All expectations are for White, so the two bins are the two sides of the same games."""
    config = tiny_config("evaluation.ply_limit=400", "evaluation.temperature=1")
    found = measure_calibration(WhiteWins(0.6), config, seed=3, games=60)
    assert found.games == 60
    black, white = found.bins
    assert (black.expected, white.expected) == pytest.approx((0.2, 0.8), abs=1e-6)
    assert abs(black.positions - white.positions) <= 60
    assert black.positions + white.positions == found.positions
    assert black.scored + white.scored == pytest.approx(1.0, abs=0.02)


def test_the_log_loss_of_those_who_know_and_of_those_who_do_not() -> None:
    random = np.random.default_rng(0)
    chances = random.uniform(0.0, 1.0, 100_000)
    scored = (random.random(100_000) < chances).astype(np.float64)
    right = Calibration.of(chances, scored, games=1)
    assert right.log_loss == pytest.approx(0.5, abs=0.01)  # the mean entropy of these chances
    assert len(right.bins) == 10
    assert all(entry.scored == pytest.approx(entry.expected, abs=0.02) for entry in right.bins)
    assert Calibration.of(np.full(9, 0.5), scored[:9], games=1).log_loss == pytest.approx(np.log(2))
    sure = Calibration.of(np.array([0.0, 1.0]), np.array([1.0, 0.0]), games=1)
    assert 9.0 < sure.log_loss < 10.0


def test_a_run_measures_it_and_its_report_shows_it(tmp_path: Path, family: str) -> None:
    config = tiny_config(family, f"run.root={tmp_path}", "run.name=mine")
    start_run(config)
    run = tmp_path / "mine"
    found = json.loads((run / "calibration.json").read_text("utf-8"))
    lines = [json.loads(line) for line in (run / "metrics.jsonl").read_text("utf-8").splitlines()]
    losses = [
        line["metrics"]["eval/value_log_loss"] for line in lines if line["event"] == "evaluation"
    ]
    assert losses == [found["log_loss"]]
    assert "Are its values right?" in (run / "report.html").read_text("utf-8")
    (run / "calibration.json").write_text("{")
    write_report(run)
    assert "Are its values right?" not in (run / "report.html").read_text("utf-8")

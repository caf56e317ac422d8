"""``keisei bench``: speeds, and a signature that tells whether play has changed."""

import json
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner

from keisei.benchmark.node_speed import POSITIONS, measure_bench
from keisei.cli import app
from keisei.shogi.game import ShogiGame
from keisei.training.run import start_run
from tests.tiny import tiny_config


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    settings = (f"run.root={tmp_path_factory.mktemp('runs')}", "run.name=tiny", "model.type=sparse")
    return start_run(tiny_config(*settings)).run_directory


def test_the_signature_repeats_and_depends_on_the_search(run: Path) -> None:
    first, again, longer = (
        measure_bench(run, nodes=nodes, threads=threads)
        for nodes, threads in ((60, 1), (60, 2), (90, 1))
    )
    assert first.signature == again.signature != longer.signature
    assert list(first.rates) == [1]
    assert list(again.rates) == [1, 2]
    rates = [position.rates[1] for position in first.positions]
    assert min(rates) <= first.rates[1] <= max(rates)
    for sfen, position in zip(POSITIONS, first.positions, strict=True):
        assert ShogiGame(sfen).is_legal(position.move)
        assert np.isfinite(position.value)


def test_the_command_prints_a_table_or_json(run: Path) -> None:
    runner = CliRunner()
    printed = runner.invoke(app, ["bench", str(run), "--nodes", "20", "--threads", "1"])
    assert printed.exit_code == 0, printed.output
    as_json = runner.invoke(app, ["bench", str(run), "--nodes", "20", "--threads", "1", "--json"])
    report = json.loads(as_json.stdout)
    assert f"signature: {report['signature']}" in printed.output
    assert len(report["positions"]) == len(POSITIONS)


def test_two_networks_are_compared(run: Path) -> None:
    options = ["bench", "builtin", "--against", str(run), "--nodes", "20", "--threads", "1"]
    printed = CliRunner().invoke(app, options)
    assert printed.exit_code == 0, printed.output
    assert "times as many nodes/s as" in " ".join(printed.output.split())
    report = json.loads(CliRunner().invoke(app, [*options, "--json"]).stdout)
    assert report["against"]["rates"]["1"] > 0.0
    assert report["against"]["against"] is None

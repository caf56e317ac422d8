"""The benchmarks that only print a table, with tiny numbers. Times are not asserted."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from keisei.benchmark import network_speed, search_speed, weight_sync
from keisei.commands.benchmark import benchmark_app
from keisei.training.run import start_run
from tests.tiny import TINY, tiny_config


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("runs")
    return start_run(tiny_config(f"run.root={root}", "run.name=tiny")).run_directory


def printed(*arguments: str) -> str:
    result = CliRunner().invoke(benchmark_app, arguments)
    assert result.exit_code == 0, result.output
    return result.stdout


@pytest.mark.parametrize(
    "name",
    [
        "env",
        "train",
        "strength",
        "network",
        "search",
        "workers",
        "weights",
        "capacity",
        "dashboard",
    ],
)
def test_every_benchmark_is_a_subcommand(name: str) -> None:
    assert "Usage" in printed(name, "--help")


def test_searches(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search_speed, "GAMES", 8)
    monkeypatch.setattr(search_speed, "TURNS", 1)
    output = printed("search")
    for text in ("alphabeta:3,quiet=4", "mate in 5"):
        assert text in output


def test_torch_next_to_onnxruntime(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("onnxruntime")
    monkeypatch.setattr(network_speed, "POSITIONS", 4)
    monkeypatch.setattr(network_speed, "BATCHES", (1, 4))
    monkeypatch.setattr(network_speed, "REPETITIONS", 1)
    monkeypatch.setattr(network_speed, "SECONDS", 0.0)
    output = printed("network", str(run))
    assert "largest difference" in output
    assert "onnxruntime" in output


def test_packed_weights(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(weight_sync, "TURNS", 1)
    output = printed("weights", str(run))
    assert output.count("bf16 + gzip 1") == 3  # of the run, of a sparse network and of a tower


def test_the_plan_of_a_cluster() -> None:
    settings = [part for setting in TINY for part in ("--set", setting)]
    output = printed("capacity", "--shares", "2", *settings)
    assert "2 work items per update" in output
    assert "workers are enough" in output

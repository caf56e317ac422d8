"""How trials that run side by side share a machine, and how one is resumed."""

from pathlib import Path

import pytest

from keisei.config import load_config
from keisei.sweep import trial
from keisei.sweep.trial import share_of_machine
from tests.tiny import tiny_config


@pytest.fixture(autouse=True)
def eight_cores(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trial, "usable_cpus", lambda: 8)


def test_a_trial_alone_has_the_machine_as_any_run_has() -> None:
    config = load_config("quickstart", ["parallel.num_workers=auto"])
    assert share_of_machine(config, 1) == {"logging.display": "off"}


def test_threads_are_divided() -> None:
    config = load_config("quickstart", ["device.device=cpu"])
    flags = share_of_machine(config, 2)
    assert flags["device.threads"] == 4
    assert flags["evaluation.background"] == "off"
    assert "parallel.num_workers" not in flags


def test_workers_are_divided() -> None:
    config = load_config(
        "quickstart", ["device.device=cpu", "parallel.num_workers=auto", "env.num_games=128"]
    )
    flags = share_of_machine(config, 2)
    assert flags["parallel.num_workers"] == 4
    assert flags["device.threads"] == 1
    assert share_of_machine(config, 3)["parallel.num_workers"] == 2


def test_what_is_set_stays() -> None:
    config = load_config(
        "quickstart",
        ["device.device=cpu", "device.threads=3", "parallel.num_workers=2",
         "evaluation.background=on"],
    )  # fmt: skip
    assert share_of_machine(config, 2) == {"logging.display": "off"}


def test_a_trial_is_resumed_from_another_directory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Its root is spelled differently then, and a run's root cannot change."""

    def train(root: str, timesteps: int) -> int:
        settings = (f"run.root={root}", "run.name=0000", f"run.total_timesteps={timesteps}")
        return trial._train(tiny_config(*settings).model_dump_json().encode())

    assert train(str(tmp_path / "trials"), 64) == 0
    monkeypatch.chdir(tmp_path)
    assert train("trials", 128) == 0, capsys.readouterr().err
    assert '"timestep":128' in (tmp_path / "trials/0000/metrics.jsonl").read_text()

"""Sweeps that Weights & Biases directs, played by a fake: values come in, scores go out."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from keisei.errors import KeiseiError
from keisei.sweep import wandb_agent
from keisei.sweep.trial import TrialError
from keisei.sweep.wandb_agent import (
    AGENT_RUNS,
    METRIC,
    run_agent,
    sweep_definition,
)
from tests.sweep.small_sweeps import small_sweep, stub

__all__ = ["stub"]

Stub = Callable[[str], None]

SPACE: dict[str, Any] = {
    "ppo.entropy": {"low": 0.1, "high": 0.9},
    "ppo.epochs": {"low": 1, "high": 3},
    "ppo.learning_rate": {"low": 1e-4, "high": 1e-2, "log": True},
    "model.policy_width": {"low": 2, "high": 64, "log": True},
    "ppo.gamma": {"low": 0.8, "high": 1.0, "step": 0.1},
    "ppo.target_kl": {"choices": [None, 0.1]},
}
FIXED = {"evaluation.interval": 1}

VALUES = {
    "ppo.entropy": 0.625, "ppo.epochs": 2, "ppo.learning_rate": 0.001,
    "model.policy_width": 16.0, "ppo.gamma": 0.9, "ppo.target_kl": "none",
}  # fmt: skip


class FakeRun:
    def __init__(self, number: int, values: dict[str, Any]) -> None:
        self.id = f"id{number}"
        self.config = values
        self.logged: list[dict[str, float]] = []
        self.exit_code: int | None = None

    def define_metric(self, name: str, step_metric: str | None = None) -> None:
        pass

    def log(self, values: dict[str, float]) -> None:
        self.logged.append(values)

    def finish(self, exit_code: int) -> None:
        self.exit_code = exit_code


class FakeWandb:
    """The package: a sweep that requests some values, one trial after another."""

    def __init__(self, *values: dict[str, Any]) -> None:
        self.values = values
        self.runs: list[FakeRun] = []
        self.sweep_id = ""

    def agent(self, sweep_id: str, function: Callable[[], None], count: int | None) -> None:
        self.sweep_id = sweep_id
        for _ in self.values[:count]:
            function()

    def init(self, **options: Any) -> FakeRun:
        number = len(self.runs)
        self.runs.append(FakeRun(number, self.values[number]))
        return self.runs[-1]


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(wandb_agent, "POLL_INTERVAL", 0.05)


def test_values_become_trials_and_their_scores_are_sent(stub: Stub, tmp_path: Path) -> None:
    wandb = FakeWandb(VALUES, {**VALUES, "ppo.entropy": 0.25}, VALUES)
    sweep = small_sweep(tmp_path, space=SPACE, set=FIXED)
    run_agent(sweep, tmp_path, wandb, sweep_id="me/keisei/abc", count=2)
    assert wandb.sweep_id == "me/keisei/abc"
    assert [run.exit_code for run in wandb.runs] == [0, 0]
    assert [run.logged[-1][METRIC] for run in wandb.runs] == [0.625, 0.25]
    sent = [values["eval/random/score"] for values in wandb.runs[0].logged[:-1]]
    assert sent == [0.625] * 4  # each evaluation once


def test_values_are_merged_into_the_settings(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    started = []

    class Stopped(Exception):  # noqa: N818 -- not an error
        pass

    def note(config: Any, lock: Path, against: Any) -> Any:
        started.append(config)
        raise Stopped

    monkeypatch.setattr(wandb_agent, "TrialProcess", note)
    sweep = small_sweep(tmp_path, space=SPACE, set={**FIXED, "logging.wandb": "online"})
    wandb = FakeWandb(VALUES)
    with pytest.raises(Stopped):
        run_agent(sweep, tmp_path, wandb, sweep_id="abc")
    (config,) = started
    assert config.ppo.entropy == 0.625
    assert config.ppo.target_kl is None
    assert config.model.policy_width == 16
    assert config.logging.wandb == "off"  # the agent sends the curves
    assert config.run.root == str(tmp_path / AGENT_RUNS)
    assert config.run.name == "id0"
    assert wandb.runs[0].exit_code == 1


def test_a_trial_that_fails_fails_there_too(stub: Stub, tmp_path: Path) -> None:
    stub("fail")
    wandb = FakeWandb(VALUES)
    with pytest.raises(TrialError, match="no such network"):
        run_agent(small_sweep(tmp_path, space=SPACE, set=FIXED), tmp_path, wandb, sweep_id="abc")
    assert wandb.runs[0].exit_code == 1


def test_a_sweep_of_another_space_is_refused(tmp_path: Path) -> None:
    wandb = FakeWandb({"ppo.entropy": 0.5})
    with pytest.raises(KeiseiError, match=r"gave no value for ppo\.epochs, .*--wandb-config"):
        run_agent(small_sweep(tmp_path, space=SPACE, set=FIXED), tmp_path, wandb, sweep_id="abc")


def test_the_definition_describes_the_same_space(tmp_path: Path) -> None:
    definition = sweep_definition(small_sweep(tmp_path, space=SPACE, set=FIXED, trials=9), "mine")
    parameters = definition.pop("parameters")
    assert definition == {
        "name": "mine",
        "method": "bayes",
        "metric": {"name": "score", "goal": "maximize"},
        "run_cap": 9,
    }
    assert parameters["ppo.entropy"] == {"distribution": "uniform", "min": 0.1, "max": 0.9}
    assert parameters["ppo.epochs"] == {"distribution": "int_uniform", "min": 1, "max": 3}
    assert parameters["ppo.learning_rate"]["distribution"] == "log_uniform_values"
    assert parameters["model.policy_width"]["distribution"] == "q_log_uniform_values"
    assert parameters["ppo.gamma"] == {"values": pytest.approx([0.8, 0.9, 1.0])}
    assert parameters["ppo.target_kl"] == {"values": ["none", "0.1"]}

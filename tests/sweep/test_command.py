"""``keisei sweep``: what it prints, and what it refuses."""

import builtins
import json
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import yaml

from keisei.commands.sweep import sweep
from keisei.config import ConfigError
from keisei.errors import KeiseiError
from keisei.sweep import check, runner
from keisei.sweep.study import import_optuna
from tests.commands.invoke import invoke
from tests.sweep.small_sweeps import stub, write_space

__all__ = ["stub"]

Stub = Callable[[str], None]

SCORES: dict[str, Any] = {"ppo.entropy": {"low": 0.1, "high": 0.9}}


@pytest.fixture(autouse=True)
def no_networks(monkeypatch: pytest.MonkeyPatch) -> None:
    """That they are tried is tested with the space; here it would take a second each."""
    monkeypatch.setattr(check, "require_set_up", lambda sweep: None)


def test_a_sweep_ends_with_the_best_trial_and_what_to_do_with_it(
    stub: Stub, tmp_path: Path
) -> None:
    space = write_space(tmp_path, space=SCORES)
    result = invoke(sweep, str(space), "--root", str(tmp_path), "--trials", "2")
    assert result.exit_code == 0
    assert "best: trial" in result.stdout
    assert f"keisei train --config {tmp_path / 'space' / 'best.yaml'}" in result.stdout
    assert "importance: ppo.entropy 100 %" in result.stdout


def test_an_interrupted_sweep_explains_how_to_continue(
    stub: Stub, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stub("wait")
    has_room = runner._Runner._has_room

    def interrupt(self: runner._Runner) -> bool:
        """Ctrl-C, once the first trial is running."""
        if self._running and not self.interrupt.is_set:
            signal.raise_signal(signal.SIGINT)
        return has_room(self)

    monkeypatch.setattr(runner._Runner, "_has_room", interrupt)
    space = write_space(tmp_path, space=SCORES)
    result = invoke(sweep, str(space), "--root", str(tmp_path))
    assert result.exit_code == 130
    assert "no trial is complete yet" in result.stdout
    assert "interrupted: the same command resumes the sweep" in result.stdout


def test_a_space_can_be_looked_at_before(tmp_path: Path) -> None:
    space = write_space(tmp_path)
    assert "the search space is valid" in invoke(sweep, str(space), "--check").stdout
    rows = json.loads(invoke(sweep, str(space), "--check", "--json").stdout)
    assert rows[1] == {"field": "ppo.epochs", "values": "1 to 3", "base": 1}


def test_a_bad_space_is_refused_before_anything_is_made(tmp_path: Path) -> None:
    space = write_space(tmp_path, space={"ppo.clip_range": {"low": 0.1, "high": 3}})
    with pytest.raises(ConfigError, match="should be less than 1"):
        invoke(sweep, str(space), "--root", str(tmp_path / "sweeps"))
    assert not (tmp_path / "sweeps").exists()


def test_the_definition_for_weights_and_biases_is_yaml(tmp_path: Path) -> None:
    space = write_space(tmp_path, space=SCORES)
    definition = yaml.safe_load(invoke(sweep, str(space), "--wandb-config").stdout)
    assert definition["parameters"] == {
        "ppo.entropy": {"distribution": "uniform", "min": 0.1, "max": 0.9}
    }


def test_an_agent_is_started_for_the_sweep_that_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[tuple[str, int | None]] = []
    fake = SimpleNamespace(agent=lambda name, function, count: calls.append((name, count)))
    monkeypatch.setitem(sys.modules, "wandb", fake)
    space = write_space(tmp_path)
    where = ("--root", str(tmp_path))
    invoke(sweep, str(space), "--wandb-agent", "me/keisei/abc", *where)
    invoke(sweep, str(space), "--wandb-agent", "me/keisei/abc", "--trials", "7", *where)
    assert calls == [("me/keisei/abc", None), ("me/keisei/abc", 7)]


def test_a_missing_optuna_is_explained(monkeypatch: pytest.MonkeyPatch) -> None:
    real_import = builtins.__import__

    def missing(name: str, *arguments: Any, **options: Any) -> Any:
        if name == "optuna":
            raise ImportError(name)
        return real_import(name, *arguments, **options)

    monkeypatch.setattr(builtins, "__import__", missing)
    with pytest.raises(KeiseiError, match=r"keisei\[sweep\]"):
        import_optuna()

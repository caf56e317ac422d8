"""Sweeps for tests: their trials end in a second, or are not trained at all."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import yaml

from keisei.sweep import trial
from keisei.sweep.check import checked
from keisei.sweep.space import Sweep, load_space
from tests.tiny import TINY

SPACE: dict[str, Any] = {
    "ppo.learning_rate": {"low": 1e-4, "high": 1e-2, "log": True},
    "ppo.epochs": {"low": 1, "high": 3},
}


def document(**changes: Any) -> dict[str, Any]:
    """Return a tiny sweep as the content of its file."""
    fixed: dict[str, Any] = dict(setting.split("=", 1) for setting in TINY)
    fixed |= {"evaluation.interval": 1, "evaluation.games": 2, "evaluation.opponents": ["random"]}
    fixed |= {"logging.tensorboard": False, "logging.sample_games": 0}
    return {
        "trials": 4,
        "objective": {"against": "random"},
        "set": fixed,
        "space": SPACE,
        "pruner": {"kind": "off"},
        **changes,
    }


def write_space(folder: Path, **changes: Any) -> Path:
    """The file of a tiny sweep."""
    path = folder / "space.yaml"
    path.write_text(yaml.safe_dump(document(**changes), sort_keys=False), encoding="utf-8")
    return path


def small_sweep(folder: Path, **changes: Any) -> Sweep:
    """A tiny sweep, ready to be used."""
    return checked(load_space(write_space(folder, **changes)))


@pytest.fixture
def stub(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Replaces the process of trials by `tests.sweep.stub_trial`, which behaves in some way."""
    monkeypatch.setattr(trial, "MODULE", "tests.sweep.stub_trial")
    monkeypatch.setenv("STUB", "")
    return lambda behaviour: monkeypatch.setenv("STUB", behaviour)

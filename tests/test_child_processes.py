"""Processes of our own: started afresh, and this very package."""

import multiprocessing

import pytest

from keisei.errors import KeiseiError
from keisei.system import spawn_context


def test_processes_are_spawned() -> None:
    assert spawn_context().get_start_method() == "spawn"


def test_a_python_that_cannot_spawn_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(method: str) -> None:
        raise ValueError(f"cannot find context for {method!r}")

    monkeypatch.setattr(multiprocessing, "get_context", refuse)
    with pytest.raises(KeiseiError, match="cannot spawn processes: cannot find context"):
        spawn_context()

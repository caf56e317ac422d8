"""Load a script of ``scripts/`` as a module."""

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest

SCRIPTS = Path(__file__).parents[1] / "scripts"


def load_script(name: str, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Run ``scripts/NAME.py`` as a module, which is forgotten after the test."""
    spec = importlib.util.spec_from_file_location(f"keisei_script_{name}", SCRIPTS / f"{name}.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    monkeypatch.setitem(sys.modules, spec.name, module)
    spec.loader.exec_module(module)
    return module

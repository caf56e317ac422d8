"""Python processes that this package starts for work of its own."""

import multiprocessing
import os
from multiprocessing.context import SpawnContext
from pathlib import Path

from keisei.errors import KeiseiError


def spawn_context() -> SpawnContext:
    """How processes are started: afresh, which works on every system and with threads of torch."""
    try:
        return multiprocessing.get_context("spawn")
    except ValueError as error:
        raise KeiseiError(f"this Python cannot spawn processes: {error}") from error


def module_environment(**changes: str) -> dict[str, str]:
    """The environment in which ``python -m keisei...`` is this very package, wherever it lies."""
    package_root = str(Path(__file__).resolve().parents[1])
    paths = [package_root, os.environ.get("PYTHONPATH", "")]
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(path for path in paths if path),
        **changes,
    }

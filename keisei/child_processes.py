"""Python processes that this package starts for work of its own."""

import os
from pathlib import Path


def module_environment(**changes: str) -> dict[str, str]:
    """The environment in which ``python -m keisei...`` is this very package, wherever it lies."""
    package_root = str(Path(__file__).resolve().parents[1])
    paths = [package_root, os.environ.get("PYTHONPATH", "")]
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(path for path in paths if path),
        **changes,
    }

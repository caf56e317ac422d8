"""Fixtures of the soak tests."""

from pathlib import Path

import pytest

from tests.tiny_runs import tiny_run


@pytest.fixture(scope="session")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A directory with one run."""
    directory = tmp_path_factory.mktemp("runs")
    tiny_run(directory / "tiny", checkpoints=2)
    return directory

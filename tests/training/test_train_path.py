"""The way from ``keisei train`` to the first update stays short."""

import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.slow
def test_few_files_between_the_command_and_the_first_update() -> None:
    command = [sys.executable, str(ROOT / "scripts" / "trace.py"), "train", "--list"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    assert "keisei.training.trainer" in done.stdout

"""A disk that fills up ends a run with one line."""

import subprocess
import sys
from pathlib import Path

import pytest

from keisei.system import module_environment
from tests.tiny import TINY

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="no limits on the size of files")

LIMITED = """
import resource, signal, sys
limit = int(sys.argv.pop(1))
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
resource.setrlimit(resource.RLIMIT_FSIZE, (limit, limit))
from keisei.__main__ import main
main()
"""
"""Writing beyond the limit is an error, as on a full disk."""

SETTINGS = (*TINY, "logging.display=plain", "checkpoint.interval=1", "run.name=run")


@pytest.mark.parametrize(
    "limit",
    [500, 12_000, *(pytest.param(more, marks=pytest.mark.soak) for more in (0, 5_000, 40_000))],
)
def test_a_full_disk_is_one_line(limit: int, tmp_path: Path) -> None:
    """The limits end the run where it begins, at its first checkpoint and at its journal."""
    settings = [text for setting in SETTINGS for text in ("--set", setting)]
    result = subprocess.run(
        [sys.executable, "-c", LIMITED, str(limit), "train", *settings,
         "--set", f"run.root={tmp_path}", "--set", "run.total_timesteps=100000000"],
        capture_output=True, text=True, timeout=300, env=module_environment(), check=False,
    )  # fmt: skip
    assert "Traceback" not in result.stderr
    lines = [line for line in result.stderr.splitlines() if line.startswith("error: ")]
    assert len(lines) == 1, result.stderr
    assert "File too large" in lines[0]
    assert result.returncode == 2

"""A run whose terminal or pipe goes away loses nothing."""

import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from keisei.checkpoints.store import load_newest
from keisei.run_files import CHECKPOINTS, LOG, METRICS
from keisei.system import module_environment
from tests.tiny import TINY

SETTINGS = (
    *TINY, "model.type=sparse", "logging.display=plain", "run.total_timesteps=1000000000",
    "checkpoint.interval=0", "run.name=run",
)  # fmt: skip
LIMIT = 300.0
"""Seconds until a run that does not get on is given up, on a busy machine too."""


@pytest.fixture
def unignored_hang_up() -> Iterator[None]:
    """Programs that are started can be hung up, also if pytest runs under nohup.

    They inherit that a signal is ignored; one that is handled has its default effect on them.
    """
    before = signal.signal(signal.SIGHUP, lambda *_: None)
    yield
    signal.signal(signal.SIGHUP, before)


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGHUP")
@pytest.mark.usefixtures("unignored_hang_up")
def test_a_run_outlives_its_output_and_saves_when_it_is_hung_up(tmp_path: Path) -> None:
    settings = [text for setting in SETTINGS for text in ("--set", setting)]
    process = subprocess.Popen(
        [sys.executable, "-m", "keisei", "train", *settings, "--set", f"run.root={tmp_path}"],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        env=module_environment(),
    )
    assert process.stdout is not None
    run = tmp_path / "run"
    journal = run / METRICS
    try:
        assert process.stdout.readline()
        process.stdout.close()  # as `| head -1` does
        deadline = time.monotonic() + LIMIT
        while not journal.exists() or journal.read_text().count('"step"') < 3:
            assert process.poll() is None, (run / LOG).read_text()
            assert time.monotonic() < deadline
            time.sleep(0.05)
        for _ in range(2):  # the kernel and the shell both send it
            process.send_signal(signal.SIGHUP)
            time.sleep(0.01)
        process.wait(LIMIT)
    finally:
        process.kill()
        process.wait()
    checkpoint = load_newest(run / CHECKPOINTS)
    assert checkpoint is not None
    assert checkpoint.update >= 3
    log = (run / LOG).read_text()
    assert "the display is off" in log
    assert "Traceback" not in log
    assert '"reason":"interrupted"' in journal.read_text().splitlines()[-1]

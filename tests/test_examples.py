"""The example script, run as people run it, with tiny numbers."""

import re
import subprocess
import sys
from pathlib import Path

from tests.tiny import TINY

ROOT = Path(__file__).parents[1]
SCRIPT = ROOT / "examples" / "ppo_shogi.py"


def train_py(directory: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, ROOT / "train.py", *arguments],
        cwd=directory,
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )


def test_train_py_trains(tmp_path: Path) -> None:
    settings = (*TINY, "model.type=sparse", "run.total_timesteps=64")
    flags = [part for setting in settings for part in ("--set", setting)]
    process = train_py(tmp_path, "--name", "first", *flags)
    assert process.returncode == 0, process.stderr
    assert "finished: 64 plies" in process.stdout
    assert (tmp_path / "runs" / "first" / "config.json").is_file()


def test_train_py_explains_mistakes(tmp_path: Path) -> None:
    process = train_py(tmp_path, "--config", "missing.yaml")
    assert process.returncode == 2
    assert "missing.yaml" in process.stderr


def test_the_ppo_example_trains_and_reports() -> None:
    options = {
        "--total-plies": 128, "--num-games": 8, "--rollout-plies": 8, "--ply-limit": 16,
        "--minibatch-size": 32, "--channels": 8, "--eval-games": 4, "--eval-interval": 1,
    }  # fmt: skip
    flags = [str(part) for option in options.items() for part in option]
    process = subprocess.run(
        [sys.executable, SCRIPT, *flags], capture_output=True, text=True, timeout=300, check=False
    )
    assert process.returncode == 0, process.stderr
    assert len(re.findall(r"^against random: [\d.]+% won", process.stdout, re.M)) == 3
    losses = re.findall(r"value (\S+)  entropy (\S+)  KL (\S+)", process.stdout)
    assert len(losses) == 2
    assert all(0 <= float(number) < 10 for line in losses for number in line)

"""Runs that are killed again and again, in every phase, lose nothing.

``KEISEI_SOAK_KILLS`` is the number of kills (100), over one process, two workers and two learners.
`tests/selfplay/workers/test_ray_pool.py` kills workers and nodes of Ray.
"""

import json
import os
import random
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from keisei.checkpoints.store import load_newest
from keisei.run_files import CHECKPOINTS, METRICS
from keisei.system import module_environment
from tests.soak.killed_run import PHASES
from tests.soak.summary import note, setting

pytestmark = [
    pytest.mark.soak,
    pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL"),
]
KILLS = int(setting("KILLS", 100))
SHARES = {"one process": 0.5, "two workers": 0.3, "two learners": 0.2}
MAX_DELAY = {"start-up": 1.0, "rollout": 0.05, "learning": 0.03, "saving": 0.02,
             "evaluation": 0.3, "end": 0.3}  # fmt: skip
SETTINGS = {
    "one process": ("run.total_timesteps=1280",),
    "two workers": ("run.total_timesteps=1280", "parallel.num_workers=2"),
    "two learners": ("run.total_timesteps=1280", "parallel.ddp=true"),
}
COMMON = ("model.type=sparse", "evaluation.interval=7", "checkpoint.keep=2")


class KilledRun:
    """A run that is started again after each kill."""

    def __init__(self, setup: str, directory: Path) -> None:
        self.directory = directory
        self._setup = setup
        self.kills: Counter[str] = Counter()

    def session(self, phase: str, delay: float = 0.0) -> int:
        """Start or resume the run; return the exit code."""
        launcher = [sys.executable, "-m"]
        if self._setup == "two learners":
            launcher += ["torch.distributed.run", "--standalone", "--nproc-per-node", "2", "-m"]
        command = [
            *(*launcher, "tests.soak.killed_run", str(self.directory), phase, str(delay)),
            *(*COMMON, *SETTINGS[self._setup]),
        ]
        done = subprocess.run(
            command,
            cwd=Path(__file__).parents[2],
            env=module_environment(OMP_NUM_THREADS="1"),
            capture_output=True,
            timeout=600,
            check=False,
        )
        self.last_output = done.stderr.decode(errors="replace")[-3000:]
        return done.returncode

    def kill(self, phase: str, random: random.Random) -> None:
        """Kill a session in a phase; a run that was over too soon is begun again."""
        while self.session(phase, random.uniform(0.0, MAX_DELAY[phase])) == 0:
            self.directory = self.directory.with_name(f"{self.directory.name}x")
        self.kills[phase] += 1

    def check(self) -> None:
        """Finish the run, and check what it left."""
        assert self.session("none") == 0, self.last_output
        checkpoint = load_newest(self.directory / CHECKPOINTS)
        assert checkpoint is not None
        assert checkpoint.timestep == 1280
        unfinished = [path.name for path in (self.directory / CHECKPOINTS).glob(".*")]
        assert unfinished == []
        assert list(self.directory.glob(".*.tmp")) == []
        lines = [json.loads(line) for line in (self.directory / METRICS).read_text().splitlines()]
        steps = [line["update"] for line in lines if line["event"] == "step"]
        assert steps == sorted(set(steps)), "each update once"
        finals = [line for line in lines if line["event"] == "evaluation"]
        updates = [line["update"] for line in finals]
        assert updates == sorted(set(updates)), "each evaluation once"


@pytest.mark.parametrize("setup", list(SHARES))
def test_nothing_is_lost(setup: str, tmp_path: Path) -> None:
    start = time.monotonic()
    if setup == "two learners":
        pytest.importorskip("torch")
    choice = random.Random(setup)
    run = KilledRun(setup, tmp_path / "killed")
    for number in range(max(1, round(KILLS * SHARES[setup]))):
        run.kill(PHASES[number % len(PHASES)], choice)
    run.check()
    left = [path.name for path in Path("/dev/shm").glob("keisei-*") if not _owner_lives(path)]
    result = f"{dict(run.kills)}; resumed each time, each update once"
    if setup == "one process":
        whole = KilledRun(setup, tmp_path / "whole")
        assert whole.session("none") == 0, whole.last_output
        expected, found = (load_newest(one.directory / CHECKPOINTS) for one in (whole, run))
        assert expected is not None
        assert found is not None
        for name, weight in expected.state["model"].items():
            assert np.array_equal(weight, found.state["model"][name]), name
        result += ", the weights those of a run without kills, bit by bit"
    assert left == [], "shared memory of dead processes"
    note(f"kills, {setup}", f"{run.kills.total()} kills", result, since=start)


def _owner_lives(path: Path) -> bool:
    try:
        os.kill(int(path.name.split("-")[-2]), 0)
    except (ProcessLookupError, ValueError):
        return False
    except PermissionError:
        return True
    return True

"""Runs that are killed again and again, in every phase, lose nothing.

``KEISEI_SOAK_KILLS`` is the number of kills (100), over one process, two workers, two learners and
a Ray cluster, which loses workers and nodes too, and over both families of networks.
"""

import json
import random
import re
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from keisei.checkpoints.store import load_newest
from keisei.run_files import CHECKPOINTS, METRICS
from keisei.system import module_environment
from tests.ray_nodes import Nodes, ray_cluster
from tests.soak.killed_run import PHASES, PROCESSES
from tests.soak.summary import note, setting

pytestmark = [
    pytest.mark.soak,
    pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL"),
]
KILLS = int(setting("KILLS", 100))
SHARES = {"one process": 0.4, "two workers": 0.24, "two learners": 0.16, "Ray": 0.2}
MAX_DELAY = {"start-up": 1.0, "rollout": 0.05, "learning": 0.03, "saving": 0.02,
             "evaluation": 0.3, "end": 0.3}  # fmt: skip
TIMESTEPS = {"one process": 1280, "two workers": 1280, "two learners": 1280, "Ray": 6400}
SETTINGS = {
    "one process": (),
    "two workers": ("parallel.num_workers=2",),
    "two learners": ("parallel.ddp=true",),
    "Ray": ("parallel.backend=ray", "parallel.num_workers=2"),
}
OTHER_VICTIMS = ("worker", "node")
"""Of Ray: the learner that loses them goes on by itself."""

COMMON = ("evaluation.interval=7", "checkpoint.keep=2")
PATIENCE = 600.0


EXPECTED = ("ChildFailedError", "another learner is gone", "gloo/transport")
"""What torchrun raises when a learner was killed, and the other learner for want of the first."""

ERROR = re.compile(r"(?:\[rank\d+\]: )?[A-Za-z_][\w.]*(?:Error|Exception|Exit|Interrupt)(?::|$)")
"""The line that ends a traceback."""


def not_killed(code: int, output: str, *, is_launched: bool) -> str | None:
    """Why a session ended if not by SIGKILL; torchrun says so in words, and exits with 1."""
    if not is_launched:
        return None if code == -signal.SIGKILL else f"ended with {code}"
    if "(SIGKILL)" not in output.rpartition("Root Cause")[2]:
        return f"ended with {code}, not by SIGKILL"
    errors = [line for line in output.splitlines() if ERROR.match(line)]
    others = [line for line in errors if not any(known in line for known in EXPECTED)]
    return others[0] if others else None


class KilledRun:
    """A run that is started again after each kill."""

    def __init__(self, setup: str, directory: Path, *settings: str) -> None:
        self.directory = directory
        self.kills: Counter[str] = Counter()
        self._setup = setup
        self._settings = (
            *(*COMMON, *SETTINGS[setup], *settings),
            f"run.total_timesteps={TIMESTEPS[setup]}",
        )
        self._output = directory.with_suffix(".txt")

    @property
    def last_output(self) -> str:
        return self._output.read_text(errors="replace")[-3000:]

    def start(self, phase: str, delay: float = 0.0) -> "subprocess.Popen[bytes]":
        """Start or resume the run."""
        launcher = [sys.executable, "-m"]
        if self._setup == "two learners":
            launcher += ["torch.distributed.run", "--standalone", "--nproc-per-node", "2", "-m"]
        command = [
            *(*launcher, "tests.soak.killed_run", str(self.directory), phase, str(delay)),
            *self._settings,
        ]
        with self._output.open("wb") as output:
            return subprocess.Popen(
                command,
                cwd=Path(__file__).parents[2],
                env=module_environment(OMP_NUM_THREADS="1", PYTHONFAULTHANDLER="1"),
                stdout=output,
                stderr=output,
            )

    def session(self, phase: str, delay: float = 0.0) -> int:
        """Start or resume the run; return the exit code."""
        process = self.start(phase, delay)
        try:
            return process.wait(PATIENCE)
        finally:
            process.kill()

    def kill(self, phase: str, random: random.Random) -> None:
        """Kill a session in a phase; a run that was over too soon is begun again."""
        while (code := self.session(phase, random.uniform(0.0, MAX_DELAY[phase]))) == 0:
            self.begin_again()
        output = self._output.read_text(errors="replace")
        problem = not_killed(code, output, is_launched=self._setup == "two learners")
        assert problem is None, f"{problem}\n{self.last_output}"
        self.kills[phase] += 1

    def begin_again(self) -> None:
        self.directory = self.directory.with_name(f"{self.directory.name}x")

    def take(self, victim: str, nodes: Nodes) -> None:
        """Kill a worker or a node of Ray in mid-run: the run goes on to its end."""
        for _ in range(5):
            if self._take(victim, nodes):
                break
            self.begin_again()  # it was over too soon
        else:
            pytest.fail(f"no {victim} was found")
        self.kills[victim] += 1
        self.check_journal()
        self.begin_again()

    def _take(self, victim: str, nodes: Nodes) -> bool:
        process = self.start("none")
        deadline = time.monotonic() + PATIENCE
        is_taken = True
        try:
            while len(_steps(self.directory)) < 3:
                assert process.poll() is None, self.last_output
                assert time.monotonic() < deadline, self.last_output
                time.sleep(0.05)
            if victim == "node":
                nodes.kill_one()
                nodes.have(2)
            else:
                is_taken = nodes.kill_worker()
            assert process.wait(PATIENCE) == 0, self.last_output
        finally:
            process.kill()
        return is_taken

    def check(self) -> None:
        """Finish the run, and check what it left."""
        assert self.session("none") == 0, self.last_output
        checkpoint = load_newest(self.directory / CHECKPOINTS)
        assert checkpoint is not None
        assert checkpoint.timestep == TIMESTEPS[self._setup]
        unfinished = [path.name for path in (self.directory / CHECKPOINTS).glob(".*")]
        assert unfinished == []
        assert list(self.directory.glob(".*.tmp")) == []
        self.check_journal()

    def check_journal(self) -> None:
        """Check that no update and no evaluation is missing or there twice."""
        lines = [json.loads(line) for line in (self.directory / METRICS).read_text().splitlines()]
        assert lines[-1]["event"] == "end"
        steps = _steps(self.directory)
        assert steps == list(range(1, len(steps) + 1)), "each update once"
        finals = [line for line in lines if line["event"] == "evaluation"]
        updates = [line["update"] for line in finals]
        assert updates == sorted(set(updates)), "each evaluation once"


TORCHRUN = """\
[rank0]: RuntimeError: [gloo/transport/tcp/pair.cc:537] Read error: Connection reset by peer
[rank0]: keisei.ppo.learner.RankLostError: another learner is gone, so this one stops too
torch.distributed.elastic.multiprocessing.errors.ChildFailedError:
Failures:
Root Cause (first observed failure):
  exitcode  : -9 (pid: 1323)  (SIGKILL)
"""


def test_another_end_is_no_kill() -> None:
    assert not_killed(-signal.SIGKILL, "", is_launched=False) is None
    assert not_killed(1, "", is_launched=False) == "ended with 1"
    assert not_killed(-signal.SIGSEGV, "", is_launched=False) == "ended with -11"
    assert not_killed(1, TORCHRUN, is_launched=True) is None
    assert not_killed(1, TORCHRUN.replace("SIGKILL", "SIGSEGV"), is_launched=True)
    assert not_killed(1, "", is_launched=True)
    assert not_killed(1, f"[rank1]: KeyError: 'games'\n{TORCHRUN}", is_launched=True)


def _steps(directory: Path) -> list[int]:
    """The updates in the journal of a run."""
    path = directory / METRICS
    lines = path.read_bytes().splitlines(keepends=True) if path.exists() else []
    entries = [json.loads(line) for line in lines if line.endswith(b"}\n")]
    return [entry["update"] for entry in entries if entry["event"] == "step"]


@pytest.fixture
def nodes() -> Iterator[Nodes]:
    with ray_cluster() as cluster:
        cluster.have(2)
        yield cluster


@pytest.mark.parametrize("setup", list(SHARES))
def test_nothing_is_lost(
    setup: str, family: str, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    start = time.monotonic()
    settings = [family]
    if setup == "two learners" or "sparse" not in family:
        pytest.importorskip("torch")
    cluster: Nodes | None = request.getfixturevalue("nodes") if setup == "Ray" else None
    if cluster is not None:
        settings.append(f"parallel.ray_address={cluster.address}")
    phases = PHASES if cluster is None else (*OTHER_VICTIMS, *PHASES)
    choice = random.Random(setup)
    run = KilledRun(setup, tmp_path / "killed", *settings)
    for number in range(max(1, round(KILLS * SHARES[setup] / 2))):
        phase = phases[number % len(phases)]
        if cluster is not None and phase in OTHER_VICTIMS:
            run.take(phase, cluster)
        else:
            run.kill(phase, choice)
    run.check()
    left = [name for name in _segments() if name.split("-")[-2] in _processes(tmp_path)]
    counts = ", ".join(f"{phase} {number}" for phase, number in run.kills.items())
    result = f"{counts}; resumed each time, each update once"
    if setup == "one process":
        whole = KilledRun(setup, tmp_path / "whole", *settings)
        assert whole.session("none") == 0, whole.last_output
        expected, found = (load_newest(one.directory / CHECKPOINTS) for one in (whole, run))
        assert expected is not None
        assert found is not None
        for name, weight in expected.state["model"].items():
            assert np.array_equal(weight, found.state["model"][name]), name
        result += ", the weights those of a run without kills, bit by bit"
    assert left == [], "shared memory of dead processes"
    network = family.removeprefix("model.type=")
    note(f"kills, {setup}, {network}", f"{run.kills.total()} kills", result, since=start)


def _segments() -> list[str]:
    """All shared memory of Keisei; tests beside this one have some, too."""
    return [path.name for path in Path("/dev/shm").glob("keisei-*")]


def _processes(directory: Path) -> set[str]:
    """The processes that have trained the runs in a directory, all of which have ended."""
    return {
        process
        for path in directory.glob(f"*{PROCESSES}")
        for process in path.read_text().splitlines()
    }

"""Programs and what they start: the systems on which the tests do not run, simulated.

`test_client` shows on Linux what the trees do for engines.
"""

import ctypes
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

from keisei.usi.process_tree import ExtendedLimits, JobObject, JobTree, MarkedTree
from tests.usi.test_client import STUB, is_alive, linux_only, posix_only, soon

SLEEP = (sys.executable, "-c", "import time; time.sleep(60)")


@posix_only
def test_on_macos_orphans_are_found_by_their_environment() -> None:
    tree = MarkedTree((*STUB, "has-an-orphan"))
    stdin, stdout, stderr = tree.popen.stdin, tree.popen.stdout, tree.popen.stderr
    assert stdin is not None
    assert stdout is not None
    assert stderr is not None
    with stdin, stdout, stderr:
        stdin.write(b"usi\n")
        orphan = int(stdout.readline().split()[-1])
        tree.terminate()
        tree.popen.wait(20)
        assert is_alive(orphan)
        tree.kill()
        tree.close()
    assert soon(lambda: not is_alive(orphan))


class Kernel32:
    """Records the calls; processes in the job are known by their handles, here process ids."""

    def __init__(self, *, refuses: bool = False) -> None:
        self.calls: list[str] = []
        self.flags = 0
        self.jobs: dict[int, list[int]] = {}
        self._refuses = refuses
        for name in ("CreateJobObjectW", "SetInformationJobObject", "AssignProcessToJobObject",
                     "TerminateJobObject", "CloseHandle"):  # fmt: skip
            setattr(self, name, _Function(self, name))

    def create(self, _security: None, _name: None) -> int:
        self.jobs[77] = []
        return 77

    def set_information(self, job: ctypes.c_void_p, kind: int, limits: Any, size: int) -> int:
        assert (job.value, kind, size) == (77, 9, ctypes.sizeof(ExtendedLimits))
        self.flags = limits._obj.BasicLimitInformation.LimitFlags
        return 1

    def assign(self, job: ctypes.c_void_p, process: ctypes.c_void_p) -> int:
        assert job.value == 77
        assert process.value is not None
        assert psutil.Process(process.value).status() == psutil.STATUS_STOPPED, "not yet started"
        if not self._refuses:
            self.jobs[77].append(process.value)
        return int(not self._refuses)

    def end_all(self, job: ctypes.c_void_p, _code: int = 0) -> int:
        assert job.value == 77
        for process in self.jobs[77]:
            with suppress(psutil.NoSuchProcess):
                psutil.Process(process).kill()
        return 1


class _Function:
    """A function of the library, with the attribute that ctypes knows."""

    restype: Any = ctypes.c_int

    def __init__(self, library: Kernel32, name: str) -> None:
        self._library = library
        self._name = name

    def __call__(self, *args: Any) -> int:
        self._library.calls.append(self._name)
        if self._name == "CreateJobObjectW":
            assert self.restype is ctypes.c_void_p, "a handle has 64 bits"
            return self._library.create(*args)
        if self._name == "SetInformationJobObject":
            return self._library.set_information(*args)
        if self._name == "AssignProcessToJobObject":
            return self._library.assign(*args)
        return self._library.end_all(*args)


@pytest.fixture
def suspended(monkeypatch: pytest.MonkeyPatch) -> None:
    """`subprocess.Popen` as on Windows: it takes creation flags, and has a handle."""
    start = subprocess.Popen

    def popen(*args: Any, creationflags: int, **kwargs: Any) -> "subprocess.Popen[bytes]":
        assert creationflags & 0x4, "suspended, so that it is in the job before it starts anything"
        kwargs.pop("start_new_session", None)
        process = start(*args, **kwargs)
        psutil.Process(process.pid).suspend()
        assert soon(lambda: psutil.Process(process.pid).status() == psutil.STATUS_STOPPED)
        setattr(process, "_handle", process.pid)  # noqa: B010
        return process

    monkeypatch.setattr(subprocess, "Popen", popen)


@linux_only
@pytest.mark.usefixtures("suspended")
@pytest.mark.parametrize("refuses", [False, True])
def test_on_windows_a_program_runs_in_a_job_object(
    refuses: bool, caplog: pytest.LogCaptureFixture
) -> None:
    kernel32 = Kernel32(refuses=refuses)
    tree = JobTree(SLEEP, JobObject(kernel32))
    try:
        assert kernel32.flags == 0x2000, "all processes end when the handle is closed"
        assert kernel32.jobs[77] == ([] if refuses else [tree.id])
        assert psutil.Process(tree.id).status() != psutil.STATUS_STOPPED
        assert ("may be left behind" in caplog.text) == refuses
    finally:
        tree.kill()
        tree.popen.wait(20)
        tree.close()
        tree.close()
        for pipe in (tree.popen.stdin, tree.popen.stdout, tree.popen.stderr):
            assert pipe is not None
            pipe.close()
    assert kernel32.calls == [
        *("CreateJobObjectW", "SetInformationJobObject", "AssignProcessToJobObject"),
        *("TerminateJobObject", "CloseHandle"),
    ]


@linux_only
@pytest.mark.usefixtures("suspended")
def test_on_windows_a_program_that_cannot_start_leaves_no_job(tmp_path: Path) -> None:
    kernel32 = Kernel32()
    with pytest.raises(OSError, match="nothing"):
        JobTree((str(tmp_path / "nothing"),), JobObject(kernel32))
    assert kernel32.calls[-1] == "CloseHandle"


@pytest.mark.skipif(sys.maxsize < 2**32, reason="as on 64-bit Windows")
def test_the_limits_of_a_job_have_the_layout_of_windows() -> None:
    assert ctypes.sizeof(ExtendedLimits) == 144
    assert ExtendedLimits.BasicLimitInformation.offset == 0
    assert ExtendedLimits.IoInfo.offset == 64
    assert ExtendedLimits.ProcessMemoryLimit.offset == 112

"""A program together with everything that it starts, ended as a whole.

Child processes may leave the process group of an engine, lose their parent and change their
environment. Linux keeps them below `keeper`, Windows in a job object. macOS has neither: there they
are found by their group and by a variable of their environment, and one that changes both is lost.
"""

import ctypes
import logging
import os
import secrets
import signal
import socket
import subprocess
import sys
from abc import ABC, abstractmethod
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from keisei.system import in_own_group

if TYPE_CHECKING:
    import psutil

logger = logging.getLogger(__name__)

MARK: Final = "KEISEI_ENGINE"
"""Environment variable by which the processes of an engine are known on macOS."""

START_TIMEOUT: Final = 30.0
"""Seconds that `keeper` may take to start the program, on a busy machine."""

KEEPER_TIMEOUT: Final = 15.0
"""Seconds for the end of `keeper`, which gives up earlier on processes that cannot be killed."""

WAIT_TIMEOUT: Final = 1.0
"""Seconds to wait for the end of processes that were killed."""

_KEEPER: Final = Path(__file__).with_name("keeper.py")
_PIPES: Final[dict[str, Any]] = {
    "stdin": subprocess.PIPE,
    "stdout": subprocess.PIPE,
    "stderr": subprocess.PIPE,
    "bufsize": 0,
}


class ProcessTree(ABC):
    """A running program with pipes, and whatever it starts."""

    popen: "subprocess.Popen[bytes]"
    """The process whose pipes and whose end are those of the program."""

    id: int
    """Process id of the program."""

    @abstractmethod
    def terminate(self) -> None:
        """Ask the program to end: by SIGTERM, where that exists."""

    @abstractmethod
    def kill(self) -> None:
        """Kill all of it."""

    @abstractmethod
    def close(self) -> None:
        """Find what is left after the end of the program, and end it."""


def start_tree(command: tuple[str, ...]) -> ProcessTree:
    """Start a program with its arguments; raises `OSError` if that fails."""
    if sys.platform == "win32":
        return JobTree(command, JobObject(ctypes.WinDLL("kernel32", use_last_error=True)))
    elif sys.platform == "linux" and Path("/proc/self/stat").exists():  # it may be hidden
        return KeptTree(command)
    else:
        return MarkedTree(command)


# ---- Linux ----


class KeptTree(ProcessTree):
    """A program below a `keeper`, which ends with it, or when this process does."""

    def __init__(self, command: tuple[str, ...]) -> None:
        self._lifeline, theirs = socket.socketpair()
        try:
            with theirs:
                self.popen = subprocess.Popen(
                    # -I -S: neither the user's environment nor site-packages can slow it down.
                    (sys.executable, "-I", "-S", str(_KEEPER), str(theirs.fileno()), *command),
                    pass_fds=[theirs.fileno()],
                    **_PIPES,
                    **in_own_group(),
                )
        except BaseException:
            self._lifeline.close()
            raise
        try:
            self.id = self._started()
        except BaseException:  # Ctrl-C too
            self.close()
            for pipe in (self.popen.stdin, self.popen.stdout, self.popen.stderr):
                if pipe is not None:
                    pipe.close()
            raise

    def _started(self) -> int:
        """Return the process id of the program, which the keeper tells."""
        self._lifeline.settimeout(START_TIMEOUT)
        words = b""
        try:
            words = self._lifeline.recv(1000)
            return int(words)
        except (OSError, ValueError):
            raise OSError(words.decode(errors="replace") or "its keeper did not start") from None

    def terminate(self) -> None:
        """Send SIGTERM to the group."""
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.popen.pid, signal.SIGTERM)  # the keeper ignores it

    def kill(self) -> None:
        """Let the keeper kill all of it."""
        self._lifeline.close()

    def close(self) -> None:
        """Wait until the keeper has killed all of it."""
        self._lifeline.close()
        _end(self.popen)


def _end(popen: "subprocess.Popen[bytes]") -> None:
    """Wait for the end of a keeper; kill it if it does not answer."""
    try:
        popen.wait(KEEPER_TIMEOUT)
    except subprocess.TimeoutExpired:
        popen.kill()
        popen.wait()


# ---- macOS ----


class MarkedTree(ProcessTree):
    """A program in a group of its own, with a mark that its processes inherit."""

    def __init__(self, command: tuple[str, ...]) -> None:
        self._mark = secrets.token_hex(8)
        self.popen = subprocess.Popen(
            command, env={**os.environ, MARK: self._mark}, **_PIPES, **in_own_group()
        )
        self.id = self.popen.pid

    def terminate(self) -> None:
        """Send SIGTERM to the group."""
        self._signal(signal.SIGTERM)

    def kill(self) -> None:
        """Kill the group."""
        self._signal(signal.SIGKILL)

    def _signal(self, number: int) -> None:
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(self.id, number)

    def close(self) -> None:
        """Kill the processes that have left the group, known by their mark."""
        import psutil

        while True:
            found = [
                process
                for process in psutil.process_iter()
                if process.pid != self.id and self._is_marked(process)
            ]
            for process in found:
                with suppress(psutil.Error):
                    process.kill()
            if not psutil.wait_procs(found, WAIT_TIMEOUT)[0]:  # none there, or none can be ended
                return

    def _is_marked(self, process: "psutil.Process") -> bool:
        import psutil

        with suppress(psutil.Error, OSError):
            is_marked: bool = process.environ().get(MARK) == self._mark
            return is_marked and process.status() != psutil.STATUS_ZOMBIE
        return False


# ---- Windows ----

_CREATE_SUSPENDED: Final = 0x4
_EXTENDED_LIMIT_INFORMATION: Final = 9
_LIMIT_KILL_ON_JOB_CLOSE: Final = 0x2000


class _BasicLimits(ctypes.Structure):
    _fields_ = (
        ("PerProcessUserTimeLimit", ctypes.c_int64),
        ("PerJobUserTimeLimit", ctypes.c_int64),
        ("LimitFlags", ctypes.c_uint32),
        ("MinimumWorkingSetSize", ctypes.c_size_t),
        ("MaximumWorkingSetSize", ctypes.c_size_t),
        ("ActiveProcessLimit", ctypes.c_uint32),
        ("Affinity", ctypes.c_size_t),
        ("PriorityClass", ctypes.c_uint32),
        ("SchedulingClass", ctypes.c_uint32),
    )


class ExtendedLimits(ctypes.Structure):
    """``JOBOBJECT_EXTENDED_LIMIT_INFORMATION``."""

    _fields_ = (
        ("BasicLimitInformation", _BasicLimits),
        ("IoInfo", ctypes.c_uint64 * 6),
        ("ProcessMemoryLimit", ctypes.c_size_t),
        ("JobMemoryLimit", ctypes.c_size_t),
        ("PeakProcessMemoryUsed", ctypes.c_size_t),
        ("PeakJobMemoryUsed", ctypes.c_size_t),
    )


class JobObject:
    """A job object: the processes in it cannot leave it, and end when its handle is closed.

    Windows closes the handle at the latest when this process ends.
    """

    def __init__(self, kernel32: Any) -> None:
        """Make an empty job; `kernel32` is the library of that name."""
        self._kernel32 = kernel32
        kernel32.CreateJobObjectW.restype = ctypes.c_void_p
        self._handle: ctypes.c_void_p | None = ctypes.c_void_p(
            kernel32.CreateJobObjectW(None, None)
        )
        limits = ExtendedLimits()
        limits.BasicLimitInformation.LimitFlags = _LIMIT_KILL_ON_JOB_CLOSE
        kernel32.SetInformationJobObject(
            self._handle,
            _EXTENDED_LIMIT_INFORMATION,
            ctypes.byref(limits),
            ctypes.sizeof(limits),
        )

    def add(self, process: int) -> bool:
        """Put a process into the job by its handle; return whether that was possible."""
        return bool(self._kernel32.AssignProcessToJobObject(self._handle, ctypes.c_void_p(process)))

    def terminate(self) -> None:
        """Kill all processes in the job."""
        if self._handle is not None:
            self._kernel32.TerminateJobObject(self._handle, 1)

    def close(self) -> None:
        """Close the handle, which kills all processes in the job."""
        handle, self._handle = self._handle, None
        if handle is not None:
            self._kernel32.CloseHandle(handle)


class JobTree(ProcessTree):
    """A program in a job object."""

    def __init__(self, command: tuple[str, ...], job: JobObject) -> None:
        import psutil

        self._job = job
        options = in_own_group()
        # It must not start anything before it is in the job.
        options["creationflags"] = options.get("creationflags", 0) | _CREATE_SUSPENDED
        try:
            self.popen = subprocess.Popen(command, **_PIPES, **options)
        except OSError:
            job.close()
            raise
        self.id = self.popen.pid
        if not job.add(int(getattr(self.popen, "_handle"))):  # noqa: B009 - exists on Windows only
            logger.warning("%s: the processes that it starts may be left behind", command[0])
        psutil.Process(self.id).resume()

    def terminate(self) -> None:
        """Kill all of it: Windows has no SIGTERM."""
        self.kill()

    def kill(self) -> None:
        """Kill all processes in the job."""
        self._job.terminate()
        if self.popen.poll() is None:  # where it could not be put into the job
            with suppress(OSError):
                self.popen.kill()

    def close(self) -> None:
        """Close the job, which kills what is left in it."""
        self._job.close()

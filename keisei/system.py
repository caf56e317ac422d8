"""How much memory this process takes."""

import logging
import multiprocessing
import os
import secrets
import signal
import stat
import subprocess
import sys
import threading
import time
from contextlib import suppress
from functools import partial
from multiprocessing.context import SpawnContext
from pathlib import Path
from types import FrameType
from typing import Any, Final, Self

from keisei.errors import KeiseiError

logger = logging.getLogger(__name__)


class FileAccessError(KeiseiError, OSError):
    """A file that cannot be read or written; the message names it and the system's reason."""


def read_bytes(path: Path) -> bytes:
    """What a file holds."""
    try:
        return path.read_bytes()
    except (OSError, ValueError) as error:
        raise FileAccessError(f"cannot read {path}: {_reason(error)}") from error


def write_atomically(path: Path, data: bytes, *, durable: bool = True) -> None:
    """Write a file aside and move it into place: a reader sees the old one or all of the new one.

    If anything fails, a full disk for example, the old file stays as it was. A file that is
    replaced passes its permissions on; a symbolic link stays and what it leads to is replaced.
    Where there is something other than a file, a pipe or ``/dev/stdout``, `data` is written to it.
    What is not `durable` may be lost in a power cut, but need not wait for the disk.
    """
    try:
        target = _replaceable(path)
        if target is None:
            path.write_bytes(data)
        else:
            _replace(target, data, durable=durable)
    except (OSError, ValueError) as error:
        raise FileAccessError(f"cannot write {path}: {_reason(error)}") from error


def make_directory(path: Path) -> None:
    """Make a directory and those it is in, as far as they are not there."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError) as error:
        raise FileAccessError(f"cannot make {path}: {_reason(error)}") from error


def _replaceable(path: Path) -> Path | None:
    """The file that `path` leads to, there already or not; None if that is no ordinary file."""
    target = Path(os.path.realpath(path)) if path.is_symlink() else path
    try:
        is_file = stat.S_ISREG(path.stat().st_mode)
    except FileNotFoundError:
        return target
    # /dev/stdout can lead to a file that has no name any more.
    return target if is_file and target.exists() else None


def _replace(path: Path, data: bytes, *, durable: bool) -> None:
    old_mode = path.stat().st_mode & 0o777 if path.exists() else None
    if old_mode is not None and not os.access(path, os.W_OK):
        # Moving another file over it would succeed, except on Windows.
        raise PermissionError("it is write-protected")
    # The name is short: next to a name of the longest length allowed it has to be allowed too.
    aside = path.with_name(f".{secrets.token_hex(4)}.tmp")
    try:
        mode = 0o666 if old_mode is None else old_mode
        with open(aside, "xb", opener=partial(os.open, mode=mode)) as file:
            file.write(data)
            if durable:
                file.flush()
                os.fsync(file.fileno())
        if old_mode is not None:  # so far it is that without the bits of the umask
            with suppress(OSError):  # some file systems have no permissions
                aside.chmod(old_mode)
        aside.replace(path)
    finally:
        with suppress(OSError):
            aside.unlink()


def _reason(error: OSError | ValueError) -> str:
    """Why the system refuses: a ValueError is a name that it cannot even be asked about."""
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


def spawn_context() -> SpawnContext:
    """How processes are started: afresh, which works on every system and with threads of torch."""
    try:
        return multiprocessing.get_context("spawn")
    except ValueError as error:
        raise KeiseiError(f"this Python cannot spawn processes: {error}") from error


def module_environment(**changes: str) -> dict[str, str]:
    """The environment in which ``python -m keisei...`` is this very package, wherever it lies."""
    package_root = str(Path(__file__).resolve().parents[1])
    paths = [package_root, os.environ.get("PYTHONPATH", "")]
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(path for path in paths if path),
        **changes,
    }


def in_own_group(*, low_priority: bool = False) -> dict[str, Any]:
    """Options of `subprocess.Popen` by which Ctrl-C is for us, who then end the process.

    The low priority is for Windows; elsewhere the process has to lower its own.
    """
    if sys.platform == "win32":
        flags = subprocess.CREATE_NEW_PROCESS_GROUP
        if low_priority:
            flags |= subprocess.BELOW_NORMAL_PRIORITY_CLASS
        return {"creationflags": flags}
    else:
        return {"start_new_session": True}


def leave_signals_to_parent() -> None:
    """For a process that a learner started, and that ends when the learner wants it to.

    Ctrl-C is the learner's to handle, and so are the signals that torchrun sends to all processes
    of a learner.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if hasattr(os, "setsid"):
        os.setsid()


def ended_by(exit_code: int) -> str:
    """What ended a process whose exit code is negative: ``SIGKILL``.

    >>> ended_by(-9)
    'SIGKILL'
    """
    names = {int(number): number.name for number in signal.Signals}
    return names.get(-exit_code, f"signal {-exit_code}")


MAX_OUTPUT_TAIL: Final = 8_000
"""Bytes at the end of a failed child's output in which the reason is looked for."""


class ChildProcess:
    """A ``python -m MODULE`` process whose lifeline is its stdin.

    The child is expected to end when its stdin closes, which happens at the latest when this
    process ends, even by SIGKILL. Its stdout and stderr go to the file `output` rather than to a
    pipe, which would block the child when it is full.
    """

    def __init__(
        self,
        module: str,
        *arguments: str,
        output: Path,
        first_line: bytes = b"",
        threads: int = 1,
        low_priority: bool = False,
    ) -> None:
        """Start the child, with `first_line` on its stdin; raises `OSError` if that fails."""
        self._output = output
        self._deadline = float("inf")
        with output.open("wb") as file:
            self._process = subprocess.Popen(
                (sys.executable, "-m", module, *arguments),
                stdin=subprocess.PIPE,
                stdout=file,
                stderr=file,
                env=module_environment(OMP_NUM_THREADS=str(threads)),
                **in_own_group(low_priority=low_priority),
            )
        if first_line:
            assert self._process.stdin is not None
            with suppress(OSError):  # the child has ended already; its exit code says more
                self._process.stdin.write(first_line)
                self._process.stdin.flush()

    @property
    def pid(self) -> int:
        """Process id of the child."""
        return self._process.pid

    @property
    def exit_code(self) -> int | None:
        """Exit code of the child, negative for a signal; None while it runs."""
        return self._process.poll()

    def request_stop(self, timeout: float) -> None:
        """Close the child's stdin, and return at once; `has_ended` kills it after `timeout` s."""
        self._close_stdin()
        self._deadline = min(self._deadline, time.monotonic() + timeout)

    def has_ended(self) -> bool:
        """Return whether the child has ended; one that overstays its time is killed first."""
        if self._process.poll() is None and time.monotonic() > self._deadline:
            self.kill()
        return self._process.poll() is not None

    def stop(self, timeout: float) -> None:
        """Close the child's stdin, wait up to `timeout` seconds for its end, then kill it."""
        self._close_stdin()
        try:
            self._process.wait(timeout)
        except subprocess.TimeoutExpired:
            self.kill()

    def kill(self) -> None:
        """Kill the child if it still runs, and wait for its end."""
        if self._process.poll() is None:
            self._process.kill()
        self._close_stdin()
        self._process.wait()

    def output_tail(self) -> str:
        """Return the end of what the child wrote to stdout and stderr."""
        tail = read_bytes(self._output)[-MAX_OUTPUT_TAIL:]
        return tail.decode(errors="replace").strip()

    def failure_reason(self) -> str:
        """Return in one line why a child with a non-zero exit code failed."""
        code = self._process.returncode
        if code < 0:
            hint = ": perhaps memory ran out" if ended_by(code) == "SIGKILL" else ""
            return f"its process was ended by {ended_by(code)}{hint}"
        return self.output_tail().rpartition("\n")[2] or f"exit code {code}"

    def _close_stdin(self) -> None:
        assert self._process.stdin is not None
        with suppress(OSError):
            self._process.stdin.close()


class InterruptFlag:
    """Flag set by the first SIGINT or SIGTERM; the second one raises `KeyboardInterrupt`.

    Handles the signals while used as a context. SIGTERM is what torchrun, job schedulers and
    containers send to end a process.
    """

    def __init__(self) -> None:
        self.is_set = False
        self._previous: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM):
                self._previous[number] = signal.signal(number, self._handle)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)
        self._previous = {}

    def _handle(self, signum: int, frame: FrameType | None) -> None:
        if self.is_set:
            raise KeyboardInterrupt
        self.is_set = True
        logger.warning("ending after this update; press Ctrl-C again to stop at once")


_STATUS = Path("/proc/self/status")


def video_megabytes() -> float | None:
    """The most memory that tensors took on the GPU so far, in megabytes; None without a GPU."""
    torch: Any = sys.modules.get("torch")  # where it was never imported, no tensor is on a GPU
    if torch is None or not torch.cuda.is_initialized():
        return None
    return float(torch.cuda.max_memory_allocated() / (1 << 20))


def resident_megabytes() -> float:
    """Resident memory in megabytes: now on Linux, the most so far elsewhere, 0 if unknown."""
    try:
        for line in _STATUS.read_text().splitlines():
            if line.startswith("VmRSS:"):
                return float(line.split()[1]) / 1024
    except OSError:
        pass
    try:
        import resource
    except ImportError:  # Windows has no such module
        return 0.0
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return peak / (1 << 20) if sys.platform == "darwin" else peak / 1024

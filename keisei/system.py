"""The operating system: whole files, processes of our own, the processors and memory they have.

Imports neither torch nor numba: the command line needs this module before it needs those.
"""

import errno
import logging
import multiprocessing
import os
import re
import secrets
import signal
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from multiprocessing.context import SpawnContext
from pathlib import Path
from types import FrameType
from typing import Any, BinaryIO, Final, NamedTuple, NoReturn, Self

from keisei.errors import KeiseiError

logger = logging.getLogger(__name__)


_TEMPORARY: Final = re.compile(r"\.[0-9a-f]{8}\.tmp")
"""Names of files that `write_atomically` has not finished."""


class FileAccessError(KeiseiError, OSError):
    """A file that cannot be read or written; the message names it and the system's reason."""


MAX_FILE_BYTES: Final = 64 << 20
"""Largest file that is read as a whole unless its reader expects larger ones: settings, manifests
and the like have a thousandth of it."""


def read_bytes(path: Path, *, max_size: int = MAX_FILE_BYTES) -> bytes:
    """Return the contents of a file of up to `max_size` bytes; pipes and devices are refused."""
    try:
        status = path.stat()
        if not (stat.S_ISREG(status.st_mode) or stat.S_ISDIR(status.st_mode)):
            raise ValueError("not a regular file")  # a pipe would block, a device never end
        if status.st_size > max_size:
            raise ValueError(f"it has {status.st_size:,} bytes, and up to {max_size:,} are read")
        return path.read_bytes()
    except (OSError, ValueError) as error:
        raise FileAccessError(f"cannot read {path}: {_reason(error)}") from error


def open_regular(path: Path) -> BinaryIO:
    """Open a file for reading; raises `OSError` for anything but a regular file.

    A pipe would block until something is written to it.
    """
    if not stat.S_ISREG(path.stat().st_mode):
        raise OSError(errno.EINVAL, "not a regular file", str(path))
    return path.open("rb")


MAX_NAME_SHOWN: Final = 80
"""Characters of a name that a message about too long a name shows."""


ROOM: Final = 2 * "/files-of-a-run/" + "/and-the-directory-that-holds-all-runs/"
"""Longer than what Keisei adds to the path of a run to reach the files in it."""


def require_possible(path: Path) -> None:
    """Raise `FileAccessError` for a name that no file can have: one that is too long, usually.

    So is that of a directory which leaves no room for the names of a run's files.
    """
    for place in (path, Path(f"{path}{ROOM}")):
        try:
            if stat.S_ISREG(place.stat().st_mode):
                return
        except (OSError, ValueError) as error:
            if isinstance(error, ValueError) or error.errno == errno.ENAMETOOLONG:
                raise FileAccessError(f"{_shortened(path)}: {_reason(error)}") from error


def _shortened(path: Path) -> str:
    name = str(path)
    return name if len(name) <= MAX_NAME_SHOWN else f"{name[:MAX_NAME_SHOWN]}..."


def write_atomically(path: Path, data: bytes, *, durable: bool = True) -> None:
    """Write to a temporary file and move it into place: readers see the old file or the new one.

    If anything fails, a full disk for example, the old file stays as it was. The new file takes
    over the permissions of the old one; a symbolic link stays, and its target is replaced. Anything
    other than a regular file, such as a pipe or ``/dev/stdout``, is written to directly. Without
    `durable` the write does not wait for the disk and may be lost in a power cut.
    """
    try:
        target = _replaceable(path)
        if target is None:
            path.write_bytes(data)
        else:
            _replace(target, data, durable=durable)
    except (OSError, ValueError) as error:
        raise FileAccessError(f"cannot write {path}: {_reason(error)}") from error


def remove_temporaries(directory: Path) -> None:
    """Remove the temporary files that a killed process left; no process may write there now."""
    for path in directory.glob(".*.tmp"):
        if _TEMPORARY.fullmatch(path.name):
            with suppress(OSError):
                path.unlink()


def make_directory(path: Path) -> None:
    """Create a directory and its parents where they are missing."""
    try:
        path.mkdir(parents=True, exist_ok=True)
    except (OSError, ValueError) as error:
        raise FileAccessError(f"cannot make {path}: {_reason(error)}") from error


def _replaceable(path: Path) -> Path | None:
    """Return the file that `path` resolves to, existing or not; None if not a regular file."""
    target = Path(os.path.realpath(path)) if path.is_symlink() else path
    try:
        is_file = stat.S_ISREG(path.stat().st_mode)
    except FileNotFoundError:
        return target
    # /dev/stdout can resolve to a file that has been deleted and has no name any more.
    return target if is_file and target.exists() else None


def _replace(path: Path, data: bytes, *, durable: bool) -> None:
    old_mode = path.stat().st_mode & 0o777 if path.exists() else None
    if old_mode is not None and not os.access(path, os.W_OK):
        # Except on Windows, moving another file over it would succeed.
        raise PermissionError("it is write-protected")
    # A short name: it must be valid even where `path` has the longest name that is allowed.
    temporary = path.with_name(f".{secrets.token_hex(4)}.tmp")  # as `_TEMPORARY` says
    try:
        mode = 0o666 if old_mode is None else old_mode
        with open(temporary, "xb", opener=partial(os.open, mode=mode)) as file:
            file.write(data)
            if durable:
                file.flush()
                os.fsync(file.fileno())
        if old_mode is not None:  # opening the file applied the umask
            with suppress(OSError):  # some file systems have no permissions
                temporary.chmod(old_mode)
        temporary.replace(path)
    finally:
        with suppress(OSError):
            temporary.unlink()


def _reason(error: OSError | ValueError) -> str:
    """Return the system's reason; a ValueError is our own, or a name that no file can have."""
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


def spawn_context() -> SpawnContext:
    """Return the ``spawn`` context: it works on every system, and next to the threads of torch."""
    try:
        return multiprocessing.get_context("spawn")
    except ValueError as error:
        raise KeiseiError(f"this Python cannot spawn processes: {error}") from error


def leave(code: int) -> NoReturn:
    """End the process at once, when all is written, without ending Python in order.

    That takes seconds on a busy machine, and threads of libraries may abort it.
    """
    logging.shutdown()
    for stream in (sys.stdout, sys.stderr):
        if stream is not None:  # as in a GUI on Windows
            with suppress(OSError, ValueError):  # closed, or nobody reads it any more
                stream.flush()
    os._exit(code)


def module_environment(**changes: str) -> dict[str, str]:
    """Return an environment in which ``python -m keisei...`` runs this copy of the package."""
    package_root = str(Path(__file__).resolve().parents[1])
    paths = [package_root, os.environ.get("PYTHONPATH", "")]
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(path for path in paths if path),
        **changes,
    }


class ModuleResult(NamedTuple):
    """What a ``python -m ...`` process has left."""

    output: str
    failure: str
    """Why it failed, in one line; empty if it did not."""


def run_module(*arguments: str, timeout: float) -> ModuleResult:
    """Run ``python -m ARGUMENTS`` of this copy of the package; it may crash or hang.

    It is ended after `timeout` seconds.
    """
    try:
        result = subprocess.run(
            (sys.executable, "-m", *arguments),
            capture_output=True,
            text=True,
            timeout=timeout,
            env=module_environment(),
            check=False,
        )
    except subprocess.TimeoutExpired:
        return ModuleResult("", f"no result after {timeout:g} s")
    failure = ""
    if result.returncode < 0:
        failure = f"ended by {ended_by(result.returncode)}"
    elif result.returncode > 0:
        lines = result.stderr.strip().splitlines()
        failure = lines[-1] if lines else f"exit code {result.returncode}"
    return ModuleResult(result.stdout, failure)


def in_own_group(*, low_priority: bool = False) -> dict[str, Any]:
    """Return options of `subprocess.Popen` that put a process into a group of its own.

    Ctrl-C then interrupts only this process, which ends the other one, and the group can be
    signalled as a whole. `low_priority` works on Windows; elsewhere the process calls `os.nice`.
    """
    if sys.platform == "win32":
        flags = subprocess.CREATE_NEW_PROCESS_GROUP
        if low_priority:
            flags |= subprocess.BELOW_NORMAL_PRIORITY_CLASS
        return {"creationflags": flags}
    else:
        return {"start_new_session": True}


@contextmanager
def ctrl_c_held_back() -> Iterator[None]:
    """Hold back Ctrl-C while a process is started that calls `leave_signals_to_parent`.

    The new process inherits that, so that Ctrl-C does not end it before its first line. Windows
    has no such thing: there it may end with a traceback.
    """
    if not hasattr(signal, "pthread_sigmask"):
        yield
        return
    from multiprocessing.resource_tracker import ensure_running

    ensure_running()  # when the first process starts it, it would let Ctrl-C through again
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


def leave_signals_to_parent() -> None:
    """Ignore Ctrl-C and leave the process group, in a process that its parent ends.

    Ctrl-C is handled by the learner, and so are the signals that torchrun sends to the learner's
    process group.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})  # see `ctrl_c_held_back`
    if hasattr(os, "setsid"):
        os.setsid()


def ended_by(exit_code: int) -> str:
    """Return the name of the signal that ended a process with a negative exit code.

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
        self._is_killed = False
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
            self._is_killed = True
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
            is_foreign_kill = ended_by(code) == "SIGKILL" and not self._is_killed
            hint = ": perhaps memory ran out" if is_foreign_kill else ""
            return f"its process was ended by {ended_by(code)}{hint}"
        return self.output_tail().rpartition("\n")[2] or f"exit code {code}"

    def _close_stdin(self) -> None:
        assert self._process.stdin is not None
        with suppress(OSError):
            self._process.stdin.close()


class InterruptFlag:
    """Flag set by the first SIGINT, SIGTERM or SIGHUP; a second Ctrl-C does what it did before.

    Handles the signals while used as a context. SIGTERM is what torchrun, job schedulers and
    containers send to end a process, SIGHUP what a terminal sends when it is closed, often twice.
    """

    def __init__(self) -> None:
        self.is_set = False
        self.on_set: Callable[[], None] = lambda: None
        """Called by the signal handler, in the main thread, when the flag is set."""

        self._previous: dict[signal.Signals, Any] = {}

    def __enter__(self) -> Self:
        if threading.current_thread() is threading.main_thread():
            for number in (signal.SIGINT, signal.SIGTERM, *_hang_up()):
                self._previous[number] = signal.signal(number, self._handle)
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)
        self._previous = {}

    def _handle(self, signum: int, frame: FrameType | None) -> None:
        if not self.is_set:
            self.is_set = True
            logger.warning("ending after this update; press Ctrl-C again to stop at once")
            self.on_set()
        elif signum == signal.SIGINT:
            before = self._previous[signal.SIGINT]
            if not callable(before):  # ignored, or handled outside of Python
                raise KeyboardInterrupt
            before(signum, frame)


def _hang_up() -> list[signal.Signals]:
    """Return SIGHUP where it exists, unless it is ignored: ``nohup`` has a run outlive a logout."""
    if sys.platform == "win32" or signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        return []
    return [signal.SIGHUP]


def usable_cpus() -> int:
    """Return the number of processors this process may run on; schedulers may allow only some."""
    if sys.platform == "linux":
        return len(os.sched_getaffinity(0))
    else:
        return os.cpu_count() or 1


def resident_megabytes() -> float:
    """Return the resident memory of this process in MiB."""
    import psutil

    return float(psutil.Process().memory_info().rss) / (1 << 20)


def physical_memory() -> int:
    """Return the memory of this machine in bytes."""
    import psutil

    return int(psutil.virtual_memory().total)


def free_memory_share() -> float:
    """Return the share of this machine's memory that is available, 0 to 1."""
    import psutil

    memory = psutil.virtual_memory()
    return float(memory.available) / float(memory.total)

"""The operating system: whole files, processes of our own, processors and memory.

Imports neither torch nor numba: the command line needs this module before it needs those.
"""

import multiprocessing
import os
import secrets
import signal
import stat
import subprocess
import sys
from contextlib import suppress
from functools import partial
from multiprocessing.context import SpawnContext
from pathlib import Path
from typing import Any

from keisei.errors import KeiseiError


class FileAccessError(KeiseiError, OSError):
    """A file that cannot be read or written; the message names it and the system's reason."""


def read_bytes(path: Path) -> bytes:
    """Return the contents of a file."""
    try:
        return path.read_bytes()
    except (OSError, ValueError) as error:
        raise FileAccessError(f"cannot read {path}: {_reason(error)}") from error


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
    temporary = path.with_name(f".{secrets.token_hex(4)}.tmp")
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
    """Return the system's reason; a ValueError means a name that no file can have."""
    return (error.strerror if isinstance(error, OSError) else None) or str(error)


def spawn_context() -> SpawnContext:
    """Return the ``spawn`` context: it works on every system, and next to the threads of torch."""
    try:
        return multiprocessing.get_context("spawn")
    except ValueError as error:
        raise KeiseiError(f"this Python cannot spawn processes: {error}") from error


def module_environment(**changes: str) -> dict[str, str]:
    """Return an environment in which ``python -m keisei...`` runs this copy of the package."""
    package_root = str(Path(__file__).resolve().parents[1])
    paths = [package_root, os.environ.get("PYTHONPATH", "")]
    return {
        **os.environ,
        "PYTHONPATH": os.pathsep.join(path for path in paths if path),
        **changes,
    }


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


def leave_signals_to_parent() -> None:
    """Ignore Ctrl-C and leave the process group, in a process that its parent ends.

    Ctrl-C is handled by the learner, and so are the signals that torchrun sends to the learner's
    process group.
    """
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    if hasattr(os, "setsid"):
        os.setsid()


def ended_by(exit_code: int) -> str:
    """Return the name of the signal that ended a process with a negative exit code.

    >>> ended_by(-9)
    'SIGKILL'
    """
    names = {int(number): number.name for number in signal.Signals}
    return names.get(-exit_code, f"signal {-exit_code}")


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


def video_megabytes() -> float | None:
    """Return the peak GPU memory of this process's tensors in MiB; None if no GPU is in use."""
    torch = sys.modules.get("torch")  # without torch there are no tensors
    if torch is None or not torch.cuda.is_initialized():
        return None
    return float(torch.cuda.max_memory_allocated()) / (1 << 20)

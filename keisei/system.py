"""How much memory this process takes."""

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

import torch

from keisei.errors import KeiseiError


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


_STATUS = Path("/proc/self/status")


def video_megabytes() -> float | None:
    """The most memory that tensors took on the GPU so far, in megabytes; None without a GPU."""
    if not torch.cuda.is_initialized():  # type: ignore[no-untyped-call]
        return None
    return torch.cuda.max_memory_allocated() / (1 << 20)


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

"""Reading and writing whole files: never half of one, and errors that name the file."""

import os
import secrets
import stat
from contextlib import suppress
from functools import partial
from pathlib import Path

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

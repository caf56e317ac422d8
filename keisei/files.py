"""Reading and writing whole files: never half of one, and errors that name the file."""

import os
import secrets
from pathlib import Path

from keisei.errors import KeiseiError


class FileAccessError(KeiseiError, OSError):
    """A file that cannot be read or written; the message names it and the system's reason."""


def read_bytes(path: Path) -> bytes:
    """What a file holds."""
    try:
        return path.read_bytes()
    except OSError as error:
        raise FileAccessError(f"cannot read {path}: {error.strerror or error}") from error


def write_atomically(path: Path, data: bytes) -> None:
    """Write a file aside and move it into place: a reader sees the old one or all of the new one.

    If anything fails, a full disk for example, the old file stays as it was.
    """
    aside = path.with_name(f".{path.name}.{secrets.token_hex(4)}.tmp")
    try:
        with aside.open("wb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        aside.replace(path)
    except OSError as error:
        raise FileAccessError(f"cannot write {path}: {error.strerror or error}") from error
    finally:
        aside.unlink(missing_ok=True)

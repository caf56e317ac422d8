"""The manifest of a checkpoint: its files, with their sizes and SHA-256 sums, and who made it."""

import hashlib
import json
import platform
import stat
from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Final, Literal

import numpy as np
import safetensors
from pydantic import BaseModel, ConfigDict, NonNegativeInt

from keisei import __version__
from keisei.errors import CheckpointError

FORMAT: Final = "keisei-checkpoint"
FORMAT_VERSION: Final = 2
"""Raised by each change that older readers can't cope with."""

MANIFEST: Final = "manifest.json"
CONFIG: Final = "config.json"
STRUCTURE: Final = "state.json"
TENSORS: Final = "state.safetensors"
WEIGHTS: Final = {"model": "weights.safetensors", "ema": "ema.safetensors"}
"""The entries of the state that have a file of their own, for programs that want only those."""


class FileRecord(BaseModel):
    """What the manifest says of a file."""

    model_config = ConfigDict(frozen=True, strict=True)

    size: NonNegativeInt
    sha256: str

    @classmethod
    def of(cls, data: bytes) -> "FileRecord":
        """The record of a file with these contents."""
        return cls(size=len(data), sha256=hashlib.sha256(data).hexdigest())


class Manifest(BaseModel):
    """The list of a checkpoint's files, and what is worth knowing without opening them."""

    model_config = ConfigDict(frozen=True, strict=True)

    format: Literal["keisei-checkpoint"] = FORMAT
    version: Literal[2] = FORMAT_VERSION
    timestep: NonNegativeInt
    update: NonNegativeInt
    created: str
    """Date and time in UTC."""

    versions: dict[str, str]
    """Of Keisei, Python and the libraries that wrote the checkpoint."""

    files: dict[str, FileRecord]


def new_manifest(timestep: int, update: int, contents: Mapping[str, bytes]) -> Manifest:
    """The manifest of the files in `contents`, by their names."""
    return Manifest(
        timestep=timestep,
        update=update,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        versions={
            "keisei": __version__,
            "python": platform.python_version(),
            "numpy": np.__version__,
            "safetensors": safetensors.__version__,
        },
        files={name: FileRecord.of(data) for name, data in contents.items()},
    )


def manifest_bytes(manifest: Manifest) -> bytes:
    """The file, which ends with a SHA-256 of its own other fields."""
    fields = manifest.model_dump()
    return json.dumps({**fields, "sha256": _digest(fields)}, indent=2).encode("ascii")


def read_manifest(directory: Path) -> Manifest:
    """The manifest of a checkpoint, which is intact and of this format."""
    path = directory / MANIFEST
    try:
        fields = json.loads(_read(path))
        if not isinstance(fields, dict) or fields.get("format") != FORMAT:
            raise CheckpointError(f"{path}: not the manifest of a checkpoint")
        if (version := fields.get("version")) != FORMAT_VERSION:
            raise CheckpointError(
                f"{path}: format version {version}, but this Keisei ({__version__}) "
                f"reads version {FORMAT_VERSION}"
            )
        if fields.pop("sha256", None) != _digest(fields):
            raise CheckpointError(f"{path}: changed since it was written: its own SHA-256 differs")
        manifest = Manifest.model_validate(fields)
    except (ValueError, RecursionError) as error:
        raise CheckpointError(f"{path}: not a valid manifest: {error}") from error
    if unknown := manifest.files.keys() - {CONFIG, STRUCTURE, TENSORS, *WEIGHTS.values()}:
        raise CheckpointError(f"{path}: files that no checkpoint has: {sorted(unknown)}")
    return manifest


def read_verified(directory: Path, name: str, manifest: Manifest) -> bytes:
    """A file, once its size and SHA-256 have turned out to be those in the manifest."""
    if name not in manifest.files:
        raise CheckpointError(f"{directory / MANIFEST}: it does not list {name}")
    path, expected = directory / name, manifest.files[name]
    check_size(path, expected.size)
    data = _read(path)
    if FileRecord.of(data) != expected:
        raise CheckpointError(f"{path}: changed since it was written: its SHA-256 differs")
    return data


def check_size(path: Path, expected: int) -> None:
    """Refuse a file that is missing, truncated or too long."""
    if (size := _size(path)) != expected:
        how = "truncated" if size < expected else "too long"
        raise CheckpointError(f"{path}: {how}: {size} bytes instead of {expected}")


def _size(path: Path) -> int:
    try:
        status = path.stat()
    except (FileNotFoundError, NotADirectoryError):
        raise CheckpointError(f"{path}: the file is missing") from None
    except OSError as error:
        raise CheckpointError(f"{path}: cannot be read: {error.strerror or error}") from error
    if not stat.S_ISREG(status.st_mode):  # a foreign checkpoint may link to an endless device
        raise CheckpointError(f"{path}: not a regular file")
    return status.st_size


def _read(path: Path) -> bytes:
    _size(path)
    try:
        return path.read_bytes()
    except OSError as error:
        raise CheckpointError(f"{path}: cannot be read: {error.strerror or error}") from error


def _digest(fields: Mapping[str, Any]) -> str:
    """SHA-256 of fields as compact JSON with sorted keys."""
    compact = json.dumps(fields, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(compact.encode("ascii")).hexdigest()

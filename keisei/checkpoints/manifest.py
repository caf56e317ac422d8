"""The manifest of a checkpoint: its files with sizes and SHA-256 sums, and its versions."""

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
"""Raised by each release that writes what older ones cannot read."""

MAX_SIZES: Final = {"manifest.json": 1 << 20, "config.json": 1 << 20, "state.json": 1 << 28}
"""Largest files of text in bytes. That of the state names each array, also those of the earlier
networks that a run plays: a thousand large ones take 100 MB."""

MANIFEST: Final = "manifest.json"
CONFIG: Final = "config.json"
STRUCTURE: Final = "state.json"
TENSORS: Final = "state.safetensors"
WEIGHTS: Final = {"model": "weights.safetensors", "ema": "ema.safetensors"}
"""Files of the state's entries with weights, for programs that need only those."""

TENSOR_FILES: Final = (TENSORS, *WEIGHTS.values())

MAX_HEADER: Final = 16 << 20
"""Largest header of a file with tensors in bytes. It names more than 100,000 of them, of a thousand
opponents with a hundred each; a stranger's file with many more would take seconds and gigabytes."""


class FileRecord(BaseModel):
    """Size and SHA-256 of a file."""

    model_config = ConfigDict(frozen=True, strict=True)

    size: NonNegativeInt
    sha256: str

    @classmethod
    def of(cls, data: bytes) -> "FileRecord":
        """Return the record of a file with these contents."""
        return cls(size=len(data), sha256=hashlib.sha256(data).hexdigest())


class Manifest(BaseModel):
    """Files of a checkpoint, and what is worth knowing without opening them."""

    model_config = ConfigDict(frozen=True, strict=True)

    format: Literal["keisei-checkpoint"] = FORMAT
    version: Literal[2] = FORMAT_VERSION
    timestep: NonNegativeInt
    update: NonNegativeInt
    created: str
    """Date and time in UTC, in ISO 8601."""

    versions: dict[str, str]
    """Versions of Keisei, Python and the libraries that wrote the checkpoint."""

    files: dict[str, FileRecord]


def new_manifest(timestep: int, update: int, contents: Mapping[str, bytes]) -> Manifest:
    """Return the manifest of files, given their contents by name."""
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
    """Return the manifest as a JSON file, with a SHA-256 of its own fields at the end."""
    fields = manifest.model_dump()
    return json.dumps({**fields, "sha256": _digest(fields)}, indent=2).encode("ascii")


def read_manifest(directory: Path) -> Manifest:
    """Read the manifest of a checkpoint.

    Raises:
        CheckpointError: It is missing, changed, or of another format version.
    """
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
        raise CheckpointError(f"{path}: lists unknown files: {sorted(unknown)}")
    return manifest


def read_verified(directory: Path, name: str, manifest: Manifest) -> bytes:
    """Read a file and verify that its size and SHA-256 are those in the manifest.

    Raises:
        CheckpointError: They are not, or the file is missing.
    """
    if name not in manifest.files:
        raise CheckpointError(f"{directory / MANIFEST}: does not list {name}")
    path, expected = directory / name, manifest.files[name]
    check_size(path, expected.size)
    if name in TENSOR_FILES:
        check_header(path)
    data = _read(path)
    if FileRecord.of(data) != expected:
        raise CheckpointError(f"{path}: changed since it was written: its SHA-256 differs")
    return data


def check_size(path: Path, expected: int) -> None:
    """Raise `CheckpointError` if a file is missing, truncated or too long."""
    if (size := _size(path)) != expected:
        how = "truncated" if size < expected else "too long"
        raise CheckpointError(f"{path}: {how}: {size} bytes instead of {expected}")


def check_header(path: Path) -> dict[str, Any]:
    """Return the entries of a safetensors file by name, without reading its tensors.

    Raises:
        CheckpointError: It has no valid header, or a size that its header does not explain.
    """
    size = _size(path)
    try:
        with path.open("rb") as file:
            length = int.from_bytes(file.read(8), "little")
            header = json.loads(file.read(length)) if 2 <= length <= min(MAX_HEADER, size) else None
        if not isinstance(header, dict):
            raise ValueError(f"its header has {length:,} bytes, at most {MAX_HEADER:,} are read")
        header.pop("__metadata__", None)
        ends = [entry["data_offsets"][1] for entry in header.values()]
        if size != 8 + length + max(ends, default=0):
            raise ValueError("its size differs from that in its header")
    except OSError as error:
        raise CheckpointError(f"{path}: cannot be read: {error.strerror or error}") from error
    except (ValueError, TypeError, LookupError, RecursionError) as error:
        raise CheckpointError(f"{path}: not a valid safetensors file: {error}") from error
    return header


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
    if (size := _size(path)) > MAX_SIZES.get(path.name, size):
        raise CheckpointError(
            f"{path}: {size:,} bytes, but at most {MAX_SIZES[path.name]:,} are read"
        )
    try:
        return path.read_bytes()
    except OSError as error:
        raise CheckpointError(f"{path}: cannot be read: {error.strerror or error}") from error


def _digest(fields: Mapping[str, Any]) -> str:
    """SHA-256 of fields written as compact JSON with sorted keys."""
    compact = json.dumps(fields, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(compact.encode("ascii")).hexdigest()

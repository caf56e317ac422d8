"""Saving and loading of checkpoints, each a directory that is complete or does not exist.

A checkpoint is written under another name, flushed to disk, and renamed; ``docs/checkpoints.md``
describes its files. Sizes and SHA-256 sums are verified before anything is used, and nothing is
pickled: loading a checkpoint of a stranger runs no code.
"""

import errno
import json
import logging
import os
import secrets
import shutil
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import safetensors
import safetensors.numpy

from keisei.checkpoints.manifest import (
    CONFIG,
    MANIFEST,
    STRUCTURE,
    TENSORS,
    WEIGHTS,
    Manifest,
    check_header,
    check_size,
    manifest_bytes,
    new_manifest,
    read_manifest,
    read_verified,
)
from keisei.checkpoints.rotation import UNFINISHED, free_name, list_checkpoints, remove_outdated
from keisei.checkpoints.state_tree import (
    State,
    check_bools,
    flatten,
    is_plain_array,
    unflatten,
)
from keisei.errors import CheckpointError

__all__ = [
    "Checkpoint",
    "CheckpointError",
    "State",
    "list_checkpoints",
    "load_checkpoint",
    "load_model_weights",
    "load_newest",
    "save_checkpoint",
]

logger = logging.getLogger(__name__)


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """A checkpoint that was loaded."""

    path: Path
    timestep: int
    update: int
    state: dict[str, Any] = field(repr=False)
    """The state that was saved, with dictionaries for all mappings."""

    config_json: str = field(repr=False)


def save_checkpoint(
    directory: Path,
    *,
    timestep: int,
    update: int,
    state: State,
    config_json: str,
    keep: int,
) -> Path:
    """Write a checkpoint, then remove all but the `keep` latest ones.

    If this fails half-way, because the disk is full or the process is killed, the checkpoints that
    existed before are unchanged, and no incomplete one is among them.

    Args:
        directory: of the run's checkpoints; made if it does not exist.
        timestep: plies played. Names the checkpoint; the highest timestep is the newest.
        update: updates of the network so far.
        state: anything that `keisei.checkpoints.state_tree` can store. The entries ``model`` and
            ``ema``, if present, are the weights of networks: named arrays.
        config_json: the effective configuration, stored unchanged.
        keep: number of checkpoints to keep, including this one.

    Returns:
        The directory of the checkpoint.

    Raises:
        CheckpointError: The file system refused to write.
        TypeError: The state holds something that cannot be stored; nothing has been written.
    """
    if timestep < 0 or update < 0 or keep < 1:
        raise ValueError(f"{timestep=} and {update=} must not be negative, {keep=} at least 1")
    contents = _contents(state, config_json)
    contents[MANIFEST] = manifest_bytes(new_manifest(timestep, update, contents))

    aside = directory / f"{UNFINISHED}{timestep:012d}-{secrets.token_hex(4)}"
    try:
        directory.mkdir(parents=True, exist_ok=True)
        aside.mkdir()
        for name, data in contents.items():
            _write_to_disk(aside / name, data)
        _sync_directory(aside)
        path = free_name(directory, timestep)
        aside.rename(path)
        _sync_directory(directory)
    except OSError as error:
        raise CheckpointError(
            f"cannot write a checkpoint of step {timestep} into {directory}: "
            f"{error.strerror or error}; the earlier checkpoints are unchanged"
        ) from error
    finally:
        shutil.rmtree(aside, ignore_errors=True)  # gone already, unless something failed

    remove_outdated(directory, newest=path, keep=keep)
    return path


def load_checkpoint(path: Path) -> Checkpoint:
    """Load a checkpoint after verifying the size and SHA-256 of every file.

    Raises:
        CheckpointError: A file is missing, truncated, changed, or of another format version.
    """
    manifest = read_manifest(path)
    names = {CONFIG, STRUCTURE, TENSORS} | manifest.files.keys()
    contents = {name: read_verified(path, name, manifest) for name in sorted(names)}
    tensors = {
        name: _parse_tensors(path / name, contents[name])
        for name in (TENSORS, *WEIGHTS.values())
        if name in contents
    }
    try:
        structure = json.loads(contents[STRUCTURE])
        state = {
            key: unflatten(tree, tensors[WEIGHTS.get(key, TENSORS)])
            for key, tree in structure.items()
        }
    except (ValueError, KeyError, AttributeError, RecursionError) as error:
        raise CheckpointError(f"{path / STRUCTURE}: not a valid state: {error}") from error
    return Checkpoint(
        path=path,
        timestep=manifest.timestep,
        update=manifest.update,
        state=state,
        config_json=_parse_text(path / CONFIG, contents[CONFIG]),
    )


def load_newest(directory: Path) -> Checkpoint | None:
    """Load the newest good checkpoint of a directory; None if it has no checkpoint at all.

    Bad ones are skipped, each with a warning that names the problem.

    Raises:
        CheckpointError: All checkpoints are bad.
    """
    reasons = []
    for path in reversed(list_checkpoints(directory)):
        try:
            return load_checkpoint(path)
        except CheckpointError as error:
            logger.warning("skipping a bad checkpoint: %s", error)
            reasons.append(f"\n  {error}")
    if reasons:
        raise CheckpointError(f"no good checkpoint in {directory}:{''.join(reasons)}")
    return None


def load_config_json(path: Path) -> str:
    """Load the configuration of a checkpoint; raises `CheckpointError`."""
    return _parse_text(path / CONFIG, read_verified(path, CONFIG, read_manifest(path)))


def weight_shapes(path: Path) -> dict[str, tuple[int, ...]]:
    """Return the shapes of the weights to play with, from the header of their file alone.

    Raises:
        CheckpointError: There is no such file, or its header is damaged.
    """
    manifest = read_manifest(path)
    name = playing_weights(manifest)
    if name not in manifest.files:
        raise CheckpointError(f"{path / MANIFEST}: does not list {name}")
    check_size(path / name, manifest.files[name].size)
    header = check_header(path / name)
    try:
        return {name: tuple(map(int, entry["shape"])) for name, entry in header.items()}
    except (ValueError, TypeError, LookupError) as error:
        raise CheckpointError(f"{path}: a damaged header of weights: {error}") from error


def load_model_weights(path: Path) -> tuple[dict[str, npt.NDArray[Any]], str]:
    """Load the weights to play with, the averaged ones if there are any, and the configuration.

    No other files are read.

    Raises:
        CheckpointError: A file is missing, truncated, changed, or of another format version.
    """
    manifest = read_manifest(path)
    name = playing_weights(manifest)
    weights = _parse_tensors(path / name, read_verified(path, name, manifest))
    return weights, _parse_text(path / CONFIG, read_verified(path, CONFIG, manifest))


def playing_weights(manifest: Manifest) -> str:
    """Name of the file with the weights to play with: the averaged ones if there are any."""
    return WEIGHTS["ema"] if WEIGHTS["ema"] in manifest.files else WEIGHTS["model"]


def _contents(state: State, config_json: str) -> dict[str, bytes]:
    """Return the contents of all files except the manifest, by name."""
    structure: dict[str, Any] = {}
    tensors: dict[str, dict[str, npt.NDArray[Any]]] = {TENSORS: {}}
    for key, value in state.items():
        if not isinstance(key, str):
            raise TypeError(f"the state's own keys must be str, not {key!r}")
        if key not in WEIGHTS:
            structure[key] = flatten(value, tensors[TENSORS], (key,))
            continue
        if not isinstance(value, Mapping) or not all(
            isinstance(name, str) and is_plain_array(weight) for name, weight in value.items()
        ):
            raise TypeError(f"{key}: not weights, which are named arrays of plain numbers")
        tensors[WEIGHTS[key]] = {}
        structure[key] = flatten(value, tensors[WEIGHTS[key]])
    return {
        **{name: _tensor_bytes(named) for name, named in tensors.items()},
        STRUCTURE: json.dumps(structure, allow_nan=False).encode("ascii"),
        CONFIG: config_json.encode("utf-8"),
    }


def _tensor_bytes(tensors: Mapping[str, npt.NDArray[Any]]) -> bytes:
    return safetensors.numpy.save(
        {name: np.array(array, order="C") for name, array in tensors.items()},
        metadata={"format": "pt"},
    )


def _parse_tensors(path: Path, data: bytes) -> dict[str, npt.NDArray[Any]]:
    try:
        tensors = safetensors.numpy.load(data)
        for array in tensors.values():
            check_bools(array)
    except (safetensors.SafetensorError, KeyError, ValueError, RuntimeError) as error:
        raise CheckpointError(f"{path}: not a valid safetensors file: {error}") from error
    return tensors


def _parse_text(path: Path, data: bytes) -> str:
    try:
        return data.decode("utf-8")
    except UnicodeDecodeError as error:
        raise CheckpointError(f"{path}: not UTF-8: {error}") from error


def _write_to_disk(path: Path, data: bytes) -> None:
    with path.open("xb") as file:
        file.write(data)
        file.flush()
        os.fsync(file.fileno())


def _sync_directory(path: Path) -> None:
    """Flush the entries of a directory to disk, where the system can do that."""
    if os.name == "nt":
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.ENOTSUP):  # as on some network file systems
            raise
    finally:
        os.close(handle)

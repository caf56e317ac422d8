"""Checkpoints: the whole state of a run in a directory that is complete or not there at all.

A checkpoint is written aside, forced to disk, and renamed into place; ``docs/checkpoints.md``
describes its files. Sizes and SHA-256 sums are verified before anything is used, and nothing in it
is pickled: loading a file of someone else runs no code.
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
    """What was saved."""

    path: Path
    timestep: int
    update: int
    state: dict[str, Any] = field(repr=False)
    """As it was handed in, with dictionaries for all mappings."""

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
    """Write a checkpoint, then remove those that are older than the newest `keep`.

    Whatever happens on the way, a full disk or the end of the process, the checkpoints that were
    there before stay as they were, and an unfinished one is never among them.

    Args:
        directory: Where the run's checkpoints are; made if it doesn't exist.
        timestep: Plies played. Names the checkpoint; the highest timestep is the newest.
        update: Updates of the network so far.
        state: What `keisei.checkpoints.state_tree` can store. The entries ``model`` and ``ema``, if
            present, are all weights of a network.
        config_json: The effective configuration; kept as it is.
        keep: How many checkpoints stay, this one included.

    Returns:
        The checkpoint's directory.

    Raises:
        CheckpointError: The system refused to write.
        TypeError: The state holds something that can't be stored; nothing has been written.
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
            f"{error.strerror or error}; the earlier checkpoints are untouched"
        ) from error
    finally:
        shutil.rmtree(aside, ignore_errors=True)  # gone already, unless something failed

    remove_outdated(directory, newest=path, keep=keep)
    return path


def load_checkpoint(path: Path) -> Checkpoint:
    """Read a checkpoint, after verifying the size and SHA-256 of every file.

    Raises:
        CheckpointError: A file is missing, truncated, changed, or of a format unknown here.
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
    """The newest good checkpoint of a run; None if there is no checkpoint at all.

    Bad ones are skipped, each with a warning that says what is wrong with it.

    Raises:
        CheckpointError: There are checkpoints, but not one of them is good.
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


def load_model_weights(path: Path) -> tuple[dict[str, npt.NDArray[Any]], str]:
    """The network of a checkpoint, its averaged weights if there are any, and the configuration.

    No other files are read.

    Raises:
        CheckpointError: A file is missing, truncated, changed, or of a format unknown here.
    """
    manifest = read_manifest(path)
    name = playing_weights(manifest)
    weights = _parse_tensors(path / name, read_verified(path, name, manifest))
    return weights, _parse_text(path / CONFIG, read_verified(path, CONFIG, manifest))


def playing_weights(manifest: Manifest) -> str:
    """The file with the weights to play with: the averaged ones, if there are any."""
    return WEIGHTS["ema"] if WEIGHTS["ema"] in manifest.files else WEIGHTS["model"]


def _contents(state: State, config_json: str) -> dict[str, bytes]:
    """Every file but the manifest."""
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
            raise TypeError(f"{key}: not the weights of a network, which are named arrays")
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
    """Force the names in a directory to disk, where the system can do that."""
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

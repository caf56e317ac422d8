"""Programs that settings may start: those named on the command line or in the user's own list.

Settings travel: a stranger's YAML file, the ``config.json`` of a copied run, the file of a sweep. A
USI engine among its opponents is a command that would run, and a Ray cluster sends objects whose
unpickling runs code. So both need the consent of the user who starts the training.
"""

import json
import os
from collections.abc import Collection, Iterator
from pathlib import Path
from typing import Final

import platformdirs

from keisei.config_schema import AppConfig
from keisei.errors import KeiseiError
from keisei.system import read_bytes

FILE_NAME: Final = "allowed-programs.txt"
"""Name of the user's list: a player spec or ``ray HOST:PORT`` per line; ``#`` begins a comment."""

LOCAL_RAY: Final = ("", "auto")
"""Addresses of Ray that are on this machine."""


class ProgramNotAllowedError(KeiseiError):
    """Settings name a program that the user has not named; the message says how to allow it."""


def is_engine(spec: str) -> bool:
    """Return whether a player spec starts a program."""
    return spec.partition(",")[0].strip().partition(":")[0] == "usi"


def allowed_file() -> Path:
    """Return the path of the user's list, which may not exist."""
    return platformdirs.user_config_path("keisei", appauthor=False) / FILE_NAME


def require_allowed(config: AppConfig, named: Collection[str] = ()) -> None:
    """Raise `ProgramNotAllowedError` unless the user knows the programs that settings name.

    Args:
        config: the settings.
        named: texts that stand on the command line: engines and addresses among them are allowed.
    """
    missing = [
        (program, override)
        for program, text, override in _programs(config)
        if text not in named and program not in _listed()
    ]
    if missing:
        program, override = missing[0]
        raise ProgramNotAllowedError(
            f"the settings name a program that you have not named: {program}. If you trust it, "
            f"name it on the command line too, --set '{override}', or write it as a line into "
            f"{allowed_file()}"
        )


def _programs(config: AppConfig) -> Iterator[tuple[str, str, str]]:
    """Yield each program as a line of the list, its text in the settings, and the override."""
    opponents = config.evaluation.opponents
    for spec in opponents:
        if is_engine(spec):
            texts = json.dumps(opponents, ensure_ascii=False)
            yield spec, spec, f"evaluation.opponents={texts}"
    address = config.parallel.ray_address
    if config.parallel.backend == "ray" and address not in LOCAL_RAY:
        yield f"ray {address}", address, f"parallel.ray_address={address}"


def _listed() -> frozenset[str]:
    """Return the lines of the user's list; raises `KeiseiError` if others can write to it."""
    path = allowed_file()
    if not path.is_file():
        return frozenset()
    if hasattr(os, "getuid"):
        status = path.stat()
        if status.st_uid not in (os.getuid(), 0) or status.st_mode & 0o022:
            raise ProgramNotAllowedError(
                f"{path} allows programs, so only you may write to it: chmod go-w, and own it"
            )
    lines = read_bytes(path).decode("utf-8-sig", "replace").splitlines()
    return frozenset(line.strip() for line in lines if line.strip() and line[0] != "#")

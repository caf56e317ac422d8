"""Commands to a run that is training: pause, resume, reset its games.

They are files in the run's directory, so they reach a run on any system, and on another machine
that shares the directory. The run looks for them once a second.
"""

import time
from pathlib import Path
from typing import Literal

from keisei.errors import KeiseiError
from keisei.run_files import HEARTBEAT, PAUSE, RESET, require_own
from keisei.runs.heartbeat import parse_heartbeat
from keisei.system import FileAccessError, read_bytes

RunCommand = Literal["pause", "resume", "reset"]


def is_paused(run_directory: Path) -> bool:
    """Return whether a run was asked to pause."""
    return (run_directory / PAUSE).exists()


def is_training(run_directory: Path) -> bool:
    """Return whether a run is alive: its heartbeat is fresh."""
    try:
        heartbeat = parse_heartbeat(read_bytes(run_directory / HEARTBEAT))
    except FileAccessError:
        return False
    return heartbeat is not None and heartbeat.is_fresh(time.time())


def control_run(run_directory: Path, command: RunCommand) -> str:
    """Give a run a command; returns what will happen, in one sentence.

    Raises:
        KeiseiError: The run is not training or not paused, or its directory cannot be written.
    """
    name = run_directory.name
    if command == "resume":
        if not is_paused(run_directory):
            raise KeiseiError(f"{name} is not paused")
    elif not is_training(run_directory):
        raise KeiseiError(f"{name} is not training, so there is nothing to {command}")
    try:
        if command == "resume":
            (run_directory / PAUSE).unlink(missing_ok=True)
            return f"{name} continues"
        sign = run_directory / (PAUSE if command == "pause" else RESET)
        require_own(sign, run_directory)
        sign.touch()
    except OSError as error:
        raise KeiseiError(f"cannot {command} {name}: {error.strerror or error}") from error
    if command == "pause":
        return f"{name} pauses until it is resumed"
    return f"{name} abandons its games in progress and begins new ones"

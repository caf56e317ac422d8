"""Python processes that this package starts for work of its own."""

import multiprocessing
import os
import signal
import subprocess
import sys
from multiprocessing.context import SpawnContext
from pathlib import Path
from typing import Any

from keisei.errors import KeiseiError


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

"""The process that trains one trial: ``python -m keisei.sweep.trial_main LOCK``.

Its settings come as one line of JSON on stdin, which then stays open. When it closes, because the
trial is pruned, the sweep ends or was killed, the run ends after its update as by Ctrl-C, with a
checkpoint to go on from. If that takes too long, it ends at once.

`LOCK` is shared by all trials: who wants to go on with the sweep waits for the last of them.
"""

import _thread
import os
import signal
import sys
import threading
import time
from pathlib import Path
from typing import Final

from keisei.sweep.locks import FileLock

GRACE_SECONDS: Final = 60.0
"""How long the update under way may take once the run is to end."""

LAST_SECONDS: Final = 5.0
"""How long the run may take to close its engines after that."""

USER_ERROR: Final = 2
STOPPED: Final = 130
"""Exit code of a run that was asked to end."""

_LOCK_PATIENCE: Final = 60.0


def main() -> None:
    """Train the run that stdin asks for, from its newest checkpoint if it has one."""
    # Those who started a sweep in the background may have it ignore SIGINT, and so would we.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    with FileLock(Path(sys.argv[1]), shared=True, patience=_LOCK_PATIENCE):
        settings = _first_line()
        threading.Thread(target=_end_with_stdin, daemon=True).start()
        try:
            sys.exit(_train(settings))
        except KeyboardInterrupt:
            sys.exit(STOPPED)


def _train(settings: bytes) -> int:
    # Imported this late: it takes seconds, in which stdin is watched already.
    from keisei.checkpoints.rotation import list_checkpoints
    from keisei.config_schema import AppConfig
    from keisei.errors import KeiseiError
    from keisei.run_files import CHECKPOINTS
    from keisei.training.run import resume_run, start_run

    config = AppConfig.model_validate_json(settings)
    run_directory = Path(config.run.root) / config.run.name
    try:
        if list_checkpoints(run_directory / CHECKPOINTS):
            summary = resume_run(config, run_directory)
        else:
            summary = start_run(config)
    except KeiseiError as error:
        sys.stderr.write(f"{error}\n")
        return USER_ERROR
    return STOPPED if summary.reason == "interrupted" else 0


def _first_line() -> bytes:
    line = bytearray()
    while not line.endswith(b"\n"):
        # Not by sys.stdin, which would read ahead and hold a lock that the end of Python needs.
        if not (chunk := os.read(0, 65_536)):
            sys.exit(STOPPED)
        line += chunk
    return bytes(line)


def _end_with_stdin() -> None:
    while os.read(0, 1):
        pass
    _thread.interrupt_main()
    time.sleep(GRACE_SECONDS)
    _thread.interrupt_main()  # the second Ctrl-C: the run ends at once
    time.sleep(LAST_SECONDS)
    os._exit(STOPPED)


if __name__ == "__main__":
    main()

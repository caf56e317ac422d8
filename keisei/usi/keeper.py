"""Keeps a USI engine and everything that it starts: a program of its own, on Linux.

``python -I -S keeper.py DESCRIPTOR PROGRAM [ARGUMENT ...]`` starts PROGRAM with its own pipes. The
kernel hands orphans to the nearest ancestor that asks for them (``PR_SET_CHILD_SUBREAPER``), so
whatever a descendant does, a session of its own and an empty environment included, it stays a
descendant of this process. When PROGRAM ends, or the socket DESCRIPTOR is closed, which happens at
the latest when Keisei ends, also by SIGKILL, all are killed. Then this process ends as PROGRAM did.

A process of its own does this because Keisei cannot: it has other children, and reaping whatever it
adopts would take the exit codes from those who wait for them. It imports nothing but the standard
library, and starts in less than 0.1 s.
"""

import ctypes
import os
import resource
import select
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

_PR_SET_CHILD_SUBREAPER = 36
_MAX_SECONDS = 10.0
"""A process that cannot be killed, one of another user for example, is given up after this time."""


def main() -> None:
    """Start the program, wait for its end or for that of Keisei, and leave nothing behind."""
    descriptor, command = int(sys.argv[1]), sys.argv[2:]
    ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
    wakeup, waker = os.pipe()
    os.set_blocking(waker, False)
    signal.set_wakeup_fd(waker, warn_on_full_buffer=False)
    # Those sent to the group are meant for the program, for which a handler counts as none.
    for number in (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: None)
    try:
        program = subprocess.Popen(command).pid
    except OSError as error:
        _tell(descriptor, str(error).encode())
        return
    _tell(descriptor, b"%d" % program)
    for pipe in (0, 1, 2):  # the other ends must see when the program closes its own
        os.close(pipe)
    status = None
    while status is None:
        ready, _, _ = select.select([descriptor, wakeup], [], [])
        if wakeup in ready:
            os.read(wakeup, 4096)
        ended = _reap()
        status = ended.get(program)
        if descriptor in ready and status is None:
            status = _kill_all().get(program, signal.SIGKILL.value)
    _kill_all()
    _end_like(status)


def _tell(descriptor: int, words: bytes) -> None:
    with suppress(OSError):  # Keisei may have ended meanwhile
        os.write(descriptor, words)


def _reap() -> dict[int, int]:
    """Return the wait status of all children that have ended, by process id."""
    ended = {}
    with suppress(ChildProcessError):
        while True:
            process, status = os.waitpid(-1, os.WNOHANG)
            if process == 0:
                break
            ended[process] = status
    return ended


def _kill_all() -> dict[int, int]:
    """Kill all descendants, and return their wait status.

    Killing the children is enough: theirs become our own, and are killed in the next round.
    """
    ended: dict[int, int] = {}
    deadline = time.monotonic() + _MAX_SECONDS
    while (children := _children()) and time.monotonic() < deadline:
        for process in children:
            with suppress(OSError):
                os.kill(process, signal.SIGKILL)
        ended |= _reap()
        time.sleep(0.002)
    return ended


def _children() -> list[int]:
    """Return the process ids of all children, those that have ended included."""
    own = str(os.getpid())
    found = []
    for directory in Path("/proc").iterdir():
        if directory.name.isdigit():
            with suppress(OSError):
                # The name of a program, in parentheses, may contain anything.
                fields = (directory / "stat").read_bytes().rpartition(b")")[2].split()
                if fields[1].decode() == own:
                    found.append(int(directory.name))
    return found


def _end_like(status: int) -> None:
    """End with the same exit code, or by the same signal."""
    code = os.waitstatus_to_exitcode(status)
    if code >= 0:
        os._exit(code)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    if code not in (-signal.SIGKILL, -signal.SIGSTOP):
        signal.signal(-code, signal.SIG_DFL)
    os.kill(os.getpid(), -code)
    os._exit(1)  # unreachable


if __name__ == "__main__":
    main()

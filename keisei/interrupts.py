"""Ctrl-C on the command line: no traceback, never lost, and the second one ends at once.

`like_ctrl_c` does the same with the signals that job schedulers and closed terminals send.

Imports next to nothing: Ctrl-C must be handled while the rest of the program is being imported.
"""

import os
import signal
import stat
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType
from typing import Final

INTERRUPTED: Final = 130
"""Exit code after Ctrl-C, as in shells."""

RETRY_INTERVAL: Final = 0.05
"""Seconds until a `KeyboardInterrupt` that was lost is raised again."""

_SHOW_CURSOR: Final = b"\x1b[?25h"


class CtrlC:
    """Handler of SIGINT: the first one raises `KeyboardInterrupt`, the second ends the process.

    Python drops an exception that a signal handler raises while a C library runs a callback, and
    Numba has such callbacks while it loads kernels. A dropped `KeyboardInterrupt` is raised again
    until it arrives.
    """

    def __init__(self) -> None:
        self.was_pressed = False
        self.was_lost = False
        """Whether a `KeyboardInterrupt` was dropped inside a callback."""

        self._is_retry = False

    def install(self) -> None:
        """Handle SIGINT from now on, unless it is ignored, as in background jobs of scripts."""
        if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
            return
        signal.signal(signal.SIGINT, self._handle)
        sys.unraisablehook = self._retry_if_lost

    def _handle(self, signum: int, frame: FrameType | None) -> None:
        is_retry, self._is_retry = self._is_retry, False
        if self.was_pressed and not is_retry:
            _restore_terminal()
            os._exit(INTERRUPTED)
        self.was_pressed = True
        raise KeyboardInterrupt

    def _retry_if_lost(self, lost: "sys.UnraisableHookArgs") -> None:
        if lost.exc_type is not KeyboardInterrupt:
            sys.__unraisablehook__(lost)
            return
        from threading import Timer

        self.was_lost = True
        retry = Timer(RETRY_INTERVAL, self._raise_again)
        retry.daemon = True
        retry.start()

    def _raise_again(self) -> None:
        from _thread import interrupt_main

        self._is_retry = True
        interrupt_main()


@contextmanager
def like_ctrl_c() -> Iterator[None]:
    """Have SIGTERM and SIGHUP do what Ctrl-C does, in this context or decorated function.

    Only the first of them, which ends the program: a terminal that is closed may send SIGHUP twice.
    It stays ignored where it is, as under ``nohup``.
    """
    was_sent = False

    def handle(signum: int, frame: FrameType | None) -> None:
        nonlocal was_sent
        if was_sent:
            return
        was_sent = True
        _discard_lost_output()
        press = signal.getsignal(signal.SIGINT)
        if callable(press):
            press(signal.SIGINT, frame)
        raise KeyboardInterrupt  # Ctrl-C itself is ignored, as in background jobs of scripts

    before = {}
    for name in ("SIGTERM", "SIGHUP"):  # Windows has no SIGHUP
        number = getattr(signal, name, None)
        if number is not None and signal.getsignal(number) is not signal.SIG_IGN:
            try:
                before[number] = signal.signal(number, handle)
            except ValueError:  # another thread than the main one handles no signals
                break
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, signal.SIG_IGN if was_sent else handler)


def _discard_lost_output() -> None:
    """Discard what is written to a terminal that is closed, where writing is an error."""
    for number in (1, 2):
        try:
            if stat.S_ISCHR(os.fstat(number).st_mode) and not os.isatty(number):
                null = os.open(os.devnull, os.O_WRONLY)
                os.dup2(null, number)
                os.close(null)
        except OSError:  # closed by whoever started the program
            continue


def _restore_terminal() -> None:
    """Show the cursor again, which a live display hides."""
    try:
        if os.name == "posix" and os.isatty(2):
            os.write(2, _SHOW_CURSOR)
    except OSError:  # the terminal has gone
        pass

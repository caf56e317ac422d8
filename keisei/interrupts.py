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
"""Seconds until a handler is called again where no exception was raised, or where it was lost."""

_CALLED_FROM_C: Final = "numpy"
"""Package whose Python code Numba calls from C, without looking at what it raises."""

_SHOW_CURSOR: Final = b"\x1b[?25h"


class CtrlC:
    """Handler of SIGINT: the first one raises `KeyboardInterrupt`, the second ends the process.

    Python drops an exception that a signal handler raises while a C library runs a callback, and
    Numba has such callbacks while it loads kernels. A dropped `KeyboardInterrupt` is raised again
    until it arrives. Where nobody would be told of it (`_would_be_lost`), it is raised later.
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
        if _would_be_lost(frame):
            _call_again(signum)
            return
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
        self.was_lost = self._is_retry = True
        _call_again(signal.SIGINT)


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
        if _would_be_lost(frame):
            _call_again(signum)
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


def _would_be_lost(frame: FrameType | None) -> bool:
    """Return whether an exception that is raised in this frame may disappear without a word.

    At each call of a kernel, Numba asks record arrays for an attribute that they don't have, and
    clears whatever their `__getattribute__` raises.
    """
    while frame is not None:
        if str(frame.f_globals.get("__name__", "")).partition(".")[0] == _CALLED_FROM_C:
            return True
        frame = frame.f_back
    return False


def _call_again(signum: int) -> None:
    """Have the handler of a signal called again, a moment later."""
    from threading import Timer

    timer = Timer(RETRY_INTERVAL, _send_to_main_thread, (signum,))
    timer.daemon = True
    timer.start()


def _send_to_main_thread(signum: int) -> None:
    """Have the main thread handle a signal."""
    if hasattr(signal, "pthread_kill"):  # ends a wait, too
        from threading import main_thread

        identity = main_thread().ident
        assert identity is not None
        signal.pthread_kill(identity, signum)
    else:
        from _thread import interrupt_main

        interrupt_main(signal.Signals(signum))


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

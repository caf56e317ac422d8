"""Ctrl-C on the command line: no traceback, never lost, and the second one ends at once.

Imports next to nothing: Ctrl-C must be handled while the rest of the program is being imported.
"""

import os
import signal
import sys
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


def _restore_terminal() -> None:
    """Show the cursor again, which a live display hides."""
    try:
        if os.name == "posix" and os.isatty(2):
            os.write(2, _SHOW_CURSOR)
    except OSError:  # the terminal has gone
        pass

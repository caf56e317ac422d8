"""The ``keisei`` command, also as ``python -m keisei``."""

import sys

from keisei.interrupts import INTERRUPTED, CtrlC


def main() -> None:
    """Run the command line; Ctrl-C ends it with one line, however early it comes."""
    ctrl_c = CtrlC()
    ctrl_c.install()
    try:
        from keisei import cli  # takes a second on a busy machine

        cli.main()
    except BaseException as error:
        is_interrupt = isinstance(error, KeyboardInterrupt) or (
            isinstance(error, SystemExit) and error.code == INTERRUPTED
        )
        # What a callback could not finish can be an error of its own.
        if not ctrl_c.was_lost and not (ctrl_c.was_pressed and is_interrupt):
            raise
        sys.stderr.write("interrupted\n")
        sys.exit(INTERRUPTED)


if __name__ == "__main__":  # worker processes import this module under another name
    main()

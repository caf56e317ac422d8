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
    except (KeyboardInterrupt, SystemExit) as error:
        if not ctrl_c.was_pressed or getattr(error, "code", INTERRUPTED) != INTERRUPTED:
            raise
        sys.stderr.write("interrupted\n")
        sys.exit(INTERRUPTED)


if __name__ == "__main__":  # worker processes import this module under another name
    main()

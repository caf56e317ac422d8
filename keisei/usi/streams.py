"""Lines from a GUI, byte by byte whatever comes: too long, no text, no end."""

import os
from collections.abc import Iterator
from typing import Final

LONGEST_LINE: Final = 1 << 20
"""Bytes of a line; what is longer is left out. A game of 20,000 plies has 120,000."""

_PIECE: Final = 1 << 16


def lines_from(descriptor: int) -> Iterator[str]:
    """The lines that arrive at a file descriptor, each as soon as it is complete.

    `sys.stdin` is no help: a thread that waits for it keeps Python from ending.
    """
    rest, is_too_long = b"", False
    while piece := os.read(descriptor, _PIECE):
        *lines, rest = (rest + piece).split(b"\n")
        for line in lines:
            if not is_too_long and len(line) <= LONGEST_LINE:
                yield line.decode("utf-8", "replace")
            is_too_long = False
        if len(rest) > LONGEST_LINE:
            rest, is_too_long = b"", True
    if rest and not is_too_long:
        yield rest.decode("utf-8", "replace")

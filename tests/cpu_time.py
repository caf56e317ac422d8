"""Limits of CPU time, for texts that a quadratic parser would take minutes to read."""

import sys

TRACED = 5.0
"""Times as much where coverage follows each line."""


def allowed(seconds: float) -> float:
    """Return how many seconds something may take that should take less than `seconds`."""
    return seconds if sys.gettrace() is None else TRACED * seconds

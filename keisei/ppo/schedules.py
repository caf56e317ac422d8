"""Settings that change over a run: functions of how much of it is done."""

import math
from typing import Final

from keisei.config_schema import Shape

PATIENCE: Final = 0.2
"""Fraction of the time limit by which a run may fall behind before its schedules notice."""


def schedule_fraction(plies: float, time: float) -> float:
    """Return the fraction of a run, 0 to 1, that its schedules follow.

    It is the fraction of its plies, and nothing else, as long as the run keeps pace with its time
    limit: then it can be repeated and resumed bit by bit, whatever the clock says. On a machine too
    slow for all plies, a clock takes over that starts `PATIENCE` late and reaches 1 with the limit,
    so that schedules end with the run there as well. Neither of the two jumps, so the larger one
    does not either; and a run whose plies keep pace with its time is always ahead of that clock.

    Args:
        plies: fraction of the run's plies that were played.
        time: fraction of its time limit that has passed, 0 without a limit.
    """
    return min(max(plies, (time - PATIENCE) / (1.0 - PATIENCE)), 1.0)


def scheduled(shape: Shape, start: float, end: float, done: float, *, warmup: float = 0.0) -> float:
    """Value of a schedule when the fraction `done` of a run is over.

    During the fraction `warmup` it rises from 0 to `start`; then it moves to `end` along `shape`.
    """
    done = min(max(done, 0.0), 1.0)
    if done < warmup:
        return start * done / warmup
    done = (done - warmup) / (1.0 - warmup) if warmup < 1.0 else 1.0
    if shape == "constant":
        return start
    if shape == "cosine":
        done = (1.0 - math.cos(math.pi * done)) / 2.0
    return start + (end - start) * done


def fading(start: float, end: float, done: float) -> float:
    """Value that falls linearly from `start` at the beginning of a run to 0 at fraction `end`."""
    if done >= end:
        return 0.0
    return start * (1.0 - done / end)

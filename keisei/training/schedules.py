"""Settings that change over a run: functions of how much of it is done."""

import math

from keisei.config_schema import Shape


def scheduled(shape: Shape, start: float, end: float, done: float, *, warmup: float = 0.0) -> float:
    """The value when the fraction `done` of a run is over.

    During the fraction `warmup` it rises from zero to `start`; then it goes to `end` along `shape`.
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
    """From `start` at the beginning of a run to zero at the fraction `end` of it."""
    if done >= end:
        return 0.0
    return start * (1.0 - done / end)

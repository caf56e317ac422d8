"""Fair timing: contestants take turns, each several times, with the garbage collector off."""

import gc
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from statistics import median
from typing import Any, TypeVar

Name = TypeVar("Name")

Work = Callable[[], int]
"""Does some work and returns how many units of it: nodes, steps ..."""


LEAD_IN = 0.25
"""How long a contestant works before it is timed, as a part of its turn."""


@dataclass(frozen=True)
class Rate:
    """Units of work per second, measured several times."""

    samples: tuple[float, ...]

    @property
    def best(self) -> float:
        """The sample that other processes disturbed least: what all comparisons use."""
        return max(self.samples)

    @property
    def spread(self) -> float:
        """By which part of the best the median lies below it: 0 on a quiet machine."""
        return 1 - median(self.samples) / self.best

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for JSON."""
        return {"best": self.best, "spread": self.spread, "samples": list(self.samples)}


def side_by_side(
    contestants: Mapping[Name, Work], *, repetitions: int, seconds: float
) -> dict[Name, Rate]:
    """Measure the rate of each contestant, in turns (A B C, A B C ...).

    A disturbance from outside that lasts a while so hits all of them, not one. Each turn begins
    with a lead-in that is not timed, so that caches and threads are as they are in long use. A turn
    lasts `seconds`, or one piece of work if that takes longer.
    """
    samples: dict[Name, list[float]] = {name: [] for name in contestants}
    with _garbage_collector_off():
        for _ in range(repetitions):
            for name, work in contestants.items():
                _units_per_second(work, LEAD_IN * seconds)
                samples[name].append(_units_per_second(work, seconds))
    return {name: Rate(tuple(taken)) for name, taken in samples.items()}


def _units_per_second(work: Work, seconds: float) -> float:
    units = 0
    start = time.perf_counter()
    while True:
        units += work()
        elapsed = time.perf_counter() - start
        if elapsed >= seconds:
            return units / elapsed


@contextmanager
def _garbage_collector_off() -> Iterator[None]:
    was_on = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        if was_on:
            gc.enable()

"""`MinibatchSizer`: minibatches that grow and shrink with the speed and memory of a device.

Used where ``ppo.minibatch_size`` is ``auto``. Sizes are doubled and halved, and what an update was
trained with decides about the next one. Speeds are measured, so a run with ``auto`` cannot be
repeated bit by bit.
"""

from typing import Final

MIN_GAIN: Final = 1.05
"""Speed of a larger minibatch over that of a smaller one, below which the smaller one is kept: it
takes more steps for the same samples."""

LOW_MEMORY: Final = 0.1
"""Share of free memory below which minibatches shrink."""

ENOUGH_MEMORY: Final = 0.3
"""Share of free memory above which they may grow."""

TRIALS: Final = 2
"""Updates with a new size before its speed is known: the first one may be slower than the rest."""

MEMORY_SPAN: Final = 200
"""Updates after which speeds and failures are forgotten, since the machine may have changed."""

MIN_STEPS: Final = 4
"""Steps that an epoch has at least, whatever is faster."""


class MinibatchSizer:
    """Chooses the size of minibatches, by measured speed and free memory.

    >>> sizer = MinibatchSizer(512, smallest=16, largest=4096)
    >>> for _ in range(40):
    ...     speed = min(sizer.size, 1500) * 10.0
    ...     sizer.adapt(speed=speed, free_memory=0.8, samples=100_000)
    >>> sizer.size
    2048
    >>> sizer.shrink()  # out of memory
    True
    >>> sizer.size
    1024
    """

    def __init__(self, first: int, *, smallest: int, largest: int, modest: int = 0) -> None:
        """Start with minibatches of size `first`.

        Args:
            first: the first size.
            smallest: size below which they never shrink.
            largest: size above which they never grow.
            modest: size that fits into any memory, so that a lack of it has other causes.
        """
        self.size = first
        self._modest = modest
        self._smallest, self._largest = smallest, largest
        self._forget()

    def _forget(self) -> None:
        self._ceiling = self._largest
        """Largest size for which there is memory, as far as is known."""

        self._speeds: dict[int, float] = {}
        """Samples per second, by size: the best that was measured."""

        self._trials = 0
        """Updates with the present size."""

        self._updates = 0
        """Updates since everything was forgotten."""

    def shrink(self) -> bool:
        """Halve the size after memory ran out; return False if it is the smallest already."""
        if self.size <= self._smallest:
            return False
        self._ceiling = self.size // 2
        self._move(self._ceiling)
        return True

    def adapt(self, *, speed: float, free_memory: float, samples: int) -> None:
        """Choose the size for the next update.

        Args:
            speed: samples per second of the last update.
            free_memory: share of the device's memory that was free after it, 0 to 1.
            samples: samples of an epoch.
        """
        self._updates += 1
        if self._updates > MEMORY_SPAN:
            self._forget()
        self._trials += 1
        if free_memory < LOW_MEMORY and self.size > self._modest:
            self.shrink()
            return
        self._speeds[self.size] = max(speed, self._speeds.get(self.size, 0.0))
        if self._trials < TRIALS:
            return
        fastest = max(self._speeds.values())
        best = min(size for size, found in self._speeds.items() if found * MIN_GAIN >= fastest)
        larger, smaller = best * 2, best // 2
        limit = min(self._ceiling, samples // MIN_STEPS)
        if larger <= limit and larger not in self._speeds and free_memory >= ENOUGH_MEMORY:
            self._move(larger)
        elif smaller >= self._smallest and smaller not in self._speeds:
            self._move(smaller)
        else:
            self._move(best)

    def _move(self, size: int) -> None:
        if size != self.size:
            self.size, self._trials = size, 0
            self._speeds = {known: v for known, v in self._speeds.items() if known <= self._ceiling}

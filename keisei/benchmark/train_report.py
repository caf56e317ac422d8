"""What `keisei.benchmark.train` found: the speed of training, and what it promises."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from keisei import __version__
from keisei.benchmark.bars import Bar
from keisei.benchmark.machine import Machine
from keisei.benchmark.timing import Rate
from keisei.models.measure import PathSpeed

KEISEI: Final = "keisei"
BARE: Final = "bare loop"
SHOWN: Final = "display on"
HIDDEN: Final = "display off"


@dataclass(frozen=True)
class TrainReport:
    """All that was measured."""

    machine: Machine
    settings: dict[str, str]
    """What was trained, and how."""

    is_promised: bool
    """Whether these are the settings that the promises are about."""

    steps: dict[str, Rate]
    """Plies per second of whole steps, with the live display and without."""

    shares: dict[str, float]
    """Of the time of the steps: env, inference, learning, other; together 1."""

    network_share: float
    """Of the time of the steps, how much the network computed."""

    updates: dict[str, Rate]
    """Samples per second of an update, and of the bare loop."""

    paths: tuple[PathSpeed, ...]
    """The ways of running this network here."""

    @property
    def bars(self) -> tuple[Bar, ...]:
        """The promised speeds, and what was measured."""
        return tuple(self._bars())

    def as_dict(self) -> dict[str, Any]:
        """The report as plain values, for JSON."""
        return {
            "keisei": __version__,
            "machine": self.machine.as_dict(),
            "settings": self.settings,
            "plies_per_second": {name: rate.as_dict() for name, rate in self.steps.items()},
            "time_shares": self.shares,
            "network_share": self.network_share,
            "samples_per_second": {name: rate.as_dict() for name, rate in self.updates.items()},
            "paths": [path.as_dict() for path in self.paths],
            "bars": [bar.as_dict() for bar in self.bars],
        }

    def _bars(self) -> Iterator[Bar]:
        share = self.network_share if self.is_promised else None
        yield Bar("time in the network, 4x64 tower, 256 games", 0.8, "", share)
        update = self.updates[KEISEI].best / self.updates[BARE].best
        yield Bar("samples/s of an update", 0.9, " x bare loop", update)
        display = self.steps[SHOWN].best / self.steps[HIDDEN].best
        yield Bar("plies/s with the live display", 0.98, " x without", display)

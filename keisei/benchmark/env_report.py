"""What `keisei.benchmark.env` found: rows of rates, and the speeds that Keisei promises."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from keisei import __version__
from keisei.benchmark.bars import Bar
from keisei.benchmark.machine import Machine
from keisei.benchmark.timing import Rate

KEISEI: Final = "keisei"
KEISEI_THREADS: Final = "keisei, threads"
CSHOGI: Final = "cshogi"
"""In random play the plain loop, the one that is written first."""

CSHOGI_TUNED: Final = "cshogi, tuned"
RSSHOGI: Final = "rsshogi"


@dataclass(frozen=True)
class Output:
    """What is produced for each position of random play, besides the list of legal moves."""

    name: str
    packed: bool = False
    planes: bool = False
    mask: bool = False


LEGAL_LIST: Final = Output("legal list")
PACKED: Final = Output("packed + list", packed=True)
PLANES: Final = Output("planes", planes=True)
MASK: Final = Output("mask", mask=True)
PLANES_AND_MASK: Final = Output("planes + mask", planes=True, mask=True)


@dataclass(frozen=True)
class PerftRow:
    """Nodes per second of each contestant in one position."""

    position: str
    depth: int
    plays_leaves: bool
    nodes: int
    rates: dict[str, Rate]


@dataclass(frozen=True)
class StepRow:
    """Steps per second of each contestant for one number of games and one output."""

    games: int
    output: str
    rates: dict[str, Rate]


@dataclass(frozen=True)
class EnvReport:
    """All that was measured."""

    machine: Machine
    threads: int
    perft: tuple[PerftRow, ...]
    steps: tuple[StepRow, ...]

    @property
    def bars(self) -> tuple[Bar, ...]:
        """The promised speeds, and what was measured."""
        return tuple(_bars(self))

    def as_dict(self) -> dict[str, Any]:
        """The report as plain values, for JSON."""
        return {
            "keisei": __version__,
            "machine": self.machine.as_dict(),
            "threads": self.threads,
            "perft": [_plain(row) for row in self.perft],
            "steps": [_plain(row) for row in self.steps],
            "bars": [bar.as_dict() for bar in self.bars],
        }


def ratio(rates: dict[str, Rate], name: str, other: str) -> float | None:
    """How many times as fast as `other` the contestant `name` is; None if one is missing."""
    if name not in rates or other not in rates:
        return None
    return rates[name].best / rates[other].best


_COMPARED_GAMES = 1024
"""The number of games that promises on stepping are about."""


def _bars(report: EnvReport) -> Iterator[Bar]:
    counted = [ratio(row.rates, KEISEI, CSHOGI) for row in report.perft if not row.plays_leaves]
    yield Bar("perft that counts the last ply, every position", 4, " x cshogi", _least(counted))

    packed = {row.games: row.rates for row in report.steps if row.output == PACKED.name}
    rates = packed.get(_COMPARED_GAMES, {})
    steps = rates[KEISEI].best / 1e6 if rates else None
    yield Bar("packed + list, 1,024 games, one thread", 0.9, " M steps/s", steps)

    dense = [row.rates for row in report.steps if row.output == PLANES_AND_MASK.name]
    ratios = [ratio(rates_of_row, KEISEI, CSHOGI) for rates_of_row in dense]
    yield Bar("planes + mask, every number of games", 10, " x cshogi, plain", _least(ratios))

    scaling = ratio(rates, KEISEI_THREADS, KEISEI) if report.threads == 2 else None
    yield Bar("packed + list, 1,024 games, two threads", 1.6, " x one thread", scaling)


def _least(ratios: list[float | None]) -> float | None:
    return min((value for value in ratios if value is not None), default=None)


def _plain(row: PerftRow | StepRow) -> dict[str, Any]:
    return {**vars(row), "rates": {name: rate.as_dict() for name, rate in row.rates.items()}}

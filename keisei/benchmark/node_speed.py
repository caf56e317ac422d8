"""``keisei bench``: how fast a network searches, and a signature of what it plays.

The signature covers the visits of all root moves of a search with a fixed number of nodes, on one
thread, of some positions. A change that must not change play leaves it as it is. It depends on the
network, and in the last digits of sums on the kind of processor.
"""

import time
import zlib
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Final

from rich.console import Console

from keisei.formats import new_table
from keisei.network.loading import LoadedNetwork, open_network
from keisei.search.game_search import GameSearch
from keisei.shogi.actions import PolicyOutputMapper
from keisei.shogi.game import ShogiGame
from keisei.shogi.notation.sfen import STARTPOS_SFEN

NODES: Final = 10_000
"""Nodes of each search."""

WARM_UP: Final = 64
PLY_LIMIT: Final = 512
MEGABYTES: Final = 256

POSITIONS: Final = (
    STARTPOS_SFEN,
    "lnsg1gsn1/3k5/p1pp1p1pl/4p1pPp/9/1prB5/P1NPPPP1P/1P1K1S1R1/L1SG1G1NL w bp 26",
    "l2g1g1nl/r1s1k4/p1nppps1p/1pp3pp1/4B4/2P2R3/PP1PPPP1P/L1S1K4/1N1G1GSNL w bp 26",
    "l2g1g1nl/3k2sb1/npppppppp/p8/1PP6/3B3r1/P1NPPPN1P/2SK2S2/L2G1G2L w S2Pr 38",
    "lns2g2l/1g3ksp1/p1p1ppn1p/3p2R2/2+b6/1P2P4/P1NP1PP1P/L1SK1S1P1/3G2GNL w R3Pb 50",
    "1n1g4l/1+Rs1k1s2/p1p2pnpp/3p1rp2/2b1p3P/5P1L1/P1NPP1P2/2S1K2G1/L2G2SNL w GPb3p 62",
    "l2g1g1nl/2r1k2s1/p3pp2p/2pp2pp1/3P5/2P+bPL3/PP2SPP1P/L1S1K1S2/3G1G1N+r w BNPnp 74",
    "ln1g5/1rs2Rs2/2pp1pkpp/p2gN1b2/1pP1LPn2/4K4/PP1P2P1P/4P1SP1/L2S1G1NL w G2Pb 86",
)
"""The start, and middle games of networks against themselves."""


@dataclass(frozen=True)
class SearchedPosition:
    """The search of one position."""

    sfen: str
    move: str
    """The best move, in USI."""

    value: float
    """Its value for the side to move, from -1 to 1."""

    depth: int
    """Plies of the longest simulation."""

    rates: dict[int, float]
    """Nodes per second, by the number of threads."""


@dataclass(frozen=True)
class BenchReport:
    """Speed of a network's search."""

    network: str
    nodes: int
    """Nodes of each search."""

    signature: str
    positions: list[SearchedPosition]
    against: "BenchReport | None" = None
    """The other network of a comparison."""

    @property
    def rates(self) -> dict[int, float]:
        """Nodes per second over all positions, by the number of threads."""
        count = len(self.positions)
        return {
            threads: count / sum(1 / position.rates[threads] for position in self.positions)
            for threads in self.positions[0].rates
        }

    def as_dict(self) -> dict[str, Any]:
        """Return plain values, for JSON."""
        other = None if self.against is None else self.against.as_dict()
        return {**asdict(self), "rates": self.rates, "against": other}


def compare_bench(
    network: Path,
    against: Path | None,
    *,
    nodes: int = NODES,
    threads: int = 2,
    on_progress: Callable[[str, int, int], None] = lambda *_: None,
) -> BenchReport:
    """Measure a network, and after it another one; see `measure_bench`."""
    report = measure_bench(network, nodes=nodes, threads=threads, on_progress=on_progress)
    if against is None:
        return report
    other = measure_bench(against, nodes=nodes, threads=threads, on_progress=on_progress)
    return replace(report, against=other)


def measure_bench(
    network: Path,
    *,
    nodes: int = NODES,
    threads: int = 2,
    on_progress: Callable[[str, int, int], None] = lambda *_: None,
) -> BenchReport:
    """Search all positions with one thread, and with several if `threads` is more than 1.

    Args:
        network: a run, a checkpoint or an exported file.
        nodes: of each search.
        threads: of the second search.
        on_progress: called with what is done, the searches done and their number.
    """
    load = open_network(network)
    loaded = load(1)
    searches = {1: _search(loaded)}
    if threads > 1:
        searches[threads] = _search(load(threads))
    checksum = 0
    found: list[SearchedPosition] = []
    total = len(POSITIONS) * len(searches)
    for sfen in POSITIONS:
        game = ShogiGame(sfen)
        rates: dict[int, float] = {}
        for number, search in searches.items():
            on_progress("searching", len(found) * len(searches) + len(rates), total)
            rates[number] = _run(search, game, nodes)
        alone = searches[1]
        lines = alone.variations(len(game.legal_actions))
        checksum = zlib.crc32(
            str([(line.actions[0], line.visits) for line in lines]).encode(), checksum
        )
        move = PolicyOutputMapper().move(lines[0].actions[0], game.turn).usi
        found.append(SearchedPosition(sfen, move, lines[0].value, alone.max_depth, rates))
    return BenchReport(loaded.name, nodes, f"{checksum:08x}", found)


def _search(loaded: LoadedNetwork) -> GameSearch:
    search = GameSearch(loaded.predictor, megabytes=MEGABYTES)
    _run(search, ShogiGame(), WARM_UP)  # compiles, or loads the machine code
    return search


def _run(search: GameSearch, game: ShogiGame, nodes: int) -> float:
    """Search from an empty tree; return the nodes per second."""
    search.clear()
    search.begin(game, ply_limit=PLY_LIMIT)
    start, done = time.perf_counter(), 0
    while done < nodes and not (search.is_proven or search.is_full):
        done += search.step(nodes - done)
    return done / (time.perf_counter() - start)


def print_bench_report(report: BenchReport) -> None:
    """Print a table of the positions, the speed and the signature."""
    console = Console()
    table = new_table(f"{report.network}, {report.nodes:,} nodes a position")
    table.add_column("position")
    for heading in ("move", "value", "depth"):
        table.add_column(heading, justify="right")
    for threads in report.rates:
        table.add_column(f"nodes/s, {_threads(threads)}", justify="right")
    for place, position in enumerate(report.positions):
        fields = position.sfen.split()
        ply = int(fields[-1]) - 1
        table.add_row(
            f"{place + 1}: {'start' if ply == 0 else f'after {ply} plies'}",
            position.move,
            f"{position.value:+.2f}",
            str(position.depth),
            *(f"{rate:,.0f}" for rate in position.rates.values()),
        )
    console.print(table)
    for threads, rate in report.rates.items():
        console.print(f"{_threads(threads)}: {rate:,.0f} nodes/s")
    console.print(f"signature: {report.signature}", highlight=False)
    if report.against is not None:
        console.print("")
        print_bench_report(report.against)
        console.print("")
        for threads, rate in report.rates.items():
            times = rate / report.against.rates[threads]
            console.print(
                f"{_threads(threads)}: {report.network} searches {times:.1f} times as many nodes/s "
                f"as {report.against.network}"
            )


def _threads(number: int) -> str:
    return "one thread" if number == 1 else f"{number} threads"

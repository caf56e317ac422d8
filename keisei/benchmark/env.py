"""``keisei benchmark env``: perft and random play, next to Python loops over cshogi and rsshogi.

Random play is measured for each kind of output that training can ask for: legal moves, packed
positions, planes, masks.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final

import numpy as np
from rich.console import Console
from rich.table import Table
from rich.text import Text

from keisei import __version__
from keisei.benchmark.harness import (
    NOT_MEASURED,
    Machine,
    ProgressCallback,
    Rate,
    SpeedTarget,
    Work,
    installed_version,
    noise_text,
    print_header,
    rate_text,
    side_by_side,
    target_table,
    this_machine,
)
from keisei.constants import NUM_ACTIONS
from keisei.formats import new_table
from keisei.shogi.game import ShogiGame
from keisei.shogi.notation.sfen import STARTPOS_SFEN, format_sfen
from keisei.shogi.packed import unpack_diagram
from keisei.shogi.perft import perft
from keisei.shogi.vector import VectorShogi

if TYPE_CHECKING:
    from keisei.benchmark.rival_loops import CshogiLoop

KEISEI: Final = "keisei"
KEISEI_THREADS: Final = "keisei, threads"
CSHOGI: Final = "cshogi"
"""The plain loop, in random play."""

CSHOGI_TUNED: Final = "cshogi, tuned"
RSSHOGI: Final = "rsshogi"


@dataclass(frozen=True)
class StepOutput:
    """Output for each position of random play, besides the list of legal moves."""

    name: str
    packed: bool = False
    planes: bool = False
    mask: bool = False


LEGAL_LIST: Final = StepOutput("legal list")
PACKED: Final = StepOutput("packed + list", packed=True)
PLANES: Final = StepOutput("planes", planes=True)
MASK: Final = StepOutput("mask", mask=True)
PLANES_AND_MASK: Final = StepOutput("planes + mask", planes=True, mask=True)


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
    """Results of the benchmark."""

    machine: Machine
    threads: int
    perft: tuple[PerftRow, ...]
    steps: tuple[StepRow, ...]

    @property
    def targets(self) -> tuple[SpeedTarget, ...]:
        """The promised speeds next to the measured ones."""
        return tuple(_targets(self))

    def as_dict(self) -> dict[str, Any]:
        """Return the report as plain values, for JSON."""
        return {
            "keisei": __version__,
            "machine": self.machine.as_dict(),
            "threads": self.threads,
            "perft": [_plain(row) for row in self.perft],
            "steps": [_plain(row) for row in self.steps],
            "targets": [target.as_dict() for target in self.targets],
        }


def ratio(rates: dict[str, Rate], name: str, other: str) -> float | None:
    """Return how many times as fast as `other` `name` is; None if one is missing."""
    if name not in rates or other not in rates:
        return None
    return rates[name].best / rates[other].best


_TARGET_GAMES = 1024
"""Number of games that the targets for stepping are about."""


def _targets(report: EnvReport) -> Iterator[SpeedTarget]:
    counted = [ratio(row.rates, KEISEI, CSHOGI) for row in report.perft if not row.plays_leaves]
    yield SpeedTarget(
        "perft that counts the last ply, every position", 4, " x cshogi", _minimum(counted)
    )

    packed = {row.games: row.rates for row in report.steps if row.output == PACKED.name}
    rates = packed.get(_TARGET_GAMES, {})
    steps = rates[KEISEI].best / 1e6 if rates else None
    yield SpeedTarget("packed + list, 1,024 games, one thread", 0.9, " M steps/s", steps)

    dense = [row.rates for row in report.steps if row.output == PLANES_AND_MASK.name]
    ratios = [ratio(rates_of_row, KEISEI, CSHOGI) for rates_of_row in dense]
    yield SpeedTarget(
        "planes + mask, every number of games", 10, " x cshogi, plain", _minimum(ratios)
    )

    scaling = ratio(rates, KEISEI_THREADS, KEISEI) if report.threads == 2 else None
    yield SpeedTarget("packed + list, 1,024 games, two threads", 1.6, " x one thread", scaling)


def _minimum(ratios: list[float | None]) -> float | None:
    return min((value for value in ratios if value is not None), default=None)


def _plain(row: PerftRow | StepRow) -> dict[str, Any]:
    return {**vars(row), "rates": {name: rate.as_dict() for name, rate in row.rates.items()}}


PACKAGES: Final = ("numba", "numpy", "cshogi", "rsshogi")

OUTPUT_GROUPS: Final = ((LEGAL_LIST, PACKED), (PLANES,), (MASK,), (PLANES_AND_MASK,))
"""Outputs grouped by the work that `VectorShogi` does for them: each group is measured once."""


@dataclass(frozen=True)
class PerftPosition:
    """A perft position, with depths that a Python loop counts in a fraction of a second."""

    name: str
    sfen: str
    counting_depth: int
    """Depth when the last ply is counted, not played."""

    playing_depth: int
    """Depth when every leaf is played."""


MIDDLE_GAME_SFEN: Final = "l4S2l/4g1gs1/5p1p1/pr2N1pkp/4Gn3/PP3PPPP/2GPP4/1K7/L3r+s2L w BS2N5Pb 1"
MATSURI_SFEN: Final = "l6nl/5+P1gk/2np1S3/p1p4Pp/3P2Sp1/1PPb2P1P/P5GS1/R8/LN4bKL w GR5pnsg 1"
"""The usual test of a Shogi move generator, with 207 legal moves; *matsuri* means festival."""

POSITIONS: Final = (
    PerftPosition("start", STARTPOS_SFEN, 4, 3),
    PerftPosition("middle game", MIDDLE_GAME_SFEN, 3, 2),
    PerftPosition("matsuri", MATSURI_SFEN, 3, 2),
)


@dataclass(frozen=True)
class EnvEffort:
    """Number and length of the measurements."""

    repetitions: int
    seconds: float
    """Seconds per repetition and contestant."""

    warm_up_plies: int
    """Random plies before timing starts, which spread the games over all stages."""

    games: tuple[int, ...] = (64, 1024, 4096)
    positions: tuple[PerftPosition, ...] = POSITIONS


FULL: Final = EnvEffort(repetitions=8, seconds=0.2, warm_up_plies=800)
QUICK: Final = EnvEffort(repetitions=3, seconds=0.02, warm_up_plies=200)


def measure_env(
    effort: EnvEffort, *, threads: int, on_progress: ProgressCallback | None = None
) -> EnvReport:
    """Measure perft and random play, Keisei with one thread and with `threads`."""
    machine = this_machine(PACKAGES)
    total = 2 * len(effort.positions) + len(effort.games) * len(OUTPUT_GROUPS)
    done = 0

    def begin(measurement: str) -> None:
        nonlocal done
        if on_progress is not None:
            on_progress(measurement, done, total)
        done += 1

    perft_rows: list[PerftRow] = []
    for position in effort.positions:
        for plays_leaves in (False, True):
            begin(f"perft, {position.name}")
            perft_rows.append(_measure_perft(position, plays_leaves, effort))
    step_rows: list[StepRow] = []
    for games in effort.games:
        with _Arena(games, threads, effort.warm_up_plies) as arena:
            for outputs in OUTPUT_GROUPS:
                begin(f"{games:,} games, {outputs[-1].name}")
                step_rows.extend(arena.measure(outputs, effort))
    return EnvReport(machine, threads, tuple(perft_rows), tuple(step_rows))


def _measure_perft(position: PerftPosition, plays_leaves: bool, effort: EnvEffort) -> PerftRow:
    depth = position.playing_depth if plays_leaves else position.counting_depth
    contestants = _perft_contestants(position.sfen, depth, plays_leaves)
    nodes = {name: work() for name, work in contestants.items()}
    if len(set(nodes.values())) > 1:
        raise RuntimeError(f"the libraries disagree on perft({depth}) of {position.sfen}: {nodes}")
    rates = side_by_side(contestants, repetitions=effort.repetitions, seconds=effort.seconds)
    return PerftRow(position.name, depth, plays_leaves, nodes[KEISEI], rates)


def _perft_contestants(sfen: str, depth: int, plays_leaves: bool) -> dict[str, Work]:
    record = ShogiGame(sfen).position
    contestants: dict[str, Work] = {KEISEI: lambda: perft(record, depth, bulk=not plays_leaves)}
    if installed_version("cshogi"):
        from keisei.benchmark.rival_loops import cshogi_perft

        contestants[CSHOGI] = cshogi_perft(sfen, depth, plays_leaves=plays_leaves)
    if installed_version("rsshogi"):
        from keisei.benchmark.rival_loops import rsshogi_perft

        contestants[RSSHOGI] = rsshogi_perft(sfen, depth, plays_leaves=plays_leaves)
    return contestants


class _Arena:
    """The contestants at the same middle-game positions, and the buffers they write to."""

    def __init__(self, games: int, threads: int, warm_up_plies: int) -> None:
        env = VectorShogi(games)
        for _ in range(warm_up_plies):
            env.step(env.sample_actions())
        self.games = games
        self.planes = np.zeros((games, *env.features.shape), dtype=np.float32)
        self.mask = np.zeros((games, NUM_ACTIONS), dtype=np.bool_)
        self.envs = {KEISEI: env}
        if threads > 1:
            self.envs[KEISEI_THREADS] = VectorShogi(games, threads=threads)
            self.envs[KEISEI_THREADS].restore(env.state())
        self.loops = self._cshogi_loops(env) if installed_version("cshogi") else {}

    def _cshogi_loops(self, env: VectorShogi) -> "dict[str, CshogiLoop]":
        from keisei.benchmark.rival_loops import CshogiLoop, TunedCshogiLoop

        sfens = [format_sfen(unpack_diagram(packed)) for packed in env.packed]
        return {
            name: loop(sfens, self.planes, self.mask, ply_limit=env.ply_limit)
            for name, loop in ((CSHOGI, CshogiLoop), (CSHOGI_TUNED, TunedCshogiLoop))
        }

    def measure(self, outputs: tuple[StepOutput, ...], effort: EnvEffort) -> Iterator[StepRow]:
        """Yield a row for each output of a group, for which Keisei is measured only once."""
        contestants: dict[tuple[str, StepOutput | None], Work] = {
            (name, None): self._keisei(env, outputs[-1]) for name, env in self.envs.items()
        }
        for output in outputs:
            for name, loop in self.loops.items():
                contestants[name, output] = self._cshogi(loop, output)
        rates = side_by_side(contestants, repetitions=effort.repetitions, seconds=effort.seconds)
        for output in outputs:
            of_row = {name: rate for (name, of), rate in rates.items() if of in (None, output)}
            yield StepRow(self.games, output.name, of_row)

    def _keisei(self, env: VectorShogi, output: StepOutput) -> Work:
        def step() -> int:
            env.step(env.sample_actions())  # writes packed positions and legal lists
            if output.planes:
                env.planes(self.planes)
            if output.mask:
                env.legal_mask(self.mask)
            return self.games

        return step

    def _cshogi(self, loop: "CshogiLoop", output: StepOutput) -> Work:
        def step() -> int:
            loop.step()
            if output.packed:
                loop.write_packed()
            if output.planes:
                loop.write_planes()
            if output.mask:
                loop.write_mask()
            return self.games

        return step

    def __enter__(self) -> "_Arena":
        return self

    def __exit__(self, *_: object) -> None:
        for env in self.envs.values():
            env.close()


FOOTNOTES = (
    "Each figure is the best of several turns. noise: how far the median of the turns lies below "
    "it, in the noisiest column.",
    "ratio: keisei with one thread over the column to the left.",
    "legal list, packed + list: one measurement of keisei for both, as a step always writes both.",
    "plain, tuned: a straightforward loop over cshogi, and one as fast as we could make it.",
)


def print_env_report(report: EnvReport) -> None:
    """Print the report as tables."""
    console = Console()
    print_header(console, report.machine)
    if "cshogi" not in report.machine.versions:
        hint = "cshogi is not installed, so there is no comparison: pip install cshogi"
        console.print(Text(hint, style="yellow"))
    console.print(_perft_table(report))
    console.print(_step_table(report))
    for footnote in FOOTNOTES:
        console.print(footnote, style="dim", highlight=False)
    console.print(target_table(report.targets))


def _perft_table(report: EnvReport) -> Table:
    table = new_table("perft, million nodes/s")
    table.add_column("position", no_wrap=True)
    table.add_column("depth", justify="right")
    table.add_column("last ply")
    for heading in ("keisei", "cshogi", "ratio", "rsshogi", "ratio", "noise"):
        table.add_column(heading, justify="right", no_wrap=True)
    for row in report.perft:
        table.add_row(
            row.position,
            str(row.depth),
            "played" if row.plays_leaves else "counted",
            rate_text(row.rates.get(KEISEI), 1e6),
            rate_text(row.rates.get(CSHOGI), 1e6),
            _ratio(row.rates, CSHOGI),
            rate_text(row.rates.get(RSSHOGI), 1e6),
            _ratio(row.rates, RSSHOGI),
            noise_text(row.rates),
        )
    return table


def _step_table(report: EnvReport) -> Table:
    table = new_table("random play, thousand steps/s")
    table.add_column("games", justify="right")
    table.add_column("output", no_wrap=True)
    second = f"{report.threads} threads" if report.threads > 1 else "threads"
    for heading in ("keisei\n1 thread", f"\n{second}", "cshogi\nplain", "\nratio"):
        table.add_column(heading, justify="right", no_wrap=True)
    for heading in ("cshogi\ntuned", "\nratio", "\nnoise"):
        table.add_column(heading, justify="right", no_wrap=True)
    previous = None
    for row in report.steps:
        if previous not in (None, row.games):
            table.add_section()
        table.add_row(
            "" if row.games == previous else f"{row.games:,}",
            row.output,
            rate_text(row.rates.get(KEISEI), 1e3),
            rate_text(row.rates.get(KEISEI_THREADS), 1e3),
            rate_text(row.rates.get(CSHOGI), 1e3),
            _ratio(row.rates, CSHOGI),
            rate_text(row.rates.get(CSHOGI_TUNED), 1e3),
            _ratio(row.rates, CSHOGI_TUNED),
            noise_text(row.rates),
        )
        previous = row.games
    return table


def _ratio(rates: dict[str, Rate], other: str) -> str:
    value = ratio(rates, KEISEI, other)
    return NOT_MEASURED if value is None else f"{value:.1f}x"

"""The game core side by side with other libraries: perft, and random play with each output.

``docs/benchmarks.md`` says what is measured and how; ``keisei benchmark env`` prints it.
"""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Final

import numpy as np

from keisei.benchmark.env_report import (
    CSHOGI,
    CSHOGI_TUNED,
    KEISEI,
    KEISEI_THREADS,
    LEGAL_LIST,
    MASK,
    PACKED,
    PLANES,
    PLANES_AND_MASK,
    RSSHOGI,
    EnvReport,
    Output,
    PerftRow,
    StepRow,
)
from keisei.benchmark.machine import installed_version, this_machine
from keisei.benchmark.timing import Work, side_by_side
from keisei.constants import NUM_ACTIONS
from keisei.shogi.game import ShogiGame
from keisei.shogi.notation.sfen import STARTPOS_SFEN, format_sfen
from keisei.shogi.packed import unpack_diagram
from keisei.shogi.perft import perft
from keisei.shogi.vector import VectorShogi

if TYPE_CHECKING:
    from keisei.benchmark.cshogi_loop import CshogiLoop

PACKAGES: Final = ("numba", "numpy", "cshogi", "rsshogi")

OUTPUT_GROUPS: Final = ((LEGAL_LIST, PACKED), (PLANES,), (MASK,), (PLANES_AND_MASK,))
"""Outputs that are the same work for `VectorShogi` stand together: it is measured once for both."""

Progress = Callable[[str, int, int], None]
"""Told what is measured next, how many measurements are done, and of how many."""


@dataclass(frozen=True)
class PerftPosition:
    """A position whose tree is counted, no deeper than Python can in the blink of an eye."""

    name: str
    sfen: str
    counting_depth: int
    """Depth when the last ply is counted, not played."""

    playing_depth: int
    """Depth when every leaf is played."""


MIDDLE_GAME_SFEN: Final = "l4S2l/4g1gs1/5p1p1/pr2N1pkp/4Gn3/PP3PPPP/2GPP4/1K7/L3r+s2L w BS2N5Pb 1"
MATSURI_SFEN: Final = "l6nl/5+P1gk/2np1S3/p1p4Pp/3P2Sp1/1PPb2P1P/P5GS1/R8/LN4bKL w GR5pnsg 1"
"""With 207 legal moves the usual test of a generator; the name means festival."""

POSITIONS: Final = (
    PerftPosition("start", STARTPOS_SFEN, 4, 3),
    PerftPosition("middle game", MIDDLE_GAME_SFEN, 3, 2),
    PerftPosition("matsuri", MATSURI_SFEN, 3, 2),
)


@dataclass(frozen=True)
class Effort:
    """How much is measured, and for how long."""

    repetitions: int
    seconds: float
    """How long each repetition of each contestant lasts."""

    warm_up_plies: int
    """Random plies before random play is timed: the games are then spread over all stages."""

    games: tuple[int, ...] = (64, 1024, 4096)
    positions: tuple[PerftPosition, ...] = POSITIONS


FULL: Final = Effort(repetitions=8, seconds=0.2, warm_up_plies=800)
QUICK: Final = Effort(repetitions=3, seconds=0.02, warm_up_plies=200)


def measure(effort: Effort, *, threads: int, on_progress: Progress | None = None) -> EnvReport:
    """Measure everything, Keisei with one thread and with `threads`."""
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


def _measure_perft(position: PerftPosition, plays_leaves: bool, effort: Effort) -> PerftRow:
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
        from keisei.benchmark import cshogi_loop

        over_cshogi = cshogi_loop.played_leaves if plays_leaves else cshogi_loop.counted_leaves
        cshogi_board = cshogi_loop.board_of(sfen)
        contestants[CSHOGI] = lambda: over_cshogi(cshogi_board, depth)
    if installed_version("rsshogi"):
        from keisei.benchmark import rsshogi_loop

        over_rsshogi = rsshogi_loop.played_leaves if plays_leaves else rsshogi_loop.counted_leaves
        rsshogi_board = rsshogi_loop.board_of(sfen)
        contestants[RSSHOGI] = lambda: over_rsshogi(rsshogi_board, depth)
    return contestants


class _Arena:
    """Contestants at the same positions of the middle of games, and the buffers they write to."""

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
        from keisei.benchmark.cshogi_loop import CshogiLoop, TunedCshogiLoop

        sfens = [format_sfen(unpack_diagram(packed)) for packed in env.packed]
        return {
            name: loop(sfens, self.planes, self.mask, ply_limit=env.ply_limit)
            for name, loop in ((CSHOGI, CshogiLoop), (CSHOGI_TUNED, TunedCshogiLoop))
        }

    def measure(self, outputs: tuple[Output, ...], effort: Effort) -> Iterator[StepRow]:
        """Rows for outputs that are the same work for Keisei, so that it is measured once."""
        contestants: dict[tuple[str, Output | None], Work] = {
            (name, None): self._keisei(env, outputs[-1]) for name, env in self.envs.items()
        }
        for output in outputs:
            for name, loop in self.loops.items():
                contestants[name, output] = self._cshogi(loop, output)
        rates = side_by_side(contestants, repetitions=effort.repetitions, seconds=effort.seconds)
        for output in outputs:
            of_row = {name: rate for (name, of), rate in rates.items() if of in (None, output)}
            yield StepRow(self.games, output.name, of_row)

    def _keisei(self, env: VectorShogi, output: Output) -> Work:
        def step() -> int:
            env.step(env.sample_actions())  # writes packed positions and legal lists
            if output.planes:
                env.planes(self.planes)
            if output.mask:
                env.legal_mask(self.mask)
            return self.games

        return step

    def _cshogi(self, loop: "CshogiLoop", output: Output) -> Work:
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

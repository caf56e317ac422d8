"""The speed of the searches: alpha-beta by depth, the mate search, the tree search's own share.

    python benchmarks/search.py [RUN]

One thread. Alpha-beta counts positions that it valued or looked into. With a RUN, its network is
searched with 64 simulations, and the share of the time that is not the network's is shown.
"""

import sys
import time
from pathlib import Path

import numpy as np
from rich.console import Console
from rich.table import Table

from keisei.benchmark.harness import new_table, print_header, this_machine
from keisei.network.loading import device_config, predictor_of, read_network
from keisei.search.alphabeta import AlphaBeta
from keisei.search.gumbel import TreeSearch
from keisei.search.mates import MateSearch
from keisei.shogi.rng import seed_rng_states
from keisei.shogi.vector import VectorShogi

GAMES = 256
TURNS = 5
ENOUGH = 0.2
"""Seconds that a turn lasts at least."""


def alphabeta_row(env: VectorShogi, depth: int, quiet_plies: int) -> tuple[str, float, float]:
    """(label, nodes per second, milliseconds a position), the best of some turns."""
    random = np.random.default_rng(0)
    best_rate, best_time = 0.0, float("inf")
    for turn in range(TURNS + 1):  # the first compiles
        # A new one each turn: in its table it would find the answers of the turn before.
        bot = AlphaBeta(depth, quiet_plies=quiet_plies)
        start, positions = time.perf_counter(), 0
        while time.perf_counter() - start < ENOUGH and positions < GAMES:
            rows = slice(positions, positions + 8)
            rng_states = seed_rng_states(random, 8)
            bot.search(
                env.positions[rows], env.legal_actions[rows], env.legal_counts[rows], rng_states
            )
            positions += 8
        seconds = time.perf_counter() - start
        if turn:
            best_rate = max(best_rate, bot.nodes / seconds)
            best_time = min(best_time, 1000 * seconds / positions)
    return (
        f"alphabeta:{depth}" + (f",quiet={quiet_plies}" * bool(quiet_plies)),
        best_rate,
        best_time,
    )


def mate_row(env: VectorShogi, plies: int) -> tuple[str, float]:
    """(label, milliseconds a position)."""
    search = MateSearch(plies)
    search.find(env.positions, env.legal_actions, env.legal_counts)
    start = time.perf_counter()
    search.find(env.positions, env.legal_actions, env.legal_counts)
    return f"mate in {plies}", 1000 * (time.perf_counter() - start) / GAMES


def tree_row(env: VectorShogi, run: Path) -> tuple[str, float, float]:
    """(label, simulations per second, share of the time that is not the network's)."""
    inference = predictor_of(read_network(run), device_config("cpu", 1))
    search = TreeSearch(inference, 64)
    random = np.random.default_rng(0)
    games = np.arange(GAMES)
    search.search(env, games[:4], random)
    inference.stopwatch.take()
    start = time.perf_counter()
    search.search(env, games, random)
    seconds = time.perf_counter() - start
    return "tree search", 64 * GAMES / seconds, 1 - inference.stopwatch.take() / seconds


def main() -> None:
    """Measure, and print tables."""
    console = Console()
    print_header(console, this_machine(("numba", "numpy", "torch")))
    env = VectorShogi(GAMES, seed=1, opening_plies=40)
    table: Table = new_table("alpha-beta, after 40 random plies")
    for heading in ("", "M nodes/s", "ms a position"):
        table.add_column(heading, justify="right" if heading else "left")
    for depth, quiet_plies in ((1, 0), (2, 0), (3, 0), (4, 0), (2, 4), (3, 4)):
        label, rate, milliseconds = alphabeta_row(env, depth, quiet_plies)
        table.add_row(label, f"{rate / 1e6:.1f}", f"{milliseconds:.3f}")
    console.print(table)
    for plies in (1, 3, 5):
        label, milliseconds = mate_row(env, plies)
        console.print(f"{label}: {milliseconds:.3f} ms a position")
    if len(sys.argv) > 1:
        label, rate, share = tree_row(env, Path(sys.argv[1]))
        console.print(
            f"{label}: {rate:,.0f} simulations/s, {share:.0%} of the time not the network's"
        )


if __name__ == "__main__":
    main()

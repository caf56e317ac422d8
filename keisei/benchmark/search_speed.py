"""``keisei benchmark search``: alpha-beta by depth, and short mates. One thread.

Alpha-beta counts the positions that it evaluated or expanded. For the tree search: `keisei bench`.
"""

import time
from typing import Final

import numpy as np
from rich.console import Console

from keisei.benchmark.harness import print_header, this_machine
from keisei.formats import new_table
from keisei.search.alphabeta import AlphaBeta
from keisei.search.mates import MateSearch
from keisei.shogi.rng import seed_rng_states
from keisei.shogi.vector import VectorShogi

GAMES: Final = 256
TURNS: Final = 5
SECONDS: Final = 0.2
"""Minimum length of a turn."""


def report_search() -> None:
    """Measure the searches and print tables."""
    console = Console()
    print_header(console, this_machine(("numba", "numpy", "torch")))
    env = VectorShogi(GAMES, seed=1, opening_plies=40)
    table = new_table("alpha-beta, after 40 random plies")
    for heading in ("", "M nodes/s", "ms per position"):
        table.add_column(heading, justify="right" if heading else "left")
    for depth, quiet_plies in ((1, 0), (2, 0), (3, 0), (4, 0), (2, 4), (3, 4)):
        rate, milliseconds = _measure_alphabeta(env, depth, quiet_plies)
        label = f"alphabeta:{depth}" + (f",quiet={quiet_plies}" if quiet_plies else "")
        table.add_row(label, f"{rate / 1e6:.1f}", f"{milliseconds:.3f}")
    console.print(table)
    for plies in (1, 3, 5):
        console.print(f"mate in {plies}: {_measure_mates(env, plies):.3f} ms per position")


def _measure_alphabeta(env: VectorShogi, depth: int, quiet_plies: int) -> tuple[float, float]:
    """Return (nodes per second, milliseconds per position), the best of several turns."""
    random = np.random.default_rng(0)
    best_rate, best_time = 0.0, float("inf")
    for turn in range(TURNS + 1):  # the first turn compiles
        # A new one each turn: its hash table would hold the results of the previous turn.
        bot = AlphaBeta(depth, quiet_plies=quiet_plies)
        start, positions = time.perf_counter(), 0
        while time.perf_counter() - start < SECONDS and positions < GAMES:
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
    return best_rate, best_time


def _measure_mates(env: VectorShogi, plies: int) -> float:
    """Return the milliseconds per position of a search for mates in up to `plies` plies."""
    search = MateSearch(plies)
    search.find(env.positions, env.legal_actions, env.legal_counts)
    start = time.perf_counter()
    search.find(env.positions, env.legal_actions, env.legal_counts)
    return 1000 * (time.perf_counter() - start) / GAMES

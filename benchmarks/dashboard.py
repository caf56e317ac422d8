"""How soon the dashboard shows many long runs, and how closely it follows one that trains.

    python benchmarks/dashboard.py [DIRECTORY] [--runs 50] [--rows 1000000]

Makes runs with that many steps between them (about 1 kB each) in the directory, unless they are
there, or in a temporary one. Then a real browser, Chromium, opens the pages of a dashboard that
has just been started:

- start: from the start of the process until it answers,
- open: from the navigation until the plot of the newest runs is drawn, with their curves, while
  the other runs are still being read,
- table: until every run in the table has its scores and its trend,
- delay: from the moment a step is written to a run's journal until the page shows it, while the
  other runs are still being read.
"""

import argparse
import os
import random
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import orjson
from playwright.sync_api import Page, sync_playwright
from rich.console import Console

from keisei import metric_names as names
from keisei.benchmark.harness import new_table, print_header, this_machine
from keisei.run_files import CONFIG, METRICS

CHROMIUM = os.environ.get("CHROMIUM", "/usr/bin/chromium")
EVALUATED_EVERY = 50
PLIES = 16_384
SECONDS = 5.0
CHANGES = 10
"""Steps whose delay is measured."""

_IS_DRAWN = (
    "() => document.querySelectorAll('.d-compare svg path[stroke^=\"var(--d-\"]').length >= 5"
)
_READING = "() => !document.querySelector('.d-compare')?.textContent.includes('Still reading')"
_TRENDS = "number => document.querySelectorAll('.d-spark polyline[points*=\" \"]').length >= number"


def step(chance: random.Random, update: int, updates: int, start: float) -> dict[str, object]:
    """A step with all metrics, as a tracker would write it."""
    done = update / updates
    metrics = {
        name: (1.0 - 0.8 * done) * (1.0 + 0.2 * chance.random())
        for name in names.MEANINGS
        if "<" not in name
    }
    return {
        "event": "step",
        "update": update,
        "timestep": update * PLIES,
        "total_timesteps": updates * PLIES,
        "games": update * 100,
        "seconds": update * SECONDS,
        "time": start + update * SECONDS,
        "metrics": metrics,
    }


def evaluation(chance: random.Random, like: dict[str, object], done: float) -> dict[str, object]:
    """The scores of a moment."""
    metrics = {}
    for opponent, level in (("random", 0.9), ("greedy", 0.8)):
        score = min(1.0, level * done**0.3 + 0.1 * chance.random())
        values = {"score": score, "low": score - 0.05, "high": score + 0.05}
        values |= {"wins": 100 * score, "draws": 0.0, "losses": 100 * (1 - score)}
        metrics |= {f"eval/{opponent}/{name}": value for name, value in values.items()}
    return {**like, "event": "evaluation", "metrics": metrics}


def write_runs(root: Path, runs: int, rows: int) -> None:
    """Make runs that ended, each an hour after the one before."""
    for number in range(runs):
        directory = root / f"run-{number:03}"
        if (directory / METRICS).exists():
            continue
        directory.mkdir(parents=True, exist_ok=True)
        chance = random.Random(number)
        updates = rows // runs
        start = time.time() - 3600.0 * (runs - number) - updates * SECONDS
        lines = []
        for update in range(1, updates + 1):
            line = step(chance, update, updates, start)
            lines.append(orjson.dumps(line))
            if update % EVALUATED_EVERY == 0:
                lines.append(orjson.dumps(evaluation(chance, line, update / updates)))
        last = {key: value for key, value in line.items() if key != "metrics"}
        lines.append(orjson.dumps({**last, "event": "end", "reason": "finished"}))
        (directory / METRICS).write_bytes(b"\n".join(lines) + b"\n")
        model = {"type": "resnet", "tower_depth": 2, "tower_width": 64}
        (directory / CONFIG).write_bytes(orjson.dumps({"model": model}))


@contextmanager
def dashboard(root: Path) -> Iterator[tuple[str, float]]:
    """(the address of a dashboard that was just started, how long that took)."""
    command = [
        sys.executable,
        "-m",
        "keisei",
        "dashboard",
        str(root),
        "--port",
        "0",
        "--no-browser",
    ]
    begun = time.perf_counter()
    process = subprocess.Popen(
        command, stdout=subprocess.PIPE, text=True, env={**os.environ, "PYTHONUNBUFFERED": "1"}
    )
    try:
        assert process.stdout is not None
        address = re.search(r"http://\S+", process.stdout.readline())
        assert address is not None, "the dashboard did not start"
        yield address[0], time.perf_counter() - begun
    finally:
        process.terminate()
        process.wait()


def time_opening(page: Page, address: str, runs: int) -> tuple[float, float]:
    """Seconds until the plot is drawn with the newest runs, and until the table is complete."""
    begun = time.perf_counter()
    page.goto(address, wait_until="commit")
    page.wait_for_function(_IS_DRAWN, timeout=120_000, polling=50)
    page.wait_for_function(_READING, timeout=120_000, polling=50)
    drawn = time.perf_counter() - begun
    page.wait_for_function(_TRENDS, arg=min(runs, 50), timeout=300_000, polling=100)
    return drawn, time.perf_counter() - begun


def time_delay(page: Page, address: str, run: Path) -> list[float]:
    """Seconds from writing a step until the page of the run shows it."""
    page.goto(f"{address}run/{run.name}")
    page.wait_for_selector(".d-chart svg path", state="attached")
    page.wait_for_load_state("networkidle")
    chance = random.Random(0)
    update = 10_000_000
    delays = []
    for _ in range(CHANGES):
        time.sleep(0.5 + chance.random())  # not in step with the dashboard's own rhythm
        update += 1
        line = orjson.dumps({**step(chance, update, update, time.time() - update * SECONDS)})
        with (run / METRICS).open("ab") as file:
            file.write(line + b"\n")
        begun = time.perf_counter()
        page.wait_for_function(
            "text => document.querySelector('.d-tiles').textContent.includes(text)",
            arg=f"{update:,}",
            timeout=60_000,
            polling=50,
        )
        delays.append(time.perf_counter() - begun)
    return delays


def main() -> None:
    """Make the runs, measure, print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("directory", type=Path, nargs="?")
    parser.add_argument("--runs", type=int, default=50)
    parser.add_argument("--rows", type=int, default=1_000_000)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as temporary:
        root = options.directory or Path(temporary)
        write_runs(root, options.runs, options.rows)
        following = root / "followed"
        following.mkdir(exist_ok=True)
        (following / CONFIG).write_bytes(b"{}")
        (following / METRICS).write_bytes(
            orjson.dumps(step(random.Random(0), 1, 100, time.time() - SECONDS)) + b"\n"
        )
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
            with dashboard(root) as (address, started):
                page = browser.new_page()
                drawn, complete = time_opening(page, address, options.runs)
                delays = time_delay(page, address, following)
            browser.close()
    console = Console()
    print_header(console, this_machine(["nicegui", "orjson"]))
    table = new_table(f"dashboard: {options.runs} runs, {options.rows:,} steps")
    table.add_column("what")
    table.add_column("seconds", justify="right")
    for what, seconds in (
        ("start", started),
        ("open", drawn),
        ("table", complete),
        ("delay, median", sorted(delays)[len(delays) // 2]),
        ("delay, longest", max(delays)),
    ):
        table.add_row(what, f"{seconds:.2f}")
    console.print(table)


if __name__ == "__main__":
    main()

"""``keisei benchmark dashboard``: many long runs in a real browser, and the delay of live updates.

It writes runs with the given number of steps in total (about 1 kB each) to a directory, unless they
are there, and opens the pages of a new dashboard in Chromium:

- start: from the start of the process until it answers,
- open: from the navigation until the plot of the newest runs is drawn, with their curves, while
  the other runs are still being read,
- table: until every run in the table has its scores and its trend,
- delay: from writing a step to a run's journal until the page shows it, while the other runs are
  still being read.
"""

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
from typing import TYPE_CHECKING, Final

import orjson
from rich.console import Console

from keisei import metric_names as names
from keisei.benchmark.harness import print_header, this_machine
from keisei.errors import KeiseiError
from keisei.formats import new_table
from keisei.run_files import CONFIG, METRICS

if TYPE_CHECKING:
    from playwright.sync_api import Page

CHROMIUM: Final = os.environ.get("CHROMIUM", "/usr/bin/chromium")
EVALUATION_INTERVAL: Final = 50
PLIES: Final = 16_384
SECONDS: Final = 5.0
MEASURED_STEPS: Final = 10
"""Number of steps whose delay is measured."""

_IS_DRAWN = (
    "() => document.querySelectorAll('.d-compare svg path[stroke^=\"var(--d-\"]').length >= 5"
)
_READING = "() => !document.querySelector('.d-compare')?.textContent.includes('Still reading')"
_TRENDS = "number => document.querySelectorAll('.d-spark polyline[points*=\" \"]').length >= number"


def report_dashboard(directory: Path | None, runs: int, rows: int) -> None:
    """Write the runs if they are missing, measure the dashboard in a browser, print a table.

    Raises:
        KeiseiError: playwright is not installed.
    """
    try:
        from playwright.sync_api import sync_playwright
    except ImportError as error:
        raise KeiseiError("this benchmark needs playwright: pip install playwright") from error
    with tempfile.TemporaryDirectory() as temporary:
        root = directory or Path(temporary)
        _write_runs(root, runs, rows)
        followed = root / "followed"
        followed.mkdir(exist_ok=True)
        (followed / CONFIG).write_bytes(b"{}")
        (followed / METRICS).write_bytes(
            orjson.dumps(_step(random.Random(0), 1, 100, time.time() - SECONDS)) + b"\n"
        )
        with sync_playwright() as playwright:
            browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
            with _dashboard(root) as (address, started):
                page = browser.new_page()
                drawn, complete = _time_opening(page, address, runs)
                delays = _time_delay(page, address, followed)
            browser.close()
    console = Console()
    print_header(console, this_machine(["nicegui", "orjson"]))
    table = new_table(f"dashboard: {runs} runs, {rows:,} steps")
    table.add_column("")
    table.add_column("seconds", justify="right")
    for label, seconds in (
        ("start", started),
        ("open", drawn),
        ("table", complete),
        ("delay, median", sorted(delays)[len(delays) // 2]),
        ("delay, longest", max(delays)),
    ):
        table.add_row(label, f"{seconds:.2f}")
    console.print(table)


def _step(rng: random.Random, update: int, updates: int, start: float) -> dict[str, object]:
    """Return a step with all metrics, as the journal holds it."""
    done = update / updates
    metrics = {
        name: (1.0 - 0.8 * done) * (1.0 + 0.2 * rng.random())
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


def _evaluation(rng: random.Random, like: dict[str, object], done: float) -> dict[str, object]:
    """Return an evaluation at the time of the step `like`."""
    metrics: dict[str, float] = {}
    for opponent, level in (("random", 0.9), ("greedy", 0.8)):
        score = min(1.0, level * done**0.3 + 0.1 * rng.random())
        values = {"score": score, "low": score - 0.05, "high": score + 0.05}
        values |= {"wins": 100 * score, "draws": 0.0, "losses": 100 * (1 - score)}
        metrics |= {f"eval/{opponent}/{name}": value for name, value in values.items()}
    return {**like, "event": "evaluation", "metrics": metrics}


def _write_runs(root: Path, runs: int, rows: int) -> None:
    """Write finished runs, each an hour later than the previous one."""
    for number in range(runs):
        directory = root / f"run-{number:03}"
        if (directory / METRICS).exists():
            continue
        directory.mkdir(parents=True, exist_ok=True)
        rng = random.Random(number)
        updates = rows // runs
        start = time.time() - 3600.0 * (runs - number) - updates * SECONDS
        lines = []
        for update in range(1, updates + 1):
            line = _step(rng, update, updates, start)
            lines.append(orjson.dumps(line))
            if update % EVALUATION_INTERVAL == 0:
                lines.append(orjson.dumps(_evaluation(rng, line, update / updates)))
        last = {key: value for key, value in line.items() if key != "metrics"}
        lines.append(orjson.dumps({**last, "event": "end", "reason": "finished"}))
        (directory / METRICS).write_bytes(b"\n".join(lines) + b"\n")
        model = {"type": "resnet", "tower_depth": 2, "tower_width": 64}
        (directory / CONFIG).write_bytes(orjson.dumps({"model": model}))


@contextmanager
def _dashboard(root: Path) -> Iterator[tuple[str, float]]:
    """Start a dashboard; yield (its address, seconds until it answered)."""
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


def _time_opening(page: "Page", address: str, runs: int) -> tuple[float, float]:
    """Return the seconds until the plot is drawn, and until the table is complete."""
    begun = time.perf_counter()
    page.goto(address, wait_until="commit")
    page.wait_for_function(_IS_DRAWN, timeout=120_000, polling=50)
    page.wait_for_function(_READING, timeout=120_000, polling=50)
    drawn = time.perf_counter() - begun
    page.wait_for_function(_TRENDS, arg=min(runs, 50), timeout=300_000, polling=100)
    return drawn, time.perf_counter() - begun


def _time_delay(page: "Page", address: str, run: Path) -> list[float]:
    """Return the seconds from writing each step until the page of the run shows it."""
    page.goto(f"{address}run/{run.name}")
    page.wait_for_selector(".d-chart svg path", state="attached")
    page.wait_for_load_state("networkidle")
    rng = random.Random(0)
    update = 10_000_000
    delays = []
    for _ in range(MEASURED_STEPS):
        time.sleep(0.5 + rng.random())  # out of phase with the dashboard's polling
        update += 1
        line = orjson.dumps({**_step(rng, update, update, time.time() - update * SECONDS)})
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

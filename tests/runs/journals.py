"""Journals of runs that never were, written as training writes them."""

import json
from pathlib import Path
from typing import Any

from keisei.callbacks import Callback, EventBus
from keisei.run_files import CONFIG, METRICS
from keisei.runs.journal import JournalEntry
from keisei.training.trackers import JsonlTracker
from tests.training.fake_run import fake_events


def entry(event: str, update: int, **fields: Any) -> JournalEntry:
    """A line of a journal; an update has 100 plies and takes two seconds."""
    return JournalEntry(
        event=event,
        update=update,
        timestep=100 * update,
        total_timesteps=10_000,
        games=update,
        seconds=2.0 * update,
        time=1000.0 + 2.0 * update,
        **fields,
    )


def step(update: int, **metrics: float) -> bytes:
    """A step with some metrics, whose names are written with two underscores for a slash."""
    named = {name.replace("__", "/"): value for name, value in metrics.items()}
    return entry("step", update, metrics=named).to_line()


def evaluation(update: int, score: float, opponent: str = "greedy") -> bytes:
    stem = f"eval/{opponent}"
    metrics = {
        f"{stem}/score": score,
        f"{stem}/low": max(0.0, score - 0.1),
        f"{stem}/high": min(1.0, score + 0.1),
        f"{stem}/wins": 40.0,
        f"{stem}/draws": 0.0,
        f"{stem}/losses": 60.0,
    }
    return entry("evaluation", update, metrics=metrics).to_line()


def new_run(root: Path, name: str, *lines: bytes, config: dict[str, Any] | None = None) -> Path:
    """A run with these lines in its journal."""
    run = root / name
    run.mkdir(parents=True)
    model = {"model": {"type": "resnet", "tower_depth": 2, "tower_width": 64}}
    (run / CONFIG).write_text(json.dumps(model if config is None else config))
    (run / METRICS).write_bytes(b"".join(lines))
    return run


def append(run: Path, *lines: bytes) -> None:
    with (run / METRICS).open("ab") as file:
        file.write(b"".join(lines))


def fake_journal(root: Path, name: str, updates: int = 60) -> Path:
    """A whole run with every metric, through the tracker that training uses."""
    run = new_run(root, name)
    (run / METRICS).unlink()
    callbacks: list[Callback] = [JsonlTracker(run)]
    bus = EventBus(callbacks)
    for event in fake_events(run, updates=updates):
        bus.emit(event)
    return run

"""``heartbeat.json``: written while nothing else happens, and read as a sign of life."""

import time
from pathlib import Path

import pytest

from keisei.callbacks import EventBus, PhaseProgress, StopRequested, TrainingEnd
from keisei.run_files import HEARTBEAT
from keisei.runs.folder import RunsFolder
from keisei.runs.heartbeat import HEARTBEAT_TIMEOUT, RunHeartbeat, parse_heartbeat
from keisei.runs.listing import read_overview
from keisei.runs.watch import Watch
from keisei.training.writers import HeartbeatWriter
from tests.runs.journals import append, entry, new_run, step
from tests.training.fake_run import fake_config, fake_start, progress_at

WRITTEN = 1020.0
"""When the last line of `slow_run` was written."""


def heartbeat_of(run: Path) -> RunHeartbeat | None:
    path = run / HEARTBEAT
    return parse_heartbeat(path.read_bytes() if path.exists() else None)


def wait_for(run: Path, phase: str) -> RunHeartbeat:
    deadline = time.monotonic() + 20.0
    while time.monotonic() < deadline:
        found = heartbeat_of(run)
        if found is not None and found.progress.phase == phase:
            return found
        time.sleep(0.01)
    raise AssertionError(f"no heartbeat of the phase {phase}")


def test_a_thread_writes_while_nothing_happens(tmp_path: Path) -> None:
    bus = EventBus([HeartbeatWriter(tmp_path, interval=0.02)])
    bus.emit(fake_start(tmp_path, fake_config(), 0, 10))
    first = wait_for(tmp_path, "starting")
    bus.emit(PhaseProgress("learning", 3, 10))
    bus.emit(StopRequested())
    second = wait_for(tmp_path, "learning")
    assert second.time > first.time
    assert (second.progress.done, second.progress.total) == (3, 10)
    assert not first.is_stopping
    time.sleep(0.1)
    third = heartbeat_of(tmp_path)
    assert third is not None
    assert third.time > second.time, "it stands still during a long phase"
    assert third.is_stopping
    bus.emit(TrainingEnd("interrupted", progress_at(1, 10)))
    assert not (tmp_path / HEARTBEAT).exists()


def test_a_directory_that_cannot_be_written_is_ignored(tmp_path: Path) -> None:
    bus = EventBus([HeartbeatWriter(tmp_path / "nowhere", interval=0.01)])
    bus.emit(fake_start(tmp_path, fake_config(), 0, 10))
    time.sleep(0.05)
    bus.emit(TrainingEnd("finished", progress_at(1, 10)))
    assert not (tmp_path / "nowhere").exists()


def slow_run(root: Path) -> Path:
    """A run whose steps take two seconds, and that has written nothing since `WRITTEN`."""
    start = entry("start", 0).to_line()
    return new_run(root, "slow", start, *(step(update) for update in range(1, 11)))


def beat(run: Path, moment: float, *, is_stopping: bool = False) -> None:
    progress = PhaseProgress("evaluating", 120, 400)
    (run / HEARTBEAT).write_bytes(RunHeartbeat(moment, progress, is_stopping).to_json())


def test_a_silent_run_is_running_while_its_heart_beats(tmp_path: Path) -> None:
    run = slow_run(tmp_path)
    now = WRITTEN + 3600.0
    assert read_overview(run, now=now).state == "interrupted"
    beat(run, now - 4.0)
    overview = read_overview(run, now=now)
    assert (overview.state, overview.note) == ("running", "")
    assert overview.activity == "evaluating 120 of up to 400 games"
    assert overview.as_dict()["activity"] == overview.activity
    beat(run, now - 4.0, is_stopping=True)
    assert read_overview(run, now=now).activity.endswith("; ends after this update")
    later = now + HEARTBEAT_TIMEOUT
    overview = read_overview(run, now=later)
    assert (overview.state, overview.note, overview.activity) == ("interrupted", "killed", "")


def test_the_end_of_a_run_counts_more_than_its_heartbeat(tmp_path: Path) -> None:
    run = slow_run(tmp_path)
    append(run, entry("end", 10, reason="finished").to_line())
    beat(run, WRITTEN + 1.0)
    overview = read_overview(run, now=WRITTEN + 2.0)
    assert (overview.state, overview.activity) == ("finished", "")


def test_lines_are_signs_of_life_too(tmp_path: Path) -> None:
    """A full disk may keep the heartbeat from being replaced."""
    run = slow_run(tmp_path)
    beat(run, WRITTEN - 500.0)
    assert read_overview(run, now=WRITTEN + 100.0).state == "running"
    beat(run, WRITTEN - 1.0)
    assert read_overview(run, now=WRITTEN + HEARTBEAT_TIMEOUT - 0.5).state == "running"


def test_the_dashboard_follows_the_heartbeat(tmp_path: Path) -> None:
    run = slow_run(tmp_path)
    moment = WRITTEN + 3600.0
    watch = Watch(RunsFolder(tmp_path), clock=lambda: moment)
    watch.refresh()
    while watch.read_chunk():
        pass
    assert watch.overviews()[0].state == "interrupted"
    beat(run, moment)
    watch.refresh()
    assert watch.overviews()[0].state == "running"
    assert watch.overviews()[0].heartbeat is not None


@pytest.mark.parametrize(
    "data",
    [None, b"", b"{", b"[]", b'{"time": 1}', b'"x"', b'{"time": "x", "phase": "playing"}',
     b'{"time": 1, "phase": "dancing", "done": 0, "total": 0, "is_stopping": false}',
     b'{"time": 1e999, "phase": "playing", "done": 1e999, "total": 0, "is_stopping": false}'],
)  # fmt: skip
def test_a_broken_file_is_no_heartbeat(data: bytes | None) -> None:
    assert parse_heartbeat(data) is None

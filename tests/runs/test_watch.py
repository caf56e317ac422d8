"""Watching a folder: runs that come and go, news, and nothing that stops it."""

import shutil
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from keisei.run_files import LIVE
from keisei.runs.folder import RunsFolder
from keisei.runs.watch import Watch
from tests.runs.journals import append, entry, new_run, step


def watch_of(root: Path, now: float = 1002.0) -> Watch:
    return Watch(RunsFolder(root), interval=0.01, clock=lambda: now)


def read_all(watch: Watch) -> None:
    while watch.read_chunk():
        pass


def test_runs_come_and_go(tmp_path: Path) -> None:
    (tmp_path / "not a run").mkdir()
    (tmp_path / "file").write_text("")
    watch = watch_of(tmp_path)
    watch.refresh()
    assert watch.runs == {}
    first = watch.version
    run = new_run(tmp_path, "one", step(1, a=1.0))
    watch.refresh()
    read_all(watch)
    assert list(watch.runs) == ["one"]
    assert watch.version != first
    shutil.rmtree(run)
    watch.refresh()
    assert watch.runs == {}


def test_a_run_that_was_begun_a_moment_ago_is_found(tmp_path: Path) -> None:
    watch = watch_of(tmp_path)
    watch.refresh()
    new_run(tmp_path, "new", step(1, a=1.0))
    found = watch.find("new")
    assert found is not None
    watch.refresh()
    assert watch.runs["new"] is found  # the one that the page shows is the one that is read on
    assert watch.find("none") is None


def test_the_version_changes_with_news_only(tmp_path: Path) -> None:
    run = new_run(tmp_path, "one", step(1, a=1.0))
    watch = watch_of(tmp_path)
    watch.refresh()
    read_all(watch)
    version = watch.version
    watch.refresh()
    assert watch.version == version
    append(run, step(2, a=2.0))
    watch.refresh()
    assert watch.version != version
    assert watch.runs["one"].steps == 2


def test_prioritized_runs_are_read_first_then_the_newest(tmp_path: Path) -> None:
    for number in range(4):
        new_run(tmp_path, f"run{number}", step(10 * number + 1, a=1.0))
    watch = watch_of(tmp_path)
    watch.refresh()
    watch.prioritize(["run1"])
    order = []
    while watch.read_chunk():
        order += [name for name, run in watch.runs.items() if run.is_read and name not in order]
    assert order[0] == "run1"
    assert set(order) == {"run0", "run1", "run2", "run3"}


def test_live_games_are_those_of_runs_that_run(tmp_path: Path) -> None:
    for name, more in (("on", b""), ("over", entry("end", 1, reason="finished").to_line())):
        run = new_run(tmp_path, name, step(1, a=1.0), more)
        (run / LIVE).write_text('{"time": 1.0, "update": 1, "games": [{"sfen": "x"}]}')
    watch = watch_of(tmp_path)
    watch.refresh()
    read_all(watch)
    watch.refresh()
    assert watch.live("over") is None
    live = watch.live("on")
    assert live is not None
    assert live.boards[0].sfen == "x"


@pytest.mark.parametrize("text", ["", "{}", "[]", '{"time": 1, "update": 1, "games": [3]}'])
def test_a_broken_file_of_live_games_is_ignored(tmp_path: Path, text: str) -> None:
    run = new_run(tmp_path, "one", step(1, a=1.0))
    (run / LIVE).write_text(text)
    watch = watch_of(tmp_path)
    watch.refresh()
    read_all(watch)
    watch.refresh()
    assert watch.live("one") is None


def test_the_thread_follows_a_run_and_ends(tmp_path: Path) -> None:
    run = new_run(tmp_path, "one", step(1, a=1.0))
    came = threading.Event()
    with watch_of(tmp_path) as watch:
        append(run, step(2, a=2.0))
        while not came.wait(0.005):
            if watch.runs["one"].steps == 2:
                came.set()
    assert not watch._thread.is_alive()


def test_a_failure_does_not_end_the_thread(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    new_run(tmp_path, "one", step(1, a=1.0))
    watch = watch_of(tmp_path)
    failed, went_on = threading.Event(), threading.Event()

    def refresh() -> None:
        if not failed.is_set():
            failed.set()
            raise RuntimeError("a bad day")
        went_on.set()

    watch._thread.start()
    monkeypatch.setattr(watch, "refresh", refresh)
    assert went_on.wait(20.0)
    watch.__exit__()


def test_nothing_is_written_into_the_folder(tmp_path: Path) -> None:
    new_run(tmp_path, "one", step(1, a=1.0))
    before = {path: path.stat().st_mtime_ns for path in [tmp_path, *tmp_path.rglob("*")]}
    watch = watch_of(tmp_path)
    watch.refresh()
    read_all(watch)
    watch.refresh()
    assert before == {path: path.stat().st_mtime_ns for path in [tmp_path, *tmp_path.rglob("*")]}


def test_it_needs_neither_torch_nor_numba() -> None:
    code = (
        "import sys, keisei.runs.watch, keisei.runs.artifacts;"
        "print(sorted({'torch', 'numba', 'matplotlib', 'nicegui'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"

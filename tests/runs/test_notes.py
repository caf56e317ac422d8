"""Notes, tags and the archive of a run."""

import os
import sys
from pathlib import Path

import pytest

from keisei.errors import KeiseiError
from keisei.run_files import HEARTBEAT, NOTES
from keisei.runs.control import is_training
from keisei.runs.folder import OutsideError, RunsFolder
from keisei.runs.listing import read_overview
from keisei.runs.notes import EMPTY_NOTES, RunNotes, parse_notes, read_notes, write_notes
from keisei.runs.watch import Watch
from tests.runs.journals import new_run, step

SOME = RunNotes("the first with 飛車\n", ("baseline", "種"), is_archived=True)


def test_notes_are_kept_beside_the_run(tmp_path: Path) -> None:
    assert read_notes(tmp_path) == EMPTY_NOTES
    write_notes(tmp_path, SOME)
    assert read_notes(tmp_path) == SOME
    write_notes(tmp_path, EMPTY_NOTES)
    assert not (tmp_path / NOTES).exists(), "no file for nothing"


def test_lists_have_tags_and_archive(tmp_path: Path) -> None:
    run = new_run(tmp_path, "one", step(1))
    write_notes(run, SOME)
    overview = read_overview(run, now=0.0)
    assert overview.notes == SOME
    fields = overview.as_dict()
    assert (fields["tags"], fields["is_archived"]) == (["baseline", "種"], True)


def test_the_dashboard_reads_and_writes_them(tmp_path: Path) -> None:
    run = new_run(tmp_path, "one", step(1))
    watch = Watch(RunsFolder(tmp_path))
    watch.refresh()
    reader = watch.runs["one"]
    version = reader.version
    write_notes(run, SOME)  # by another dashboard
    watch.refresh()
    assert reader.notes == SOME
    assert reader.version != version, "pages notice it"
    reader.set_notes(EMPTY_NOTES)
    assert read_notes(run) == EMPTY_NOTES == reader.overview(0.0).notes


def test_notes_that_are_nested_too_deeply_are_empty(tmp_path: Path) -> None:
    run = new_run(tmp_path, "one", step(1))
    (run / NOTES).write_bytes(b"[" * 200_000)
    assert read_overview(run, now=0.0).notes == EMPTY_NOTES
    watch = Watch(RunsFolder(tmp_path))
    watch.refresh()
    assert watch.runs["one"].notes == EMPTY_NOTES


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes")
def test_a_pipe_in_place_of_a_file_is_not_waited_for(tmp_path: Path) -> None:
    run = new_run(tmp_path, "one", step(1))
    for name in (NOTES, HEARTBEAT):
        os.mkfifo(run / name)
    assert read_overview(run, now=0.0).notes == EMPTY_NOTES
    assert not is_training(run)


@pytest.mark.skipif(sys.platform == "win32", reason="links need privileges there")
def test_notes_outside_are_not_read(tmp_path: Path) -> None:
    run = new_run(tmp_path / "runs", "one", step(1))
    write_notes(tmp_path, SOME)
    (run / NOTES).symlink_to(tmp_path / NOTES)
    overview = read_overview(run, now=0.0)
    assert (overview.state, overview.notes) == ("broken", EMPTY_NOTES)


@pytest.mark.skipif(sys.platform == "win32", reason="links need privileges there")
def test_no_file_outside_is_written(tmp_path: Path) -> None:
    runs = tmp_path / "runs"
    run = new_run(runs, "one", step(1))
    secret = tmp_path / "secret"
    secret.write_text("old")
    (run / NOTES).symlink_to(secret)
    watch = Watch(RunsFolder(runs))
    watch.refresh()
    with pytest.raises(OutsideError):
        watch.runs["one"].set_notes(SOME)
    assert secret.read_text() == "old"


@pytest.mark.parametrize(
    ("text", "tags", "problem"),
    [
        ("x" * 20_001, "", "20,001 characters"),
        ("", " ".join(f"t{number}" for number in range(21)), "up to 20 tags"),
        ("", "y" * 41, "longer than 40"),
    ],
)
def test_too_much_is_refused(text: str, tags: str, problem: str) -> None:
    with pytest.raises(KeiseiError, match=problem):
        RunNotes.of(text, tags, is_archived=False)


@pytest.mark.parametrize("data", [None, b"", b"[]", b"{}", b'{"text": 1, "tags": 2}', b"\xff"])
def test_a_broken_file_is_empty_notes(data: bytes | None) -> None:
    assert parse_notes(data) == EMPTY_NOTES

"""The list of runs: every state that files can be in."""

import json
import os
from pathlib import Path

import pytest

from keisei.callbacks import EventBus, TrainingEnd
from keisei.errors import KeiseiError
from keisei.runs import journal
from keisei.runs.folder import RunsFolder
from keisei.runs.listing import list_runs, read_overview
from keisei.runs.run_reader import RunReader
from keisei.training.trackers import JsonlTracker
from tests.training.fake_run import PLIES_PER_STEP, fake_evaluation, fake_events

LONG_AGO, SOON = 0.0, 10.0**12


def make_run(
    root: Path, name: str, *, reason: str = "finished", last: int = 10, is_killed: bool = False
) -> Path:
    directory = root / name
    directory.mkdir(parents=True)
    bus = EventBus([JsonlTracker(directory)])
    for event in fake_events(directory, updates=20, last=last, reason=reason):
        if not (is_killed and isinstance(event, TrainingEnd)):
            bus.emit(event)
    return directory


def test_an_overview_of_a_run(tmp_path: Path) -> None:
    run = read_overview(make_run(tmp_path, "one"), now=SOON)
    assert (run.name, run.state, run.note) == ("one", "finished", "")
    assert (run.timestep, run.total_timesteps) == (10 * PLIES_PER_STEP, 20 * PLIES_PER_STEP)
    assert (run.update, run.games, run.seconds) == (10, 1_300, 60.0)
    assert (run.model, run.parameters) == ("resnet 2x64", 213_504)
    assert list(run.scores) == ["random", "greedy"]
    assert run.scores["greedy"].games == 128


def test_a_late_evaluation_does_not_set_a_run_back(tmp_path: Path) -> None:
    directory = make_run(tmp_path, "one", is_killed=True)
    tracker = JsonlTracker(directory)
    tracker._is_ready = True
    tracker.on_evaluation(fake_evaluation(7, 20))
    run = read_overview(directory, now=SOON)
    assert (run.update, run.games, run.seconds) == (10, 1_300, 60.0)
    assert run.scores["greedy"].score == fake_evaluation(10, 20).scores["greedy"].score


@pytest.mark.parametrize(
    ("reason", "state", "note"),
    [
        ("finished", "finished", ""),
        ("time limit", "finished", ""),
        ("interrupted", "interrupted", ""),
        ("the loss is not a number", "failed", "the loss is not a number"),
    ],
)
def test_the_state_follows_from_the_end(tmp_path: Path, reason: str, state: str, note: str) -> None:
    run = read_overview(make_run(tmp_path, "one", reason=reason), now=SOON)
    assert (run.state, run.note) == (state, note)


def test_a_run_without_end_is_running_or_was_killed(tmp_path: Path) -> None:
    directory = make_run(tmp_path, "one", is_killed=True)
    assert read_overview(directory, now=LONG_AGO).state == "running"
    run = read_overview(directory, now=SOON)
    assert (run.state, run.note) == ("interrupted", "killed")


def test_a_resumed_run_is_running_again(tmp_path: Path) -> None:
    directory = make_run(tmp_path, "one", reason="interrupted")
    EventBus([JsonlTracker(directory)]).emit(next(fake_events(directory, updates=20, first=10)))
    assert read_overview(directory, now=LONG_AGO).state == "running"


def test_broken_directories_are_listed_last_with_the_reason(tmp_path: Path) -> None:
    make_run(tmp_path, "a-good-one")
    (tmp_path / "an-empty-one").mkdir()
    (make_run(tmp_path, "bad-settings") / "config.json").write_text("{")
    (make_run(tmp_path, "bad-journal") / "metrics.jsonl").write_bytes(b"\x00\xff garbage")
    (make_run(tmp_path, "odd-settings") / "config.json").write_text('{"model": 3}')
    (tmp_path / "a-file").write_text("no directory")
    runs = {run.name: run for run in list_runs(tmp_path, now=SOON)}
    assert [name for name in runs if runs[name].state != "broken"] == ["a-good-one", "odd-settings"]
    assert list(runs)[2:] == ["an-empty-one", "bad-journal", "bad-settings"]
    assert "metrics.jsonl" in runs["an-empty-one"].note
    assert "is not JSON" in runs["bad-settings"].note
    assert "no readable line" in runs["bad-journal"].note
    assert runs["odd-settings"].model == ""


def test_runs_are_sorted_by_their_start(tmp_path: Path) -> None:
    for name in ("b", "a"):
        make_run(tmp_path, name, last=1)
    assert [run.name for run in list_runs(tmp_path)] == ["b", "a"]


def test_a_directory_that_is_not_there_is_explained(tmp_path: Path) -> None:
    with pytest.raises(KeiseiError, match=r"there is no directory .*missing; `keisei train`"):
        list_runs(tmp_path / "missing")


@pytest.mark.parametrize(
    ("max_minutes", "fraction"), [(0, 0.5), (1.25, 0.8), (0.5, 1.0), ("x", 0.5)]
)
def test_the_time_limit_counts_as_much_as_the_plies(
    tmp_path: Path, max_minutes: object, fraction: float
) -> None:
    directory = make_run(tmp_path, "one")  # half of its plies, in 60 s
    config = json.loads((directory / "config.json").read_bytes())
    config["run"]["max_minutes"] = max_minutes
    (directory / "config.json").write_text(json.dumps(config))
    assert read_overview(directory, now=SOON).fraction_done == pytest.approx(fraction)


DEEP = "[" * 200_000


@pytest.mark.parametrize("name", ["config.json", "heartbeat.json", "metrics.jsonl"])
def test_one_hostile_file_hides_no_other_run(tmp_path: Path, name: str) -> None:
    """Before, JSON nested deeply in one run ended `keisei runs` for the whole folder."""
    make_run(tmp_path, "good")
    bad = make_run(tmp_path, "bad")
    (bad / name).write_text(DEEP, encoding="utf-8")
    assert {run.name for run in list_runs(tmp_path)} == {"good", "bad"}


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes here")
@pytest.mark.parametrize("name", ["config.json", "heartbeat.json", "metrics.jsonl"])
def test_pipes_are_not_read(tmp_path: Path, name: str) -> None:
    """Before, a pipe in place of a file blocked `keisei runs` for ever."""
    make_run(tmp_path, "good")
    bad = make_run(tmp_path, "bad")
    (bad / name).unlink(missing_ok=True)
    os.mkfifo(bad / name)
    runs = {run.name: run for run in list_runs(tmp_path)}
    assert runs.keys() == {"good", "bad"}
    if name != "heartbeat.json":
        assert (runs["bad"].state, "not a regular file" in runs["bad"].note) == ("broken", True)


def test_a_journal_beyond_any_plausible_size_is_not_read(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Before, 20 GB of zeros, which take no room on a disk, held up `keisei runs` for 37 s."""
    monkeypatch.setattr(journal, "MAX_JOURNAL_BYTES", 1 << 20)
    make_run(tmp_path, "good")
    with (make_run(tmp_path, "bad") / "metrics.jsonl").open("wb") as file:
        file.truncate((1 << 20) + 1)
    runs = {run.name: run for run in list_runs(tmp_path)}
    data = RunReader(RunsFolder(tmp_path), "bad")
    data.read_tail()
    assert not data.read()
    assert runs["good"].state == "finished"
    for overview in (runs["bad"], data.overview(SOON)):
        assert overview.state == "broken"
        assert "it has 1,048,577 bytes, and up to 1,048,576 are read" in overview.note


@pytest.mark.parametrize("target", ["a file", "the directory"])
def test_links_that_lead_out_are_not_followed(tmp_path: Path, target: str) -> None:
    outside = make_run(tmp_path / "elsewhere", "secret")
    runs = tmp_path / "runs"
    inside = make_run(runs, "one")
    try:
        (runs / "same").symlink_to(inside, target_is_directory=True)
        if target == "a file":
            (inside / "config.json").unlink()
            (inside / "config.json").symlink_to(outside / "config.json")
            (runs / "same").unlink()
        else:
            (runs / "linked").symlink_to(outside, target_is_directory=True)
    except OSError as error:
        pytest.skip(f"no symbolic links here: {error}")
    found = {run.name: run for run in list_runs(runs)}
    bad = found.pop("one" if target == "a file" else "linked")
    assert (bad.state, "a link leads out of" in bad.note) == ("broken", True)
    assert all(run.state == "finished" for run in found.values())

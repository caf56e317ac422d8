"""Nothing outside of the folder is read, whatever the path and wherever links lead."""

import os
import shutil
import sys
from pathlib import Path

import pytest

from keisei.errors import KeiseiError
from keisei.run_files import (
    CONFIG,
    LIVE,
    METRICS,
    STRENGTH,
)
from keisei.runs.artifacts import list_games, list_run_checkpoints, open_game, read_ratings
from keisei.runs.folder import MAX_FILE_BYTES, OutsideError, RunsFolder
from keisei.runs.run_reader import RunReader, read_live
from keisei.runs.watch import Watch
from tests.runs.journals import append, entry, evaluation, new_run, step

needs_links = pytest.mark.skipif(sys.platform == "win32", reason="links need privileges there")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A folder with a run, and secrets beside it."""
    new_run(tmp_path / "runs", "good", step(1, a=1.0))
    new_run(tmp_path, "secret", step(1, a=666.0))
    (tmp_path / "secret.txt").write_text("secret")
    return tmp_path / "runs"


NAMES = [
    "..", ".", "", "/", "../secret", "..\\secret", "good/../../secret", "/etc", "good/..",
    "good/", "good\0", "\0", "%2e%2e", "....//", "C:\\", "~", "good/checkpoints", "nothing",
]  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_only_names_of_runs_are_runs(root: Path, name: str) -> None:
    with pytest.raises(KeiseiError):
        RunsFolder(root).run(name)
    with pytest.raises(KeiseiError):
        open_game(RunsFolder(root), name, "update-000001-a-vs-b.kif")


def test_a_run_with_a_similar_name_is_suggested(root: Path) -> None:
    with pytest.raises(KeiseiError, match=r"there is no run goood in .*runs; did you mean good\?$"):
        RunsFolder(root).run("goood")
    with pytest.raises(KeiseiError) as caught:
        RunsFolder(root).run("secrets")  # like one that is outside
    assert "did you mean" not in str(caught.value)


@pytest.mark.parametrize(
    "parts",
    [
        ("..", "secret.txt"),
        ("good", "..", "..", "secret.txt"),
        ("good/../../secret.txt",),
        ("/etc/passwd",),
        ("good", "/etc/passwd"),
        ("good", "a\0b"),
    ],
)
def test_paths_that_lead_out_are_refused(root: Path, parts: tuple[str, ...]) -> None:
    folder = RunsFolder(root)
    with pytest.raises(OutsideError):
        folder.resolve(*parts)
    assert folder.read(*parts) is None


def test_a_path_in_the_folder_is_found(root: Path) -> None:
    folder = RunsFolder(root)
    assert folder.resolve("good", CONFIG) == (root / "good" / CONFIG).resolve()
    assert folder.run("good").name == "good"
    assert folder.runs() == ["good"]


@needs_links
def test_a_folder_that_is_a_link_itself_is_fine(root: Path) -> None:
    link = root.parent / "link"
    link.symlink_to(root)
    assert RunsFolder(link).runs() == ["good"]
    assert RunsFolder(link).read("good", METRICS)


@needs_links
@pytest.mark.parametrize("target", ["../secret", "good"])
def test_links_to_directories_are_not_runs(root: Path, target: str) -> None:
    (root / "link").symlink_to(target)
    folder = RunsFolder(root)
    assert folder.runs() == ["good"]
    assert folder.links() == ["link"]
    with pytest.raises(KeiseiError):
        folder.run("link")
    watch = Watch(folder)
    watch.refresh()
    while watch.read_chunk():
        pass
    assert list(watch.runs) == ["good"]


@needs_links
def test_links_to_files_outside_are_not_read(root: Path) -> None:
    run, secret = root / "good", root.parent / "secret"
    (run / METRICS).unlink()
    (run / METRICS).symlink_to(secret / METRICS)
    for name in (LIVE, STRENGTH):
        (secret / name).write_text("{}")
        (run / name).symlink_to(secret / name)
    folder = RunsFolder(root)
    data = RunReader(folder, "good")
    data.read_tail()
    data.read()
    assert data.steps == 0
    assert "leads out" in data.overview(now=0.0).note
    assert read_live(folder, "good") is None
    assert read_ratings(folder, "good") is None
    assert folder.read("good", METRICS) is None


@needs_links
def test_settings_behind_a_link_are_not_read(root: Path) -> None:
    (root / "good" / CONFIG).unlink()
    (root / "good" / CONFIG).symlink_to(root.parent / "secret" / CONFIG)
    data = RunReader(RunsFolder(root), "good")
    data.read()
    assert data.config == {}


@needs_links
def test_a_directory_that_becomes_a_link_is_not_followed(root: Path) -> None:
    folder = RunsFolder(root)
    data = RunReader(folder, "good")
    data.read()
    (root / "good").rename(root.parent / "moved")
    (root / "good").symlink_to(root.parent / "secret")
    data.read()
    assert data.curve("a", "update").mean.tolist() == [1.0]
    assert folder.runs() == []


@needs_links
def test_games_behind_links_are_not_read(root: Path) -> None:
    games = root.parent / "games"
    games.mkdir()
    (games / "update-000001-a-vs-b.kif").write_text("secret")
    (root / "good" / "games").symlink_to(games)
    assert list_games(RunsFolder(root), "good") == []
    (root / "good" / "games").unlink()
    (root / "good" / "games").mkdir()
    name = "update-000002-a-vs-b.kif"
    (root / "good" / "games" / name).symlink_to(games / "update-000001-a-vs-b.kif")
    with pytest.raises(OutsideError):
        open_game(RunsFolder(root), "good", name)


def checkpoint(run: Path, timestep: int) -> Path:
    path = run / "checkpoints" / f"step-{timestep:012}"
    path.mkdir(parents=True)
    (path / "manifest.json").write_text("{}")
    return path


@pytest.mark.parametrize(
    "path",
    ["../../secret/checkpoints/step-000000000100", "checkpoints/..", "/etc", "", "checkpoints"],
)
def test_checkpoints_that_only_the_journal_knows_are_not_offered(root: Path, path: str) -> None:
    checkpoint(root.parent / "secret", 100)
    append(root / "good", entry("checkpoint", 1, path=path).to_line())
    data = RunReader(RunsFolder(root), "good")
    data.read()
    assert len(data.checkpoints) == 1
    assert list_run_checkpoints(RunsFolder(root), data) == []


@needs_links
def test_checkpoints_behind_links_are_not_offered(root: Path) -> None:
    there = checkpoint(root.parent / "secret", 100)
    checkpoint(root / "good", 50)
    (root / "good" / "checkpoints" / there.name).symlink_to(there)
    data = RunReader(RunsFolder(root), "good")
    data.read()
    assert [found.timestep for found in list_run_checkpoints(RunsFolder(root), data)] == [50]
    new_run(root, "other")
    (root / "other" / "checkpoints").symlink_to(there.parent)
    assert list_run_checkpoints(RunsFolder(root), RunReader(RunsFolder(root), "other")) == []


def test_checkpoints_that_are_there_are_offered(root: Path) -> None:
    for update in (1, 2, 3):
        path = checkpoint(root / "good", 100 * update)
        append(
            root / "good",
            evaluation(update, update / 10),
            entry("checkpoint", update, path=f"checkpoints/{path.name}").to_line(),
        )
    shutil.rmtree(root / "good" / "checkpoints" / "step-000000000100")
    (root / "good" / "checkpoints" / "step-000000000200" / "manifest.json").unlink()
    checkpoint(root / "good", 250)  # not in the journal
    data = RunReader(RunsFolder(root), "good")
    data.read()
    newest, other = list_run_checkpoints(RunsFolder(root), data)
    assert (newest.name, newest.timestep, newest.update) == ("step-000000000300", 300, 3)
    assert newest.scores["greedy"].score == 0.3
    assert (other.timestep, other.update, other.scores) == (250, None, {})


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes")
def test_a_pipe_is_not_waited_for(root: Path) -> None:
    (root / "good" / METRICS).unlink()
    os.mkfifo(root / "good" / METRICS)
    data = RunReader(RunsFolder(root), "good")
    data.read_tail()
    data.read()
    assert "not a regular file" in data.overview(now=0.0).note


def test_a_huge_file_is_not_read_as_a_whole(root: Path) -> None:
    with (root / "good" / LIVE).open("wb") as file:
        file.truncate(MAX_FILE_BYTES + 1)
    assert RunsFolder(root).read("good", LIVE) is None


def test_a_folder_that_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(KeiseiError, match=r"no directory .*nowhere.*keisei train"):
        RunsFolder(tmp_path / "nowhere")


def test_a_run_is_not_a_folder_of_runs(root: Path) -> None:
    with pytest.raises(KeiseiError, match="is a run; the dashboard shows the directory"):
        RunsFolder(root / "good")

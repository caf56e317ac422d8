"""Nothing outside of the folder is read, whatever the path and wherever links lead."""

import os
import sys
from pathlib import Path

import pytest

from keisei.dashboard.checkpoints import playable
from keisei.dashboard.folder import MAX_FILE_BYTES, OutsideError, RunsFolder
from keisei.dashboard.games import list_games, open_game
from keisei.dashboard.live import read_live
from keisei.dashboard.run_data import RunData
from keisei.dashboard.strength import read_ratings
from keisei.dashboard.watch import Watch
from keisei.errors import KeiseiError
from keisei.run_files import CONFIG, LIVE, METRICS, STRENGTH
from tests.dashboard.journals import entry, new_run, step

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
def test_links_to_directories_are_no_runs(root: Path, target: str) -> None:
    (root / "link").symlink_to(target)
    folder = RunsFolder(root)
    assert folder.runs() == ["good"]
    assert folder.links() == ["link"]
    with pytest.raises(KeiseiError):
        folder.run("link")
    watch = Watch(folder)
    watch.look()
    watch.load_all()
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
    data = RunData(folder, "good")
    data.glimpse()
    data.read()
    assert data.steps == 0
    assert "leads out" in data.summary(now=0.0).note
    assert read_live(folder, "good") is None
    assert read_ratings(folder, "good") is None
    assert folder.read("good", METRICS) is None


@needs_links
def test_settings_behind_a_link_are_not_read(root: Path) -> None:
    (root / "good" / CONFIG).unlink()
    (root / "good" / CONFIG).symlink_to(root.parent / "secret" / CONFIG)
    data = RunData(RunsFolder(root), "good")
    data.read()
    assert data.config == {}


@needs_links
def test_a_directory_that_becomes_a_link_is_not_followed(root: Path) -> None:
    folder = RunsFolder(root)
    data = RunData(folder, "good")
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


@pytest.mark.parametrize(
    "path",
    ["../../secret/checkpoints/step-1", "checkpoints/..", "/etc", "checkpoints/../../../x", ""],
)
def test_checkpoints_elsewhere_are_not_offered(root: Path, path: str) -> None:
    there = root.parent / "secret" / "checkpoints" / "step-1"
    there.mkdir(parents=True)
    (there / "manifest.json").write_text("{}")
    with (root / "good" / METRICS).open("ab") as file:
        file.write(entry("checkpoint", 1, path=path).to_line())
    data = RunData(RunsFolder(root), "good")
    data.read()
    assert len(data.saved) == 1
    assert playable(RunsFolder(root), data) == []


def test_checkpoints_that_are_there_are_offered(root: Path) -> None:
    for name in ("step-1", "step-2"):
        with (root / "good" / METRICS).open("ab") as file:
            file.write(entry("checkpoint", int(name[-1]), path=f"checkpoints/{name}").to_line())
    (root / "good" / "checkpoints" / "step-2").mkdir(parents=True)
    (root / "good" / "checkpoints" / "step-2" / "manifest.json").write_text("{}")
    data = RunData(RunsFolder(root), "good")
    data.read()
    found = playable(RunsFolder(root), data)
    assert [(one.name, one.timestep) for one in found] == [("step-2", 200)]
    assert found[0].path == root / "good" / "checkpoints" / "step-2"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no pipes")
def test_a_pipe_is_not_waited_for(root: Path) -> None:
    (root / "good" / METRICS).unlink()
    os.mkfifo(root / "good" / METRICS)
    data = RunData(RunsFolder(root), "good")
    data.glimpse()
    data.read()
    assert "no ordinary file" in data.summary(now=0.0).note


def test_a_huge_file_is_not_read_as_a_whole(root: Path) -> None:
    with (root / "good" / LIVE).open("wb") as file:
        file.truncate(MAX_FILE_BYTES + 1)
    assert RunsFolder(root).read("good", LIVE) is None


def test_a_folder_that_is_missing_is_named(tmp_path: Path) -> None:
    with pytest.raises(KeiseiError, match=r"no directory .*nowhere.*keisei train"):
        RunsFolder(tmp_path / "nowhere")


def test_a_run_is_no_folder_of_runs(root: Path) -> None:
    with pytest.raises(KeiseiError, match="is a run; the dashboard shows the folder"):
        RunsFolder(root / "good")

"""A run that a stranger packed: nothing outside of its directory is written, and nothing blocks."""

import os
import shutil
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner

from keisei import run_files
from keisei.callbacks import PhaseProgress
from keisei.cli import app
from keisei.config import save_config
from keisei.errors import KeiseiError
from keisei.run_files import require_own_files
from keisei.runs.control import control_run
from keisei.runs.heartbeat import RunHeartbeat
from keisei.runs.notes import RunNotes, write_notes
from keisei.runs.report import write_report
from keisei.training.run import start_run
from tests.tiny import tiny_config
from tests.tiny_runs import tiny_run

pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="links need privileges there")

MINE = "export PATH\n"

WRITTEN = (
    *(run_files.CONFIG, run_files.METRICS, run_files.LIVE, run_files.HEARTBEAT, run_files.LOCK),
    *(run_files.LOG, run_files.STRENGTH, run_files.CALIBRATION, run_files.REPORT),
    *(run_files.WANDB_ID, run_files.RESET, run_files.ELO_PLOT, "games/update-000001-a-vs-b.kif"),
)

COMMANDS: dict[str, Callable[[Path], list[str]]] = {
    "resume": lambda run: ["train", "--resume", str(run)],
    "evaluate": lambda run: ["evaluate", str(run), "--opponents", "random", "--games", "2",
                             "--store", str(run.parent / "ladder.sqlite3")],
}  # fmt: skip


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_run(tmp_path_factory.mktemp("runs") / "run", checkpoints=1)


@pytest.fixture
def run(trained: Path, tmp_path: Path) -> Path:
    """A run, and a file of the user's beside it."""
    (tmp_path / "mine").write_text(MINE)
    run = Path(shutil.copytree(trained, tmp_path / "run"))
    config = tiny_config("run.total_timesteps=64", f"run.root={tmp_path}", "run.name=run")
    save_config(config, run / run_files.CONFIG)
    return run


def replace(path: Path, make: Callable[[Path], object]) -> None:
    """Put something in the place of a file of a run."""
    path.parent.mkdir(exist_ok=True)
    path.unlink(missing_ok=True)
    make(path)


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("name", WRITTEN)
def test_no_file_is_written_through_a_link(run: Path, command: str, name: str) -> None:
    mine = run.parent / "mine"
    if name == run_files.CONFIG:
        mine.write_bytes((run / name).read_bytes())
    replace(run / name, lambda path: path.symlink_to(mine))
    before = mine.read_bytes()
    everything = {path: path.stat().st_mtime_ns for path in run.parent.rglob("*")}
    with pytest.raises(KeiseiError, match=f"{Path(name).name} is a link that leads out of the run"):
        CliRunner().invoke(app, COMMANDS[command](run), catch_exceptions=False)
    assert mine.read_bytes() == before
    assert {path: path.stat().st_mtime_ns for path in run.parent.rglob("*")} == everything


@pytest.mark.parametrize("command", COMMANDS)
@pytest.mark.parametrize("name", [run_files.LOG, run_files.HEARTBEAT, run_files.STRENGTH])
def test_a_pipe_does_not_block(run: Path, command: str, name: str) -> None:
    replace(run / name, os.mkfifo)
    with pytest.raises(KeiseiError, match=f"{name} is not a regular file"):
        CliRunner().invoke(app, COMMANDS[command](run), catch_exceptions=False)


@pytest.mark.parametrize("name", [run_files.CHECKPOINTS, run_files.PLOTS, run_files.GAMES])
def test_directories_are_no_way_out(run: Path, name: str) -> None:
    outside = run.parent / "outside"
    outside.mkdir()
    if (run / name).exists():
        (run / name).rename(outside / name)
    (run / name).symlink_to(outside, target_is_directory=True)
    with pytest.raises(KeiseiError, match="leads out"):
        require_own_files(run)


def test_a_directory_is_no_file(run: Path) -> None:
    replace(run / run_files.LOG, Path.mkdir)
    with pytest.raises(KeiseiError, match="is a directory"):
        require_own_files(run)


def test_a_link_to_nothing_is_followed_by_writing_too(run: Path) -> None:
    replace(run / run_files.LOG, lambda path: path.symlink_to(run.parent / "new"))
    with pytest.raises(KeiseiError, match="leads out"):
        require_own_files(run)


def test_links_within_a_run_and_the_run_itself_as_a_link_are_fine(run: Path) -> None:
    (run / "link.json").symlink_to(run / run_files.CONFIG)
    (run / "games").mkdir()
    (run / "games" / "up").symlink_to("../checkpoints", target_is_directory=True)
    (run / run_files.WANDB).mkdir()
    (run / run_files.WANDB / "latest-run").symlink_to("/elsewhere")
    link = run.parent / "link"
    link.symlink_to(run)
    require_own_files(run)
    require_own_files(link)


def test_a_new_run_begins_in_no_such_directory(tmp_path: Path) -> None:
    (tmp_path / "mine").write_text(MINE)
    (tmp_path / "run").mkdir()
    (tmp_path / "run" / run_files.LOG).symlink_to(tmp_path / "mine")
    with pytest.raises(KeiseiError, match="leads out"):
        start_run(tiny_config(f"run.root={tmp_path}", "run.name=run"))
    assert (tmp_path / "mine").read_text() == MINE


def test_reports_notes_and_commands_stay_in_the_run(run: Path) -> None:
    mine = run.parent / "mine"
    for name in (run_files.REPORT, run_files.NOTES, run_files.PAUSE):
        (run / name).symlink_to(mine)
    heartbeat = RunHeartbeat.now(PhaseProgress("learning"), is_stopping=False)
    (run / run_files.HEARTBEAT).write_bytes(heartbeat.to_json())
    for write in (
        lambda: write_report(run),
        lambda: write_notes(run, RunNotes("text")),
        lambda: control_run(run, "pause"),
    ):
        before = mine.stat().st_mtime_ns
        with pytest.raises(KeiseiError, match="leads out"):
            write()
        assert mine.stat().st_mtime_ns == before
    assert mine.read_text() == MINE

"""Whole files, and memory."""

import os
import re
import stat
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from keisei.errors import KeiseiError
from keisei.system import (
    FileAccessError,
    make_directory,
    read_bytes,
    remove_temporaries,
    require_possible,
    resident_megabytes,
    usable_cpus,
    write_atomically,
)
from keisei.training.step_metrics import UsageMeter

posix_only = pytest.mark.skipif(sys.platform == "win32", reason="Windows has nothing like it")
Link = Callable[[Path, Path], None]


@pytest.fixture
def link() -> Link:
    """Make a symbolic link, which Windows does not allow everyone."""

    def make(path: Path, target: Path) -> None:
        try:
            path.symlink_to(target)
        except OSError as error:
            pytest.skip(f"no symbolic links here: {error}")

    return make


@pytest.fixture
def narrow_umask() -> Iterator[None]:
    """New files are for their owner only."""
    old = os.umask(0o077)
    yield
    os.umask(old)


def test_what_is_written_is_read(tmp_path: Path) -> None:
    path = tmp_path / "file"
    write_atomically(path, b"old")
    write_atomically(path, b"new")
    assert read_bytes(path) == b"new"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("stream", ["sys.stderr = None", "sys.stderr.close()", "pass"])
def test_a_process_that_leaves_has_said_all(stream: str) -> None:
    """Nothing that Python does at its end is done, whatever became of the streams."""
    code = (
        "import atexit, sys; from keisei.system import leave; atexit.register(print, 'the end');"
        f"print('said', end=''); {stream}; leave(3)"
    )
    left = subprocess.run([sys.executable, "-c", code], capture_output=True, check=False)
    assert (left.returncode, left.stdout, left.stderr) == (3, b"said", b"")


@posix_only
@pytest.mark.parametrize("path", [Path("x" * 300), Path("/".join(["d" * 100] * 40), "d" * 50)])
def test_names_are_too_long_also_if_only_files_in_them_would_be(path: Path) -> None:
    require_possible(Path("no", "such", "run"))
    with pytest.raises(FileAccessError, match=r"^[xd/]{80}\.\.\.: File name too long$"):
        require_possible(path)


def test_a_failed_write_leaves_the_old_file(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "file"
    write_atomically(path, b"old")

    def disk_full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", disk_full)
    with pytest.raises(FileAccessError, match=r"cannot write .*file: No space left on device"):
        write_atomically(path, b"new")
    assert read_bytes(path) == b"old"
    assert list(tmp_path.iterdir()) == [path]


def test_files_that_cannot_be_opened_are_named(tmp_path: Path) -> None:
    missing = tmp_path / "no" / "such"
    with pytest.raises(KeiseiError, match=r"cannot read .*such"):
        read_bytes(missing)
    with pytest.raises(KeiseiError, match=r"cannot write .*such"):
        write_atomically(missing, b"")


@pytest.mark.parametrize(
    "name", [".", "", "a-file/below.svg", "no-folder/file", "n" * 300, "null\0byte", "\ud800"]
)
def test_names_that_cannot_be_written_are_one_kind_of_error(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "a-file").write_bytes(b"old")
    with pytest.raises(FileAccessError, match="cannot write"):
        write_atomically(Path(name), b"new")
    with pytest.raises(FileAccessError, match="cannot read"):
        read_bytes(Path(name))
    assert [path.name for path in tmp_path.iterdir()] == ["a-file"]


@posix_only
def test_the_longest_name_can_be_written(tmp_path: Path) -> None:
    path = tmp_path / ("n" * os.pathconf(tmp_path, "PC_NAME_MAX"))
    write_atomically(path, b"new")
    assert read_bytes(path) == b"new"


@pytest.mark.parametrize("old", [b"old", None])
def test_symbolic_links_stay_and_their_target_is_written(
    old: bytes | None, tmp_path: Path, link: Link
) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    target = folder / "target"
    if old is not None:
        target.write_bytes(old)
    link(tmp_path / "middle", Path("folder", "target"))
    link(tmp_path / "link", Path("middle"))
    write_atomically(tmp_path / "link", b"new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "middle").is_symlink()
    assert target.read_bytes() == b"new"
    assert not target.is_symlink()
    assert len(list(tmp_path.iterdir())) == 3
    assert list(folder.iterdir()) == [target]


def test_links_in_a_circle_are_refused(tmp_path: Path, link: Link) -> None:
    link(tmp_path / "one", Path("other"))
    link(tmp_path / "other", Path("one"))
    with pytest.raises(FileAccessError, match="cannot write"):
        write_atomically(tmp_path / "one", b"new")
    assert (tmp_path / "one").is_symlink()


@posix_only
def test_pipes_are_written_to_not_replaced(tmp_path: Path) -> None:
    path = tmp_path / "pipe"
    os.mkfifo(path)
    reader = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    write_atomically(path, b"new")
    assert os.read(reader, 10) == b"new"
    os.close(reader)
    assert path.is_fifo()


@pytest.mark.skipif(not Path("/proc/self/fd").is_dir(), reason="needs /proc")
def test_open_files_without_a_name_are_written_to() -> None:
    """``--svg /dev/stdout`` is such a file when a Python program captures the output."""
    with tempfile.TemporaryFile() as file:
        write_atomically(Path(f"/proc/self/fd/{file.fileno()}"), b"new")
        file.seek(0)
        assert file.read() == b"new"


@posix_only
@pytest.mark.usefixtures("narrow_umask")
@pytest.mark.parametrize("mode", [0o600, 0o640, 0o666])
def test_a_replaced_file_keeps_its_permissions(mode: int, tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")
    path.chmod(mode)
    write_atomically(path, b"new")
    assert read_bytes(path) == b"new"
    assert stat.S_IMODE(path.stat().st_mode) == mode


@posix_only
@pytest.mark.usefixtures("narrow_umask")
def test_a_new_file_has_the_permissions_that_the_user_gives_new_files(tmp_path: Path) -> None:
    write_atomically(tmp_path / "file", b"new")
    assert stat.S_IMODE((tmp_path / "file").stat().st_mode) == 0o600


def test_write_protected_files_stay_as_they_are(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_bytes(b"old")
    path.chmod(0o444)
    if os.access(path, os.W_OK):
        pytest.skip("this user may write everything")
    with pytest.raises(FileAccessError, match=r"cannot write .*write-protected"):
        write_atomically(path, b"new")
    assert read_bytes(path) == b"old"
    assert list(tmp_path.iterdir()) == [path]
    path.chmod(0o644)


def test_temporary_files_of_a_killed_process_are_removed(tmp_path: Path) -> None:
    for name in (".0123abcd.tmp", ".mine.tmp", "file"):
        (tmp_path / name).touch()
    remove_temporaries(tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == [".mine.tmp", "file"]


def test_directories_are_made_or_explained(tmp_path: Path) -> None:
    make_directory(tmp_path / "one" / "two")
    make_directory(tmp_path / "one" / "two")
    assert (tmp_path / "one" / "two").is_dir()
    (tmp_path / "file").touch()
    for path in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(FileAccessError, match=f"cannot make {re.escape(str(path))}: "):
            make_directory(path)


def test_processors_and_memory_are_those_of_this_process() -> None:
    assert 1 <= usable_cpus() <= (os.cpu_count() or 1)
    before = resident_megabytes()
    block = bytearray(os.urandom(1)) * (100 << 20)
    assert 90 < resident_megabytes() - before < 200
    assert len(block) == 100 << 20


def test_only_files_of_a_plausible_size_are_read(tmp_path: Path) -> None:
    path = tmp_path / "manifest.json"
    with path.open("wb") as file:
        file.truncate(2 << 30)  # sparse: it takes no space on the disk
    with pytest.raises(FileAccessError, match="2,147,483,648 bytes, and up to 67,108,864 are read"):
        read_bytes(path)


@posix_only
def test_pipes_and_devices_are_not_read(tmp_path: Path) -> None:
    """Before, reading a pipe blocked until somebody wrote to it."""
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", Path("/dev/zero")):
        with pytest.raises(FileAccessError, match="not a regular file"):
            read_bytes(path)


def test_usage_counts_this_process_and_its_children(monkeypatch: pytest.MonkeyPatch) -> None:
    meter = UsageMeter()
    assert meter.shares() == {}, "not yet long enough"
    monkeypatch.setattr(UsageMeter, "MIN_INTERVAL", 0.0)
    deadline = time.process_time() + 0.2
    while time.process_time() < deadline:
        pass
    busy = meter.shares()
    assert 0.0 < busy["cpu"] <= 1.0
    assert 0.0 < busy["memory"] <= 1.0
    child = "import time; end = time.process_time() + 0.3\nwhile time.process_time() < end: pass"
    running = subprocess.Popen([sys.executable, "-c", child + "\ntime.sleep(60)"])
    try:
        time.sleep(1.0)
        assert meter.shares()["cpu"] * usable_cpus() > 0.05, "the child was busy, not this process"
    finally:
        running.kill()
        running.wait()

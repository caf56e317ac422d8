"""Branches of the code for Windows and macOS, taken here by imitation.

Only where the branch is a decision of ours, whose result can be looked at on any system. That
Windows then does what is expected of it is for CI to show: see docs/platforms.md.
"""

import errno
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from types import SimpleNamespace

import pytest

from keisei import cli, interrupts, shared_memory, system
from keisei.benchmark import harness
from keisei.checkpoints import store
from keisei.errors import KeiseiError
from keisei.evaluation import measure_worker
from keisei.players import spec
from keisei.players.spec import make_player
from keisei.shared_memory import SharedBlock, remove_orphans
from keisei.shogi import jit
from keisei.training import run


@pytest.fixture
def windows(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let `sys.platform` say that this is Windows, with the constants that exist only there."""
    monkeypatch.setattr(sys, "platform", "win32")
    monkeypatch.setattr(subprocess, "CREATE_NEW_PROCESS_GROUP", 0x200, raising=False)
    monkeypatch.setattr(subprocess, "BELOW_NORMAL_PRIORITY_CLASS", 0x4000, raising=False)


@pytest.mark.usefixtures("windows")
def test_processes_of_windows_have_groups_and_priorities_by_flags() -> None:
    assert system.in_own_group() == {"creationflags": 0x200}
    assert system.in_own_group(low_priority=True) == {"creationflags": 0x4200}


@pytest.mark.usefixtures("windows")
def test_windows_has_no_signal_for_a_closed_terminal() -> None:
    assert system._hang_up() == []


def test_without_signal_masks_processes_are_started_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delattr(signal, "pthread_sigmask", raising=False)
    with system.ctrl_c_held_back():
        assert signal.getsignal(signal.SIGINT) is not None


@pytest.mark.parametrize("name", ["win32", "darwin"])
def test_elsewhere_all_cores_are_usable(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", name)
    monkeypatch.setattr(os, "cpu_count", lambda: 7)
    assert system.usable_cpus() == 7


@pytest.mark.parametrize("name", ["win32", "darwin"])
def test_elsewhere_there_is_always_a_screen(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("uvicorn")
    from keisei.web import server

    monkeypatch.delenv("DISPLAY", raising=False)
    monkeypatch.delenv("WAYLAND_DISPLAY", raising=False)
    monkeypatch.setattr(sys, "platform", name)
    assert server._has_screen()


def test_commands_of_engines_may_have_paths_of_windows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(spec, "os", SimpleNamespace(name="nt"))
    with pytest.raises(KeiseiError, match=r"C:\\Program Files\\no such engine\.exe"):
        make_player(r'usi:"C:\Program Files\no such engine.exe" --fast').close()


def test_windows_has_no_load_average(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delattr(os, "getloadavg", raising=False)
    assert harness.this_machine(()).as_dict()["load"] is None


def test_on_windows_the_owner_of_the_allowed_programs_is_not_looked_at(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    allowed = tmp_path / "allowed-programs.txt"
    allowed.write_text("usi:engine")
    allowed.chmod(0o666)
    monkeypatch.setattr(run, "allowed_file", lambda: allowed)
    monkeypatch.delattr(os, "getuid", raising=False)
    assert run._listed() == {"usi:engine"}


def test_directories_of_windows_are_not_flushed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store, "os", SimpleNamespace(name="nt"))  # anything else would fail
    store._sync_directory(tmp_path)


def test_blocks_work_where_shared_memory_is_not_listed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shared_memory, "_DIRECTORY", tmp_path / "missing")
    remove_orphans()
    block = SharedBlock.create(1 << 16)
    other = SharedBlock.attach(block.name)
    block.memory[:5] = b"shogi"
    assert bytes(other.memory[:5]) == b"shogi"
    other.close()
    block.close()


@pytest.mark.usefixtures("windows")
@pytest.mark.parametrize(
    ("number", "is_closed_pipe"), [(errno.EINVAL, True), (errno.EPIPE, False), (errno.EBADF, False)]
)
def test_a_closed_pipe_is_another_error_on_windows(
    number: int, is_closed_pipe: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    def write() -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(cli, "app", write)
    monkeypatch.setattr(cli, "_discard_output", lambda: None)
    with pytest.raises(SystemExit if is_closed_pipe else OSError) as ended:
        cli.main()
    if isinstance(ended.value, SystemExit):
        assert ended.value.code == cli.USER_ERROR


@pytest.mark.usefixtures("windows")
def test_on_windows_the_parent_sets_the_priority_of_the_background_process(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    answered: list[Path] = []
    monkeypatch.delattr(os, "nice", raising=False)
    monkeypatch.setattr(sys, "argv", ["measure_worker", str(tmp_path)])
    monkeypatch.setattr(measure_worker, "_answer", answered.append)
    monkeypatch.setattr(measure_worker, "_end_with_parent", lambda *_: None)
    handler = signal.getsignal(signal.SIGINT)
    try:
        measure_worker.main()
    finally:
        signal.signal(signal.SIGINT, handler)
    assert answered == [tmp_path]


@pytest.mark.usefixtures("windows")
def test_on_windows_the_temporary_cache_is_named_after_the_user(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    monkeypatch.setenv("USERNAME", "habu")
    monkeypatch.delattr(os, "geteuid", raising=False)
    assert jit._private_temporary() == tmp_path / "keisei-cache-habu"


def test_on_windows_the_terminal_is_left_as_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interrupts, "os", SimpleNamespace(name="nt"))  # anything else would fail
    interrupts._restore_terminal()

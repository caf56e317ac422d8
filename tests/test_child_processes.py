"""Child processes: how they are started, stopped and reported."""

import multiprocessing
import sys
import time
from pathlib import Path

import pytest

from keisei.errors import KeiseiError
from keisei.system import ChildProcess, spawn_context


def test_processes_are_spawned() -> None:
    assert spawn_context().get_start_method() == "spawn"


def test_a_python_that_cannot_spawn_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(method: str) -> None:
        raise ValueError(f"cannot find context for {method!r}")

    monkeypatch.setattr(multiprocessing, "get_context", refuse)
    with pytest.raises(KeiseiError, match="cannot spawn processes: cannot find context"):
        spawn_context()


@pytest.fixture
def child(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> type[ChildProcess]:
    """Makes the module ``script`` available to children: it runs its second argument."""
    (tmp_path / "script.py").write_text("import sys, os, time\nexec(sys.argv[1])\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path))
    return ChildProcess


def wait_for_end(process: ChildProcess) -> None:
    deadline = time.monotonic() + 60.0
    while not process.has_ended():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_a_child_reads_its_first_line_and_ends_with_its_stdin(
    child: type[ChildProcess], tmp_path: Path
) -> None:
    echo = "print(sys.stdin.read(), os.environ['OMP_NUM_THREADS'])"
    process = child(
        "script", echo, output=tmp_path / "output.txt", first_line=b"hello\n", threads=3
    )
    process.stop(60.0)
    assert process.exit_code == 0
    assert process.output_tail().split() == ["hello", "3"]


@pytest.mark.parametrize(
    ("code", "reason"),
    [
        ("raise SystemExit('too bad')", "too bad"),
        ("raise SystemExit(7)", "exit code 7"),
        ("1 / 0", "ZeroDivisionError: division by zero"),
    ],
)
def test_a_child_that_fails_has_a_reason(
    child: type[ChildProcess], tmp_path: Path, code: str, reason: str
) -> None:
    process = child("script", code, output=tmp_path / "output.txt")
    wait_for_end(process)
    assert process.failure_reason() == reason
    process.kill()


@pytest.mark.skipif(sys.platform == "win32", reason="there is no SIGKILL")
def test_a_child_that_does_not_stop_is_killed(child: type[ChildProcess], tmp_path: Path) -> None:
    process = child("script", "time.sleep(60)", output=tmp_path / "output.txt")
    assert process.exit_code is None
    process.request_stop(0.05)
    wait_for_end(process)
    assert process.failure_reason() == "its process was ended by SIGKILL"
    stubborn = child("script", "time.sleep(60)", output=tmp_path / "output.txt")
    stubborn.stop(0.05)
    assert stubborn.exit_code == -9

"""Locks: who holds them, and that a process cannot take them to its grave."""

import subprocess
import sys
from pathlib import Path

import pytest

from keisei.sweep.locks import FileLock, LockedError
from keisei.system import FileAccessError, module_environment

HOLD = """
import sys
from pathlib import Path
from keisei.sweep.locks import FileLock
with FileLock(Path(sys.argv[1]), shared=sys.argv[2] == "shared"):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.mark.parametrize(
    ("theirs", "ours", "is_free"),
    [
        ("alone", "alone", False),
        ("alone", "shared", False),
        ("shared", "alone", False),
        ("shared", "shared", True),
    ],
)
def test_locks_of_other_processes(theirs: str, ours: str, is_free: bool, tmp_path: Path) -> None:
    path = tmp_path / "a.lock"
    holder = subprocess.Popen(
        (sys.executable, "-c", HOLD, str(path), theirs),
        stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=module_environment(),
    )  # fmt: skip
    with holder:
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"held\n"
        if is_free:
            with FileLock(path, shared=ours == "shared"):
                pass
        else:
            with (
                pytest.raises(LockedError, match="in use"),
                FileLock(path, shared=ours == "shared"),
            ):
                pass
        holder.kill()
    with FileLock(path):  # the system has taken it back
        pass


def test_a_lock_where_there_is_no_directory(tmp_path: Path) -> None:
    with pytest.raises(FileAccessError, match="cannot open"), FileLock(tmp_path / "no" / "a.lock"):
        pass
    (tmp_path / "other").write_bytes(b"no database, but long enough to be taken for one" * 9)
    with pytest.raises(FileAccessError, match="cannot lock"), FileLock(tmp_path / "other"):
        pass

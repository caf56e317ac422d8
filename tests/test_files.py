"""Reading and writing whole files."""

from pathlib import Path

import pytest

from keisei.errors import KeiseiError
from keisei.files import FileAccessError, read_bytes, write_atomically


def test_what_is_written_is_read(tmp_path: Path) -> None:
    path = tmp_path / "file"
    write_atomically(path, b"old")
    write_atomically(path, b"new")
    assert read_bytes(path) == b"new"
    assert list(tmp_path.iterdir()) == [path]


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

"""Shared memory: arrays lie where they should, and no block is left behind."""

import errno
import os
import tempfile
from pathlib import Path

import numpy as np
import pytest

from keisei.errors import KeiseiError
from keisei.ppo.buffer import ALIGNMENT, ArrayLayout
from keisei.shared_memory import SharedBlock, remove_orphans

SHARED = Path("/dev/shm")
lists_shared_memory = pytest.mark.skipif(
    not SHARED.is_dir(), reason="this system does not list shared memory"
)


def test_arrays_lie_on_cache_lines_and_do_not_overlap() -> None:
    record = np.dtype([("ply", np.uint16), ("turn", np.uint8)])
    layout = ArrayLayout(
        {
            "small": (np.uint8, (3,)),
            "scalar": (np.float32, ()),
            "empty": (np.float32, (0, 4)),
            "records": (record, (5,)),
            "last": (np.int64, (2, 8)),
        }
    )
    assert layout.size == ALIGNMENT * (1 + 1 + 0 + 1 + 2)
    memory = bytearray(ALIGNMENT + layout.size)
    views = layout.views(memory, ALIGNMENT)
    start = np.frombuffer(memory, np.uint8).__array_interface__["data"][0]
    for number, (name, view) in enumerate(views.items()):
        offset = view.__array_interface__["data"][0] - start
        assert name == "empty" or (offset > 0 and offset % ALIGNMENT == 0)
        view[...] = number
    assert isinstance(views["records"], np.recarray)
    for number, view in enumerate(views.values()):
        assert np.all((view["ply"] if view.dtype.names else view) == number)
    assert not any(memory[:ALIGNMENT])


def test_a_block_is_seen_by_whoever_attaches_it_and_removed_by_its_creator() -> None:
    own = SharedBlock.create(100)
    other = SharedBlock.attach(own.name)
    own.memory[7] = 42
    assert other.memory[7] == 42
    other.close()
    SharedBlock.attach(own.name).close()
    own.close()
    with pytest.raises(FileNotFoundError):
        SharedBlock.attach(own.name)


@lists_shared_memory
def test_memory_of_dead_processes_is_removed_at_the_next_start() -> None:
    own = SharedBlock.create(64)
    prefix = own.name.rpartition(f"{os.getpid()}-")[0]
    orphan = SHARED / f"{prefix}999999999-abc123"
    # A container with process ids of its own may share the memory of its host.
    elsewhere = SHARED / "keisei-1-999999999-abc123"
    for path in (orphan, elsewhere):
        path.write_bytes(b"left")
    try:
        assert remove_orphans() >= 1
        assert not orphan.exists()
        assert (SHARED / own.name).exists()
        assert elsewhere.exists()
    finally:
        elsewhere.unlink()
        own.close()


@lists_shared_memory
def test_too_little_memory_is_an_error_and_leaves_no_block(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    before = set(SHARED.glob(f"keisei-*-{os.getpid()}-*"))
    monkeypatch.setattr(os, "posix_fallocate", refuse)
    message = r"no room for 2\.0 MB of shared memory.*--shm-size.* Nor is there in"
    with pytest.raises(KeiseiError, match=message):
        SharedBlock.create(2 << 20)
    assert set(SHARED.glob(f"keisei-*-{os.getpid()}-*")) == before
    assert list(Path(tempfile.gettempdir()).glob(f"keisei-*-{os.getpid()}-*")) == []


def test_a_file_takes_the_place_of_memory_that_is_too_small(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, tmp_path: Path
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr("keisei.shared_memory._reserve", refuse)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    own = SharedBlock.create(1 << 16)
    assert f"A file in {tmp_path} takes its place" in caplog.text
    other = SharedBlock.attach(own.name)
    array = np.frombuffer(own.memory, np.uint8)
    np.frombuffer(other.memory, np.uint8)[...] = 7
    assert len(array) == 1 << 16
    assert array.all()
    other.close()
    own.close()  # although there is a view of it
    assert list(tmp_path.iterdir()) == []
    del array


@lists_shared_memory
def test_files_of_dead_processes_are_removed_too(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    own = SharedBlock.create(64)
    orphan = tmp_path / f"{own.name.rpartition(f'{os.getpid()}-')[0]}999999999-abc123"
    own.close()
    orphan.write_bytes(b"left")
    assert remove_orphans() >= 1
    assert not orphan.exists()

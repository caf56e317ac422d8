"""The kernel decorator: where machine code is kept, and what it must not mix up."""

import os
import subprocess
import sys
from pathlib import Path

import numba
import numpy as np
import numpy.typing as npt
import pytest

from keisei.shogi import jit as jit_module
from keisei.shogi.jit import cache_directory, jit, jit_inner
from keisei.shogi.rules import _perpetual_checker
from tests.sampling import IS_COMPILED

compiled_only = pytest.mark.skipif(not IS_COMPILED, reason="the JIT is off")


def test_the_cache_directory_carries_the_hash_of_the_sources(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("KEISEI_CACHE_DIR", str(tmp_path / "cache"))
    cache_directory.cache_clear()
    first = cache_directory()
    assert first.parent == tmp_path / "cache"
    assert first.is_dir()
    monkeypatch.setattr(jit_module, "KERNEL_SOURCES", ("constants.py",))
    cache_directory.cache_clear()
    assert cache_directory() != first
    monkeypatch.undo()
    cache_directory.cache_clear()


def test_old_caches_are_pruned_and_the_newest_stay(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for number in range(12):
        (tmp_path / f"kernels-{number}").mkdir()
    (tmp_path / "something-else").mkdir()
    monkeypatch.setenv("KEISEI_CACHE_DIR", str(tmp_path))
    cache_directory.cache_clear()
    assert cache_directory().is_dir()
    assert len(list(tmp_path.glob("kernels-*"))) == 8
    assert (tmp_path / "something-else").is_dir()
    monkeypatch.undo()
    cache_directory.cache_clear()


def test_an_unwritable_cache_falls_back_to_the_temporary_directory(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("not a directory")
    monkeypatch.setenv("KEISEI_CACHE_DIR", str(blocked))
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path / "temporary"))
    cache_directory.cache_clear()
    assert cache_directory().is_relative_to(tmp_path / "temporary")
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(blocked))
    cache_directory.cache_clear()
    with pytest.raises(OSError, match="can be written"):
        cache_directory()
    monkeypatch.undo()
    cache_directory.cache_clear()


@pytest.mark.parametrize("platform", ["win32", "darwin", "linux"])
def test_each_system_has_its_own_place_for_caches(
    platform: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("KEISEI_CACHE_DIR", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setenv("LOCALAPPDATA", str(tmp_path / "local"))
    monkeypatch.setattr(Path, "home", lambda: tmp_path)
    monkeypatch.setattr(sys, "platform", platform)
    expected = {
        "win32": tmp_path / "local" / "keisei",
        "darwin": tmp_path / "Library" / "Caches" / "keisei",
        "linux": tmp_path / ".cache" / "keisei",
    }
    assert jit_module._user_cache() == expected[platform]


@compiled_only
def test_one_version_serves_every_integer_type() -> None:
    @jit
    def inner(number: int) -> int:
        return number + 1

    @numba.njit
    def outer(small: int) -> int:
        return inner(3) + inner(4) + inner(small) + inner(numba.uint8(small))

    assert outer(5) == 4 + 5 + 6 + 6
    assert len(inner.signatures) == 1  # type: ignore[attr-defined]


@compiled_only
def test_inner_kernels_refuse_calls_from_python_instead_of_crashing() -> None:
    @jit_inner
    def inner(number: int) -> int:
        return number + 1

    @numba.njit
    def outer(number: int) -> int:
        return inner(number)

    with pytest.raises(TypeError, match="for kernels only"):
        inner(1)
    assert outer(1) == 2
    with pytest.raises(TypeError, match="for kernels only"):
        inner(1)
    with pytest.raises(TypeError, match="for kernels only"):
        _perpetual_checker(1, 2, 3, 4)  # type: ignore[arg-type]


STALE = """
import sys
from pathlib import Path
sys.path.insert(0, "{folder}")
import keisei.shogi.jit as jit_module
jit_module.PACKAGE = Path("{folder}")
jit_module.KERNEL_SOURCES = ("*.py",)
jit_module.cache_directory.cache_clear()
import caller
print(caller.double(20))
"""


@compiled_only
def test_a_changed_callee_in_another_file_is_noticed(tmp_path: Path) -> None:
    """Plain Numba would print 41 twice: its cache looks at the caller's file only."""
    program = STALE.format(folder=tmp_path.as_posix())
    header = "from keisei.shogi.jit import jit\n"
    (tmp_path / "caller.py").write_text(
        f"{header}from callee import plus\n\n@jit\ndef double(x):\n    return plus(2 * x)\n"
    )
    printed = []
    for number in (1, 2):
        (tmp_path / "callee.py").write_text(
            f"{header}\n@jit\ndef plus(x):\n    return x + {number}\n"
        )
        result = subprocess.run(
            [sys.executable, "-B", "-c", program],
            capture_output=True,
            text=True,
            check=True,
            env={**os.environ, "KEISEI_CACHE_DIR": str(tmp_path / "cache")},
        )
        printed.append(result.stdout.strip())
    assert printed == ["41", "42"]


@pytest.mark.kernels
@pytest.mark.skipif(not numba.config.BOUNDSCHECK, reason="for the pass with bounds checks")
def test_bounds_checks_are_on_when_asked_for() -> None:
    @jit
    def beyond(array: npt.NDArray[np.int64]) -> int:
        return int(array[3])

    with pytest.raises(IndexError, match="out of bounds"):
        beyond(np.zeros(3, dtype=np.int64))

"""The kernel decorators: the cache directory, and when machine code is compiled again."""

import ast
import io
import os
import re
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numba
import numpy as np
import numpy.typing as npt
import platformdirs
import pytest
from platformdirs.macos import MacOS
from platformdirs.unix import Unix
from platformdirs.windows import Windows

from keisei.errors import KeiseiError
from keisei.shogi import jit as jit_module
from keisei.shogi.jit import cache_directory, jit, jit_inner
from keisei.shogi.rules import perpetual_checker
from tests.sampling import IS_COMPILED

compiled_only = pytest.mark.skipif(not IS_COMPILED, reason="the JIT is off")


posix_only = pytest.mark.skipif(sys.platform == "win32", reason="Windows has no such owners")
FindCache = Callable[[], Path]


@pytest.fixture
def find_cache() -> Iterator[FindCache]:
    """Look for the cache directory again; afterwards the next caller does so too."""

    def find() -> Path:
        cache_directory.cache_clear()
        return cache_directory()

    yield find
    cache_directory.cache_clear()


@pytest.fixture
def temporary(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The system's temporary directory, while the user's cache directory can't be written."""
    blocked = tmp_path / "file"
    blocked.write_text("not a directory")
    monkeypatch.setenv("KEISEI_CACHE_DIR", str(blocked))
    directory = tmp_path / "temporary"
    directory.mkdir()
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(directory))
    return directory


def set_home(monkeypatch: pytest.MonkeyPatch, home: Path) -> None:
    for variable in ("HOME", "USERPROFILE"):
        monkeypatch.setenv(variable, str(home))


def test_the_cache_directory_carries_the_hash_of_the_sources(
    find_cache: FindCache, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("KEISEI_CACHE_DIR", str(tmp_path / "cache"))
    first = find_cache()
    assert first.parent == tmp_path / "cache"
    assert first.is_dir()
    monkeypatch.setattr(jit_module, "KERNEL_SOURCES", ("constants.py",))
    assert find_cache() != first


def test_old_caches_are_pruned_and_the_newest_stay(
    find_cache: FindCache, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    for number in range(12):
        (tmp_path / f"kernels-{number}").mkdir()
    (tmp_path / "something-else").mkdir()
    monkeypatch.setenv("KEISEI_CACHE_DIR", str(tmp_path))
    assert find_cache().is_dir()
    assert len(list(tmp_path.glob("kernels-*"))) == 8
    assert (tmp_path / "something-else").is_dir()


def test_the_cache_in_use_stays_whatever_the_clock_says(
    find_cache: FindCache, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Times of last use can be equal, or lie in the future of a clock that was set back."""
    for number in range(12):
        (tmp_path / f"kernels-{number}").mkdir()
        os.utime(tmp_path / f"kernels-{number}", (4e9, 4e9))
    monkeypatch.setenv("KEISEI_CACHE_DIR", str(tmp_path))
    assert find_cache().is_dir()
    assert len(list(tmp_path.glob("kernels-*"))) == 8


def test_two_processes_may_prune_at_the_same_time(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    caches = [tmp_path / f"kernels-{number}" for number in range(10)]
    for directory in caches[:9]:  # the last one is listed, and removed before it is looked at
        directory.mkdir()
    monkeypatch.setattr(Path, "glob", lambda *_: iter(caches))
    jit_module._prune(caches[0])
    assert sum(directory.is_dir() for directory in caches) == 8


def test_an_unwritable_cache_falls_back_to_the_temporary_directory(
    find_cache: FindCache, temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = find_cache()
    assert first.is_relative_to(temporary)
    assert find_cache() == first
    monkeypatch.setattr("tempfile.gettempdir", lambda: os.environ["KEISEI_CACHE_DIR"])
    with pytest.raises(KeiseiError, match="can be written"):
        find_cache()


@posix_only
def test_a_cache_elsewhere_is_announced(
    find_cache: FindCache, temporary: Path, caplog: pytest.LogCaptureFixture
) -> None:
    directory = find_cache()
    (line,) = caplog.messages
    assert line.startswith("compiled kernels cannot be cached (")
    assert f": using {directory} instead; set KEISEI_CACHE_DIR to a directory" in line
    caplog.clear()
    (temporary / f"keisei-cache-{os.geteuid()}").rename(temporary / "mine")
    (temporary / f"keisei-cache-{os.geteuid()}").write_text("not a directory")
    find_cache()
    assert "so that each start compiles for a minute" in caplog.text


@pytest.mark.parametrize("reason", ["read-only", "full"])
def test_what_a_cache_holds_that_cannot_be_written_is_copied(
    reason: str, find_cache: FindCache, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setenv("KEISEI_CACHE_DIR", str(tmp_path / "cache"))
    first = find_cache()
    (first / "folder").mkdir()
    (first / "folder" / "kernel.nbc").write_bytes(b"machine code")
    create = tempfile.TemporaryFile

    def refuse(*_: object, dir: Path, **settings: Any) -> Any:
        if dir != first:
            return create(dir=dir, **settings)
        if reason == "read-only":
            raise PermissionError("it is read-only")
        return io.FileIO("/dev/full", "w")

    if reason == "full" and not Path("/dev/full").exists():
        pytest.skip("needs a disk that is always full")
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr("tempfile.gettempdir", lambda: str(tmp_path / "temporary"))
    monkeypatch.setattr("tempfile.TemporaryFile", refuse)
    second = find_cache()
    assert second.is_relative_to(tmp_path / "temporary")
    assert (second / "folder" / "kernel.nbc").read_bytes() == b"machine code"


@posix_only
def test_the_temporary_cache_is_for_this_user_only(find_cache: FindCache, temporary: Path) -> None:
    root = find_cache().parent
    assert root.name == f"keisei-cache-{os.geteuid()}"
    assert stat.S_IMODE(root.stat().st_mode) == 0o700


@posix_only
@pytest.mark.parametrize("prepared", ["by someone else", "as a link", "for everyone"])
def test_a_temporary_cache_that_others_could_fill_is_refused(
    prepared: str, find_cache: FindCache, temporary: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Numba unpickles the files of its cache: those of another user could run any code."""
    prepared_root = temporary / f"keisei-cache-{os.geteuid()}"
    if prepared == "as a link":
        (temporary / "elsewhere").mkdir()
        prepared_root.symlink_to("elsewhere")
    else:
        prepared_root.mkdir()
    if prepared == "by someone else":
        owner = os.geteuid()
        prepared_root = prepared_root.rename(temporary / f"keisei-cache-{owner + 1}")
        monkeypatch.setattr("os.geteuid", lambda: owner + 1)
    if prepared == "for everyone":
        prepared_root.chmod(0o777)
    directory = find_cache()
    assert directory.is_relative_to(temporary)
    assert not directory.resolve().is_relative_to(prepared_root.resolve())
    assert not list(prepared_root.iterdir())
    assert stat.S_IMODE(directory.parent.stat().st_mode) == 0o700
    assert find_cache() != directory  # each process has its own


def test_the_cache_of_one_process_goes_with_it(tmp_path: Path) -> None:
    program = "from keisei.shogi import jit; print(jit._fresh_temporary())"
    result = subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        check=True,
        env={**os.environ, "TMPDIR": str(tmp_path), "TEMP": str(tmp_path), "TMP": str(tmp_path)},
    )
    made = Path(result.stdout.strip())
    assert made.is_relative_to(tmp_path)
    assert not made.exists()


@pytest.mark.parametrize("value", ["", "relative/path"])
@pytest.mark.parametrize("variable", ["KEISEI_CACHE_DIR", "XDG_CACHE_HOME"])
def test_empty_and_relative_variables_count_as_not_set(
    variable: str, value: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("KEISEI_CACHE_DIR", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(platformdirs, "PlatformDirs", Unix)
    set_home(monkeypatch, tmp_path)
    monkeypatch.setenv(variable, value)
    assert jit_module._user_cache() == tmp_path / ".cache" / "keisei"


def test_a_user_without_a_home_directory_has_a_cache_too(
    find_cache: FindCache, temporary: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(platformdirs, "PlatformDirs", Unix)
    monkeypatch.setattr("os.path.expanduser", lambda path: path)  # as it does without a home
    monkeypatch.delenv("KEISEI_CACHE_DIR")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    assert find_cache().is_relative_to(tmp_path / "xdg" / "keisei")
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert find_cache().is_relative_to(temporary)


@pytest.mark.parametrize(
    ("system", "expected"),
    [(Windows, "local/keisei"), (MacOS, "Library/Caches/keisei"), (Unix, ".cache/keisei")],
)
def test_each_system_has_its_own_place_for_caches(
    system: type[platformdirs.PlatformDirs],
    expected: str,
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
) -> None:
    monkeypatch.delenv("KEISEI_CACHE_DIR", raising=False)
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(platformdirs, "PlatformDirs", system)
    monkeypatch.setattr("platformdirs.windows.get_win_folder", lambda _: str(tmp_path / "local"))
    set_home(monkeypatch, tmp_path)
    assert jit_module._user_cache() == tmp_path / expected


@posix_only
def test_xdg_cache_home_is_respected(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("KEISEI_CACHE_DIR", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert jit_module._user_cache() == tmp_path / "keisei"


def test_every_module_with_kernels_is_a_kernel_source() -> None:
    package = jit_module.PACKAGE
    sources = {path for pattern in jit_module.KERNEL_SOURCES for path in package.glob(pattern)}
    users = {
        path
        for path in package.rglob("*.py")
        if re.search(r"^@jit(_inner|_inline)?$", path.read_text(encoding="utf-8"), re.MULTILINE)
    }
    assert users
    assert users <= sources


def test_functions_that_sum_in_any_order_are_inlined_up_to_the_kernel() -> None:
    """Else a process that has compiled them would call another copy than one that loads them."""
    found: set[str] = set()
    for pattern in jit_module.KERNEL_SOURCES:
        for path in sorted(jit_module.PACKAGE.glob(pattern)):
            module = ast.parse(path.read_text(encoding="utf-8"))
            functions = [part for part in module.body if isinstance(part, ast.FunctionDef)]
            kinds = {function.name: decorators(function) for function in functions}
            imported = {alias.name for part in ast.walk(module) if isinstance(part, ast.ImportFrom)
                        for alias in part.names}  # fmt: skip
            inlined = {
                name for name, kind in kinds.items() if kind & {"jit_math", "jit_math_caller"}
            }
            inlined |= found & imported
            for function in functions:
                names = {part.id for part in ast.walk(function) if isinstance(part, ast.Name)}
                if names & inlined:
                    kind = kinds[function.name]
                    assert kind & {"jit", "jit_math", "jit_math_caller"}, (path, function.name)
            found |= inlined
    assert {"forward", "_add_rows"} <= found


def decorators(function: ast.FunctionDef) -> set[str]:
    return {part.id for part in function.decorator_list if isinstance(part, ast.Name)}


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
        perpetual_checker(1, 2, 3, 4)  # type: ignore[arg-type]


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

"""The one decorator of every kernel: `jit` compiles with Numba and caches the machine code safely.

Three things that a bare ``numba.njit(cache=True)`` gets wrong for a package of kernels that call
each other (``docs/decisions/004-kernel-cache.md``):

- Its cache does not notice a change in a callee of another file and then runs stale machine code.
  Here the cache directory carries the hash of all kernel sources.
- It compiles a callee anew for each literal and each integer width that a caller passes. Here
  integers are widened to int64 first, so that one version serves all callers.
- It holds the GIL. Kernels here trust their input and never touch Python objects.
"""

import atexit
import hashlib
import os
import shutil
import stat
import sys
import tempfile
import threading
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import numba
import numpy as np
from numba import types

PACKAGE: Final = Path(__file__).resolve().parent.parent
KERNEL_SOURCES: Final = ("constants.py", "shogi/*.py", "search/*.py")
"""Where kernels and their constants live: what the cache directory's name is computed from."""

_KEPT_CACHES: Final = 8
"""How many versions' caches are kept, newest first."""

if TYPE_CHECKING:
    int64 = int  # to the type checker, kernels compute with whole numbers
else:
    int64 = np.int64
"""What kernels turn small integers from arrays into before they compute with them."""

_decorating = threading.Lock()
Kernel = TypeVar("Kernel", bound=Callable[..., Any])


def jit(function: Kernel) -> Kernel:
    """Compile `function` by Numba at its first call; ``NUMBA_DISABLE_JIT=1`` leaves it as it is."""
    return _compiled(function, for_python=True)


def jit_inner(function: Kernel) -> Kernel:
    """Like `jit`, for functions that only kernels call.

    They get no wrapper that turns Python objects into arguments, which is a third of what there
    would be to compile.
    """
    return _compiled(function, for_python=False)


def jit_inline(function: Kernel) -> Kernel:
    """Like `jit_inner`, for functions with a single caller: compiled as a part of it, not twice."""
    return _compiled(function, for_python=False, inline="always")


def _compiled(function: Kernel, *, for_python: bool, inline: str = "never") -> Kernel:
    if numba.config.DISABLE_JIT:
        return function
    with _decorating:
        previous = numba.config.CACHE_DIR
        numba.config.CACHE_DIR = str(cache_directory())
        try:
            dispatcher: Kernel = numba.njit(
                function,
                cache=True,
                nogil=True,
                error_model="numpy",
                no_cpython_wrapper=not for_python,
                inline=inline,
            )
        finally:
            numba.config.CACHE_DIR = previous
    if not for_python:
        _refuse_python_calls(dispatcher)
    return _with_one_version(dispatcher)


@cache
def cache_directory() -> Path:
    """Where the machine code of exactly these kernel sources is kept; it exists and is writable.

    ``KEISEI_CACHE_DIR``, an absolute path, overrides the user's cache directory. Where that can't
    be written, a directory below the system's temporary one is used.
    """
    name = f"kernels-{_sources_hash()}{'-boundscheck' if numba.config.BOUNDSCHECK else ''}"
    for find_root in (_user_cache, _private_temporary, _fresh_temporary):
        try:
            directory = find_root() / name
            directory.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=directory):
                pass
            os.utime(directory)  # pruning goes by the time of last use
        except OSError:
            continue
        _prune(directory)
        return directory
    raise OSError(
        "neither the user's cache directory nor the temporary one can be written; "
        "set KEISEI_CACHE_DIR to a directory that can"
    )


def _user_cache() -> Path:
    if chosen := directory_from("KEISEI_CACHE_DIR"):
        return chosen
    if sys.platform == "win32":
        root = directory_from("LOCALAPPDATA") or _home() / "AppData" / "Local"
    elif sys.platform == "darwin":
        root = _home() / "Library" / "Caches"
    else:
        root = directory_from("XDG_CACHE_HOME") or _home() / ".cache"
    return root / "keisei"


def directory_from(variable: str) -> Path | None:
    """The directory that an environment variable names.

    Empty counts as not set, and a relative path is ignored: the XDG Base Directory Specification
    asks for both.
    """
    directory = Path(os.environ.get(variable, ""))
    return directory if directory.is_absolute() else None


def _home() -> Path:
    try:
        return Path.home()
    except RuntimeError as error:  # no HOME, and a user whom the system does not know
        raise FileNotFoundError(str(error)) from error


def _private_temporary() -> Path:
    """This user's directory below the temporary one, where other users can write as well.

    Numba unpickles what it finds in its cache, so a directory that anyone else could have prepared
    is refused. Windows has a temporary directory for each user.
    """
    root = Path(tempfile.gettempdir())
    if sys.platform == "win32":
        directory = root / f"keisei-cache-{os.environ.get('USERNAME', '')}"
    else:
        directory = root / f"keisei-cache-{os.geteuid()}"
        directory.mkdir(mode=stat.S_IRWXU, exist_ok=True)
        found = directory.lstat()
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
            raise PermissionError(f"{directory} is not a directory of this user's")
        if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            raise PermissionError(f"others can write to {directory}")
    return directory


def _fresh_temporary() -> Path:
    """A directory for this process alone, which removes it when it ends."""
    directory = tempfile.mkdtemp(prefix="keisei-cache-")
    atexit.register(shutil.rmtree, directory, ignore_errors=True)
    return Path(directory)


def _sources_hash() -> str:
    digest = hashlib.sha256()
    for pattern in KERNEL_SOURCES:
        for source in sorted(PACKAGE.glob(pattern)):
            digest.update(source.relative_to(PACKAGE).as_posix().encode())
            digest.update(source.read_bytes())
    return digest.hexdigest()[:16]


def _prune(in_use: Path) -> None:
    others = [path for path in in_use.parent.glob("kernels-*") if path != in_use]
    others.sort(key=_last_use, reverse=True)
    for stale in others[_KEPT_CACHES - 1 :]:
        # Another process may use or prune it at this moment: then it simply stays.
        shutil.rmtree(stale, ignore_errors=True)


def _last_use(directory: Path) -> float:
    try:
        return directory.stat().st_mtime
    except OSError:  # another process has just pruned it
        return 0.0


def _with_one_version(dispatcher: Kernel) -> Kernel:
    """Let callers within kernels pass any integer: all compile and share the int64 version."""
    numba_dispatcher: Any = dispatcher
    original = numba_dispatcher.get_call_template

    def get_call_template(args: tuple[types.Type, ...], kws: dict[str, types.Type]) -> Any:
        widened = {name: _widened(kind) for name, kind in kws.items()}
        return original(tuple(_widened(kind) for kind in args), widened)

    numba_dispatcher.get_call_template = get_call_template
    return dispatcher


def _refuse_python_calls(dispatcher: Any) -> None:
    """Raise where Numba would call the missing wrapper and crash the process."""

    def refuse(*args: Any) -> Any:
        raise TypeError(f"{dispatcher.__name__} is for kernels only; decorate it with `jit`")

    dispatcher._insert = lambda *args: None  # the table that calls from Python look into
    dispatcher._compile_for_args = refuse


def _widened(kind: types.Type) -> types.Type:
    kind = types.unliteral(kind)
    if isinstance(kind, types.Integer) and kind.bitwidth < 64:
        return types.int64
    return kind

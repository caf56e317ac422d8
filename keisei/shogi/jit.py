"""The decorators of all kernels: they compile with Numba and cache the machine code safely.

Three things that a bare ``numba.njit(cache=True)`` gets wrong for a package of kernels that call
each other (``docs/decisions/004-kernel-cache.md``):

- Its cache does not notice a change in a callee of another file and then runs stale machine code.
  Here the cache directory carries the hash of all kernel sources.
- It compiles a callee again for each literal and each integer width that a caller passes. Here
  integers are widened to int64 first, so that one version serves all callers.
- It holds the GIL. Kernels here trust their input and never touch Python objects.
"""

import atexit
import hashlib
import logging
import multiprocessing
import os
import shutil
import stat
import sys
import tempfile
import threading
from collections.abc import Callable
from contextlib import suppress
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, TypeVar

import numba
import numpy as np
import platformdirs
from numba import types

from keisei.errors import KeiseiError

PACKAGE: Final = Path(__file__).resolve().parent.parent
KERNEL_SOURCES: Final = ("constants.py", "shogi/*.py", "search/*.py", "network/sparse/*.py")
"""Files with kernels and their constants: the cache directory's name has a hash of them."""

logger = logging.getLogger(__name__)

_TRIAL_BYTES: Final = 1 << 16
"""Bytes that are written to see whether a directory can hold a cache."""

_MAX_CACHES: Final = 8
"""Number of versions whose caches are kept, newest first."""

if TYPE_CHECKING:  # to the type checker, kernels compute with Python's numbers
    int64 = int
    float32 = float
else:
    int64 = np.int64
    float32 = np.float32
"""The types that kernels convert to before computing: small integers from arrays, constants."""

_decorating = threading.Lock()
Kernel = TypeVar("Kernel", bound=Callable[..., Any])


def jit(function: Kernel) -> Kernel:
    """Compile `function` with Numba at its first call, unless ``NUMBA_DISABLE_JIT=1`` is set."""
    return _compiled(function, for_python=True)


def jit_inner(function: Kernel) -> Kernel:
    """Compile a function that only kernels call.

    It gets no wrapper that converts Python objects to arguments, which would be a third of the
    code to compile.
    """
    return _compiled(function, for_python=False)


def jit_math(function: Kernel) -> Kernel:
    """Compile a function that sums floats, in any order: only then do sums use vector instructions.

    The order is fixed for one machine, so results can be repeated there. NaN and infinity are kept.
    All callers up to the kernel that Python calls have to be `jit_math` or `jit_math_caller`: they
    are inlined, because a process that has just compiled such a function would otherwise call
    another copy of it, optimized less often and with another order, than a process that loads its
    caller from the cache.
    """
    flags = {"reassoc", "contract", "nsz"}
    return _compiled(function, for_python=False, fastmath=flags, forceinline=True)


def jit_math_caller(function: Kernel) -> Kernel:
    """Compile a function that calls those of `jit_math`, and itself computes in the order written.

    It is inlined for the same reason.
    """
    return _compiled(function, for_python=False, forceinline=True)


def jit_inline(function: Kernel) -> Kernel:
    """Compile a function that a single kernel calls: inlined there, not compiled twice."""
    return _compiled(function, for_python=False, inline="always")


def _compiled(
    function: Kernel,
    *,
    for_python: bool,
    inline: str = "never",
    fastmath: Any = False,
    forceinline: bool = False,
) -> Kernel:
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
                fastmath=fastmath,
                forceinline=forceinline,
            )
        finally:
            numba.config.CACHE_DIR = previous
    if not for_python:
        _refuse_python_calls(dispatcher)
    return _with_one_version(dispatcher)


@cache
def cache_directory() -> Path:
    """Directory with the machine code of exactly these kernel sources; it exists and is writable.

    ``KEISEI_CACHE_DIR``, an absolute path, overrides the user's cache directory. If that can't be
    written, a directory below the system's temporary one is used, with what the other one holds,
    and a line on stderr says so.
    """
    name = f"kernels-{_sources_hash()}{'-boundscheck' if numba.config.BOUNDSCHECK else ''}"
    problem, refused = "", None
    for find_root in (_user_cache, _private_temporary, _fresh_temporary):
        directory = None
        try:
            directory = find_root() / name
            directory.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryFile(dir=directory, buffering=0) as file:
                file.write(bytes(_TRIAL_BYTES))  # a full disk has room for an empty file
            os.utime(directory)  # pruning goes by the time of last use
        except OSError as error:
            problem, refused = problem or str(error), refused or directory
            continue
        if problem:
            _copy_cache(refused, directory)
            _announce(directory, problem, is_lasting=find_root is not _fresh_temporary)
        _prune(directory)
        return directory
    raise KeiseiError(
        f"neither the user's cache directory nor the temporary one can be written ({problem}); "
        "set KEISEI_CACHE_DIR to a directory that can"
    )


def _copy_cache(source: Path | None, target: Path) -> None:
    """Copy what a cache holds that can be read but not written: it need not be compiled again."""
    if source is not None and source.is_dir() and not any(target.iterdir()):
        # Some files are better than none: what is missing is compiled.
        with suppress(OSError, shutil.Error):
            shutil.copytree(source, target, dirs_exist_ok=True)


def _announce(directory: Path, problem: str, *, is_lasting: bool) -> None:
    """Say where machine code goes instead, once per command: not in worker processes."""
    if multiprocessing.parent_process() is None:
        effect = "" if is_lasting else ", so that each start compiles for a minute"
        logger.warning(
            "compiled kernels cannot be cached (%s): using %s instead%s; "
            "set KEISEI_CACHE_DIR to a directory that can be written",
            problem,
            directory,
            effect,
        )


def _user_cache() -> Path:
    if chosen := directory_from("KEISEI_CACHE_DIR"):
        return chosen
    try:
        directory = platformdirs.user_cache_path("keisei", appauthor=False, opinion=False)
    except RuntimeError as error:  # no HOME, and a user whom the system does not know
        raise FileNotFoundError(str(error)) from error
    if not directory.is_absolute():  # as releases before 4.14 of platformdirs return in that case
        raise FileNotFoundError(f"the user's cache directory is not absolute: {directory}")
    return directory


def directory_from(variable: str) -> Path | None:
    """The directory in an environment variable; None if it is not set or not an absolute path."""
    directory = Path(os.environ.get(variable, ""))
    return directory if directory.is_absolute() else None


def _private_temporary() -> Path:
    """This user's directory below the temporary one, where other users can write as well.

    Numba unpickles the files of its cache, so a directory that another user could have prepared is
    refused. Windows has a temporary directory for each user.
    """
    root = Path(tempfile.gettempdir())
    if sys.platform == "win32":
        directory = root / f"keisei-cache-{os.environ.get('USERNAME', '')}"
    else:
        directory = root / f"keisei-cache-{os.geteuid()}"
        directory.mkdir(mode=stat.S_IRWXU, exist_ok=True)
        found = directory.lstat()
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
            raise PermissionError(f"{directory} is not a directory owned by this user")
        if found.st_mode & (stat.S_IWGRP | stat.S_IWOTH):
            raise PermissionError(f"other users can write to {directory}")
    return directory


def _fresh_temporary() -> Path:
    """Make a directory for this process alone, which is removed at its exit."""
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
    for stale in others[_MAX_CACHES - 1 :]:
        # If another process uses or prunes it at this moment, it stays.
        shutil.rmtree(stale, ignore_errors=True)


def _last_use(directory: Path) -> float:
    try:
        return directory.stat().st_mtime
    except OSError:  # another process has just pruned it
        return 0.0


def _with_one_version(dispatcher: Kernel) -> Kernel:
    """Let calling kernels pass any integer type: all share the int64 version."""
    numba_dispatcher: Any = dispatcher
    original = numba_dispatcher.get_call_template

    def get_call_template(args: tuple[types.Type, ...], kws: dict[str, types.Type]) -> Any:
        widened = {name: _widened(kind) for name, kind in kws.items()}
        return original(tuple(_widened(kind) for kind in args), widened)

    numba_dispatcher.get_call_template = get_call_template
    return dispatcher


def _refuse_python_calls(dispatcher: Any) -> None:
    """Raise TypeError on a call from Python, where Numba would crash for want of a wrapper."""

    def refuse(*args: Any) -> Any:
        raise TypeError(f"{dispatcher.__name__} is for kernels only; decorate it with `jit`")

    dispatcher._insert = lambda *args: None  # the lookup table of calls from Python
    dispatcher._compile_for_args = refuse


def _widened(kind: types.Type) -> types.Type:
    kind = types.unliteral(kind)
    if isinstance(kind, types.Integer) and kind.bitwidth < 64:
        return types.int64
    return kind

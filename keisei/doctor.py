"""Check the installation: interpreter, packages, device, compiled kernels, optional extras.

Whatever is broken becomes a row of the report, so this module itself imports nothing that can be
broken.
"""

import importlib
import os
import platform
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from enum import StrEnum
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, NamedTuple

from keisei import __version__
from keisei.system import usable_cpus

OLDEST_PYTHON = (3, 11)
NEWEST_TESTED_PYTHON = (3, 13)

REQUIRED_PACKAGES = ("numpy", "numba", "llvmlite")
"""The packages with compiled code, whose installation can go wrong."""

REPAIR_TORCH = 'python -m pip install --force-reinstall "keisei[torch]"'

Progress = Callable[[str, int, int | None], None]
"""``on_progress(step, done, total)``: the next step, and how many are done (total may be None)."""


class Status(StrEnum):
    """Result of a check."""

    OK = "ok"
    WARN = "warn"
    """Keisei works, but something deserves a look."""
    FAIL = "fail"
    """Keisei does not work."""
    OFF = "off"
    """An optional part that is not installed."""


@dataclass(frozen=True)
class Check:
    """One row of the report."""

    name: str
    status: Status
    found: str
    hint: str = ""
    """Remedy, for the user."""


@dataclass(frozen=True)
class KernelTiming:
    """Time until one group of kernels was ready to run."""

    name: str
    wall_seconds: float
    cpu_seconds: float
    from_cache: bool
    """Whether all of its machine code came from the cache."""


@dataclass(frozen=True)
class Diagnosis:
    """All checks and kernel timings."""

    checks: tuple[Check, ...]
    kernels: tuple[KernelTiming, ...]

    @property
    def usable(self) -> bool:
        """Whether Keisei works on this machine."""
        return all(check.status is not Status.FAIL for check in self.checks)

    def as_dict(self) -> dict[str, Any]:
        """Return the report as plain values, for JSON."""
        return {"usable": self.usable, **asdict(self)}


class Extra(NamedTuple):
    """An optional part of Keisei, as declared in ``pyproject.toml``."""

    packages: tuple[str, ...]
    purpose: str


EXTRAS = {
    "torch": Extra(("torch",), "towers (resnet, transformer), GPUs, several learners"),
    "envs": Extra(("gymnasium", "pettingzoo"), "Gymnasium and PettingZoo environments"),
    "web": Extra(
        ("babel", "fastapi", "nicegui", "orjson", "uvicorn", "wsproto"),
        "board and dashboard in the browser",
    ),
    "sweep": Extra(("optuna", "sqlalchemy"), "search for good settings"),
    "wandb": Extra(("wandb",), "logging to Weights & Biases"),
    "ray": Extra(("ray",), "self-play on a cluster"),
    "onnx": Extra(("onnx", "onnxruntime"), "networks as ONNX files"),
}
"""The extras for users; ``dev`` and ``docs`` are for people who work on Keisei itself."""


def diagnose(on_progress: Progress | None = None) -> Diagnosis:
    """Run every check and compile every kernel."""
    report_progress = on_progress or (lambda step, done, total: None)
    report_progress("checking the installation", 0, None)
    checks = [
        check_python(),
        Check("keisei", Status.OK, __version__),
        *(check_package(name) for name in REQUIRED_PACKAGES),
        check_device(),
        check_threads(),
    ]
    kernel_check, kernels = compile_kernels(report_progress)
    checks += [kernel_check, check_kernel_cache(), *check_extras()]
    return Diagnosis(tuple(checks), kernels)


def check_python() -> Check:
    """Check that Keisei supports this Python."""
    system = f"{platform.system()} {platform.machine()}"
    found = f"{platform.python_implementation()} {platform.python_version()}, {system}"
    running = sys.version_info[:2]
    if running < OLDEST_PYTHON:
        needed = ".".join(map(str, OLDEST_PYTHON))
        return Check("Python", Status.FAIL, found, f"install Python {needed} or newer")
    if running > NEWEST_TESTED_PYTHON:
        tested = ".".join(map(str, NEWEST_TESTED_PYTHON))
        return Check("Python", Status.WARN, found, f"tested up to Python {tested} only")
    return Check("Python", Status.OK, found)


def check_package(name: str) -> Check:
    """Check that a required package is installed and can be imported."""
    try:
        importlib.import_module(name)
        return Check(name, Status.OK, version(name))
    except Exception as error:  # noqa: BLE001 -- a broken binary package can raise anything
        hint = f'python -m pip install --force-reinstall "{name}"'
        return Check(name, Status.FAIL, _in_one_line(error), hint)


def check_device() -> Check:
    """Check which devices networks run on."""
    has_driver = shutil.which("nvidia-smi") is not None
    if not _is_installed("torch"):
        found = "cpu: sparse networks use no other; the extra torch brings towers and GPUs"
        if has_driver:
            hint = (
                'an NVIDIA driver is installed; for its GPU: python -m pip install "keisei[torch]"'
            )
            return Check("device", Status.WARN, found, hint)
        return Check("device", Status.OK, found)
    try:
        import torch

        if torch.cuda.is_available():
            count = torch.cuda.device_count()
            names = ", ".join(torch.cuda.get_device_name(index) for index in range(count))
            return Check("device", Status.OK, f"cuda: {names}")
        if torch.backends.mps.is_available():
            return Check("device", Status.OK, "mps: Apple GPU")
    except Exception as error:  # noqa: BLE001 -- a broken driver can raise anything
        return Check("device", Status.FAIL, _in_one_line(error), REPAIR_TORCH)
    if has_driver:
        hint = "an NVIDIA driver is installed: install torch with CUDA to use the GPU"
        return Check("device", Status.WARN, "cpu", hint)
    return Check("device", Status.OK, "cpu")


def check_threads() -> Check:
    """Check the processors this process may use, and the threads that torch would start on them."""
    usable = usable_cpus()
    found = f"{usable} of {os.cpu_count()} CPUs usable"
    if not _is_installed("torch"):
        return Check("threads", Status.OK, found)
    try:
        import torch

        threads = torch.get_num_threads()
    except Exception as error:  # noqa: BLE001 -- a broken binary package can raise anything
        return Check("threads", Status.FAIL, f"{found}; {_in_one_line(error)}", REPAIR_TORCH)
    found += f", torch uses {threads}"
    if threads > usable:
        hint = f"more threads than CPUs are slow: set OMP_NUM_THREADS={usable}"
        return Check("threads", Status.WARN, found, hint)
    return Check("threads", Status.OK, found)


def check_kernel_cache() -> Check:
    """Check that compiled kernels can be cached, so that only the first start is slow."""
    try:
        from keisei.shogi.jit import cache_directory, directory_from

        directory = cache_directory()
        files = [path.stat().st_size for path in directory.rglob("*") if path.is_file()]
    except Exception as error:  # noqa: BLE001 -- numba may be broken in any way
        hint = "set KEISEI_CACHE_DIR to a writable directory"
        return Check("kernel cache", Status.FAIL, _in_one_line(error), hint)
    found = f"{directory} ({len(files)} files, {sum(files) / 1e6:.1f} MB)"
    temporary = directory.is_relative_to(Path(tempfile.gettempdir()))
    if temporary and directory_from("KEISEI_CACHE_DIR") is None:
        hint = "your cache directory is not writable: set KEISEI_CACHE_DIR to one that is"
        return Check("kernel cache", Status.WARN, found, hint)
    return Check("kernel cache", Status.OK, found)


def compile_kernels(on_progress: Progress) -> tuple[Check, tuple[KernelTiming, ...]]:
    """Compile every kernel, or load it from the cache, and time it."""
    timings: list[KernelTiming] = []
    name = "import"
    try:
        import numba

        if numba.config.DISABLE_JIT:
            hint = "unset NUMBA_DISABLE_JIT: plain Python is far too slow for training"
            return Check("kernels", Status.WARN, "the JIT is off", hint), ()
        from keisei.warmup import kernels

        todo = kernels()
        for done, (name, make_ready) in enumerate(todo):
            on_progress(f"compiling {name}", done, len(todo))
            timings.append(_timed(name, make_ready))
    except Exception as error:  # noqa: BLE001 -- that something went wrong is the finding
        hint = "please report this with the output of `keisei doctor --json`"
        return Check("kernels", Status.FAIL, f"{name}: {_in_one_line(error)}", hint), tuple(timings)
    wall = sum(timing.wall_seconds for timing in timings)
    cpu = sum(timing.cpu_seconds for timing in timings)
    cached = sum(timing.from_cache for timing in timings)
    found = f"{len(timings)} ready in {wall:.1f} s ({cpu:.1f} s of CPU), {cached} from the cache"
    return Check("kernels", Status.OK, found), tuple(timings)


def _timed(name: str, make_ready: Callable[[], None]) -> KernelTiming:
    from numba.core.event import install_recorder

    wall, cpu = time.perf_counter(), time.process_time()
    with install_recorder("numba:compile") as compilations:
        make_ready()
    return KernelTiming(
        name=name,
        wall_seconds=time.perf_counter() - wall,
        cpu_seconds=time.process_time() - cpu,
        from_cache=not compilations.buffer,
    )


def check_extras() -> Iterator[Check]:
    """Check which extras are installed."""
    for name, extra in EXTRAS.items():
        missing = [package for package in extra.packages if not _is_installed(package)]
        if missing:
            hint = f'python -m pip install "keisei[{name}]"'
            yield Check(f"extra {name}", Status.OFF, extra.purpose, hint)
        else:
            versions = ", ".join(f"{package} {version(package)}" for package in extra.packages)
            yield Check(f"extra {name}", Status.OK, versions)


def _is_installed(package: str) -> bool:
    try:
        version(package)
    except PackageNotFoundError:
        return False
    return True


def _in_one_line(error: Exception) -> str:
    return " ".join(f"{type(error).__name__}: {error}".split())

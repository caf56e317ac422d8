"""Compile every kernel once, so that later calls, and worker processes, find them in the cache."""

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

import numpy as np

from keisei import __version__
from keisei.constants import MAX_LEGAL_MOVES
from keisei.network.predictor import Prediction
from keisei.search.alphabeta import AlphaBeta
from keisei.search.gumbel import TreeSearch
from keisei.search.mates import MateSearch
from keisei.search.one_game import GameSearch
from keisei.search.tsume import MateSolver
from keisei.shogi.features import feature_spec
from keisei.shogi.game import ShogiGame
from keisei.shogi.material import greedy_legal_indices
from keisei.shogi.packed import (
    Positions,
    legal_from_packed,
    mirror_packed,
    pack_game,
    unpack_diagram,
)
from keisei.shogi.perft import perft
from keisei.shogi.position import new_positions
from keisei.shogi.rng import draw_moves, seed_rng_states
from keisei.shogi.vector import VectorShogi

OLDEST_PYTHON = (3, 11)
NEWEST_TESTED_PYTHON = (3, 13)

NEEDED_PACKAGES = ("numpy", "numba", "llvmlite", "torch")
"""The compiled packages: those where an installation goes wrong."""

Progress = Callable[[str, int, int | None], None]
"""Told what happens next, how many steps are done, and of how many (None when not yet known)."""


class Status(StrEnum):
    """How a check came out."""

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
    """What to do about it."""


@dataclass(frozen=True)
class KernelTiming:
    """How long it took until one kernel was ready to run."""

    name: str
    wall_seconds: float
    cpu_seconds: float
    from_cache: bool
    """Whether all of its machine code was found in the cache."""


@dataclass(frozen=True)
class Diagnosis:
    """Everything that was found."""

    checks: tuple[Check, ...]
    kernels: tuple[KernelTiming, ...]

    @property
    def usable(self) -> bool:
        """Whether Keisei works here."""
        return all(check.status is not Status.FAIL for check in self.checks)

    def as_dict(self) -> dict[str, Any]:
        """The report as plain values, for JSON."""
        return {"usable": self.usable, **asdict(self)}


class Extra(NamedTuple):
    """An optional part of Keisei, as declared in ``pyproject.toml``."""

    packages: tuple[str, ...]
    purpose: str


EXTRAS = {
    "envs": Extra(("gymnasium", "pettingzoo"), "Gymnasium and PettingZoo environments"),
    "web": Extra(
        ("fastapi", "nicegui", "orjson", "uvicorn", "wsproto"), "board and dashboard in the browser"
    ),
    "sweep": Extra(("optuna", "sqlalchemy"), "search for good settings"),
    "wandb": Extra(("wandb",), "logging to Weights & Biases"),
    "ray": Extra(("ray",), "self-play on a cluster"),
    "onnx": Extra(("onnx", "onnxruntime"), "networks as ONNX files, played without torch"),
}
"""The extras that users choose from; ``dev`` and ``docs`` are for those who work on Keisei."""


def diagnose(on_progress: Progress | None = None) -> Diagnosis:
    """Run every check and compile every kernel."""
    report_progress = on_progress or (lambda step, done, total: None)
    report_progress("looking around", 0, None)
    checks = [
        check_python(),
        Check("keisei", Status.OK, __version__),
        *(check_package(name) for name in NEEDED_PACKAGES),
        check_device(),
        check_threads(),
    ]
    kernel_check, kernels = compile_kernels(report_progress)
    checks += [kernel_check, check_kernel_cache(), *check_extras()]
    return Diagnosis(tuple(checks), kernels)


def check_python() -> Check:
    """The interpreter is one that Keisei supports."""
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
    """A needed package is there and can be imported."""
    try:
        importlib.import_module(name)
        return Check(name, Status.OK, version(name))
    except Exception as error:  # noqa: BLE001 -- a broken binary package can raise anything
        hint = f'python -m pip install --force-reinstall "{name}"'
        return Check(name, Status.FAIL, _in_one_line(error), hint)


def check_device() -> Check:
    """The device that networks run on."""
    try:
        import torch

        if torch.cuda.is_available():
            count = torch.cuda.device_count()
            names = ", ".join(torch.cuda.get_device_name(index) for index in range(count))
            return Check("device", Status.OK, f"cuda: {names}")
        if torch.backends.mps.is_available():
            return Check("device", Status.OK, "mps: Apple GPU")
    except Exception as error:  # noqa: BLE001 -- a broken driver can raise anything
        return Check("device", Status.FAIL, _in_one_line(error), "repair torch first")
    if shutil.which("nvidia-smi"):
        hint = "there is an NVIDIA driver: install a torch with CUDA to use the GPU"
        return Check("device", Status.WARN, "cpu", hint)
    return Check("device", Status.OK, "cpu")


def check_threads() -> Check:
    """The processors this process may use, and the threads that torch starts."""
    usable = usable_cpus()
    found = f"{usable} of {os.cpu_count()} CPUs usable"
    try:
        import torch

        threads = torch.get_num_threads()
    except Exception as error:  # noqa: BLE001 -- a broken binary package can raise anything
        return Check(
            "threads", Status.FAIL, f"{found}; {_in_one_line(error)}", "repair torch first"
        )
    found += f", torch uses {threads}"
    if threads > usable:
        hint = f"more threads than CPUs are slow: set OMP_NUM_THREADS={usable}"
        return Check("threads", Status.WARN, found, hint)
    return Check("threads", Status.OK, found)


def usable_cpus() -> int:
    """How many processors this process may run on: schedulers often allow only some of them."""
    if sys.platform == "linux":
        return len(os.sched_getaffinity(0))
    else:
        return os.cpu_count() or 1


def check_kernel_cache() -> Check:
    """Compiled kernels can be kept, so that only the first start is slow."""
    try:
        from keisei.shogi.jit import cache_directory, directory_from

        directory = cache_directory()
        files = [path.stat().st_size for path in directory.rglob("*") if path.is_file()]
    except Exception as error:  # noqa: BLE001 -- numba may be broken in any way
        hint = "set KEISEI_CACHE_DIR to a directory that can be written"
        return Check("kernel cache", Status.FAIL, _in_one_line(error), hint)
    found = f"{directory} ({len(files)} files, {sum(files) / 1e6:.1f} MB)"
    temporary = directory.is_relative_to(Path(tempfile.gettempdir()))
    if temporary and directory_from("KEISEI_CACHE_DIR") is None:
        hint = "your cache directory can't be written: set KEISEI_CACHE_DIR to one that can"
        return Check("kernel cache", Status.WARN, found, hint)
    return Check("kernel cache", Status.OK, found)


def compile_kernels(on_progress: Progress) -> tuple[Check, tuple[KernelTiming, ...]]:
    """Make every kernel ready to run: compiled, or loaded from the cache."""
    timings: list[KernelTiming] = []
    name = "import"
    try:
        import numba

        if numba.config.DISABLE_JIT:
            hint = "unset NUMBA_DISABLE_JIT: plain Python is far too slow for training"
            return Check("kernels", Status.WARN, "the JIT is off", hint), ()
        todo = kernels()
        for done, (name, make_ready) in enumerate(todo):
            on_progress(f"compiling {name}", done, len(todo))
            timings.append(_timed(name, make_ready))
    except Exception as error:  # noqa: BLE001 -- the finding is exactly that something went wrong
        hint = "please report this together with the output of `keisei doctor --json`"
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
    """Which optional parts are installed."""
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


def kernels() -> list[tuple[str, Callable[[], None]]]:
    """Groups of kernels: what each is for, and a function that compiles it (or loads it)."""
    return [
        ("moves and rules", _one_game),
        ("perft", _perft),
        ("packed positions", _packed),
        ("many games at once", _vector),
        ("observation planes", _planes),
        ("bots and short mates", _bots),
        ("alpha-beta", _alpha_beta),
        ("tree search", _tree_search),
        ("long mates", _long_mates),
    ]


def _one_game() -> None:
    game = ShogiGame()
    game.push("7g7f")
    game.outcome(claim_declaration=True)
    _ = game.can_declare
    game.pop()


def _perft() -> None:
    perft(ShogiGame().position, 2)


def _packed() -> None:
    packed = pack_game(ShogiGame())
    mirror_packed(packed, packed)
    unpack_diagram(packed[0])
    legal, counts = np.zeros((1, MAX_LEGAL_MOVES), np.uint16), np.zeros(1, np.int32)
    legal_from_packed(packed, legal, counts, new_positions(2), 0, 1)


def _vector() -> None:
    env = VectorShogi(1)
    env.step(env.sample_actions())
    env.mates_in_one()
    env.legal_mask()


def _planes() -> None:
    for dtype in (np.float32, np.uint16, np.uint8):
        feature_spec("core46+all").encode(pack_game(ShogiGame()), dtype=dtype)


class _Even:
    """A judge that likes all moves alike."""

    def predict(self, positions: Positions) -> Prediction:
        packed, _, legal_counts = positions
        shape = (len(packed), int(legal_counts.max()))
        return Prediction(np.zeros(shape, np.float32), np.zeros(len(packed), np.float32))


def _bots() -> None:
    env, legal_indices = VectorShogi(1), np.zeros(1, np.int64)
    rng_states = seed_rng_states(np.random.default_rng(0), 1)
    greedy_legal_indices(
        env.positions, env.legal_actions, env.legal_counts, rng_states, legal_indices
    )
    draw_moves(np.zeros((1, 2), np.float32), rng_states)
    MateSearch(3).find(env.positions, env.legal_actions, env.legal_counts)


def _alpha_beta() -> None:
    env = VectorShogi(1)
    rng_states = seed_rng_states(np.random.default_rng(0), 1)
    AlphaBeta(1).search(env.positions, env.legal_actions, env.legal_counts, rng_states)


def _tree_search() -> None:
    TreeSearch(_Even(), 2).search(VectorShogi(1), np.arange(1), np.random.default_rng(0))
    game, search = ShogiGame(), GameSearch(_Even(), walks=1, megabytes=1)
    for action in (int(game.legal_actions[0]), None):
        search.begin(game, ply_limit=100)
        while search.simulations < 2 * len(game.legal_actions):
            search.step()
        search.lines()
        if action is not None:  # what is left of the tree is used again
            game = game.copy()
            game.push_action(action)


def _long_mates() -> None:
    MateSolver(entries=1 << 8).solve(ShogiGame(), 1)

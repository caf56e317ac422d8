"""The start of ``keisei usi``: GUIs wait for ``readyok``."""

import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

import psutil
import pytest

import keisei

ROOT: Final = Path(keisei.__file__).parents[1]

CPU_SECONDS: Final = 1.5
"""CPU time until ``readyok``: 0.8 s were measured on a busy machine."""

HEAVY: Final = {"torch", "matplotlib", "rich", "onnx", "onnxruntime", "starlette", "ray", "wandb"}
"""Packages that an engine with a sparse network must not import before it is ready."""


@contextmanager
def ready_engine(
    errors: Path, *options: str, environment: Mapping[str, str] = os.environ
) -> Iterator[int]:
    """Start the engine in the package as GUIs do, and give its process id once it is ready."""
    with (
        errors.open("wb") as stderr,
        subprocess.Popen(
            [sys.executable, *options, "-m", "keisei", "usi"],
            cwd=ROOT,
            env=environment,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=stderr,
            encoding="utf-8",
        ) as engine,
    ):
        assert engine.stdin is not None
        assert engine.stdout is not None
        engine.stdin.write("usi\nisready\n")
        engine.stdin.flush()
        answers = []
        while "readyok\n" not in answers:
            answers.append(engine.stdout.readline())
            assert answers[-1], errors.read_text(encoding="utf-8")
        yield engine.pid
        engine.stdin.write("quit\n")


def test_nothing_heavy_is_imported_before_the_engine_is_ready(tmp_path: Path) -> None:
    report = tmp_path / "imports.txt"
    with ready_engine(report, "-X", "importtime"):
        pass
    imported = {
        line.rpartition("|")[2].strip().partition(".")[0]
        for line in report.read_text(encoding="utf-8").splitlines()
    }
    assert {"numba", "keisei"} <= imported
    assert imported & HEAVY == set()


@pytest.mark.soak
def test_a_warm_engine_is_ready_after_a_second_of_work(tmp_path: Path) -> None:
    """CPU time, since others may use the machine; kernels and bytecode are cached."""
    environment = {**os.environ, "PYTHONPYCACHEPREFIX": str(tmp_path / "bytecode")}
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    seconds = []
    for _ in range(4):
        with ready_engine(tmp_path / "errors.txt", environment=environment) as number:
            engine = psutil.Process(number)
            times = [process.cpu_times() for process in (engine, *engine.children(recursive=True))]
            seconds.append(sum(time.user + time.system for time in times))
    assert min(seconds[1:]) <= CPU_SECONDS, seconds

"""`keisei doctor`: every kind of trouble becomes a row with a hint."""

import json
import shutil
import sys
import tempfile
import tomllib
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import numba
import pytest
import torch
from typer.testing import CliRunner

from keisei import doctor
from keisei.cli import app
from keisei.doctor import Check, Status

PROJECT = Path(__file__).parent.parent

Kernels = list[tuple[str, Callable[[], object]]]
Install = Callable[[Kernels], None]


def ignore_progress(step: str, done: int, total: int | None) -> None:
    pass


@pytest.fixture
def install_kernels(monkeypatch: pytest.MonkeyPatch) -> Install:
    """Replace Keisei's kernels, with the JIT on."""

    def install(kernels: Kernels) -> None:
        stand_in = SimpleNamespace(kernels=lambda: kernels)
        monkeypatch.setitem(sys.modules, "keisei.warmup", stand_in)
        monkeypatch.setattr(numba.config, "DISABLE_JIT", 0)

    return install


def test_this_machine_passes() -> None:
    diagnosis = doctor.diagnose()
    assert [check for check in diagnosis.checks if check.status is Status.FAIL] == []
    assert diagnosis.usable


def test_extras_are_those_of_the_project() -> None:
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    declared = {
        name: {requirement.partition(">=")[0] for requirement in requirements}
        for name, requirements in project["optional-dependencies"].items()
        if name not in ("dev", "docs")
    }
    assert {name: set(extra.packages) for name, extra in doctor.EXTRAS.items()} == declared


def test_missing_extra_is_off_and_says_how_to_install_it(monkeypatch: pytest.MonkeyPatch) -> None:
    extra = doctor.Extra(("no-such-package",), "time travel")
    monkeypatch.setattr(doctor, "EXTRAS", {"future": extra})
    assert list(doctor.check_extras()) == [
        Check("extra future", Status.OFF, "time travel", 'python -m pip install "keisei[future]"')
    ]


def test_installed_extra_shows_its_versions(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(doctor, "EXTRAS", {"now": doctor.Extra(("numba",), "kernels")})
    (check,) = doctor.check_extras()
    assert check == Check("extra now", Status.OK, f"numba {numba.__version__}")


@pytest.mark.parametrize(
    ("version", "status"),
    [((3, 10), Status.FAIL), ((3, 11), Status.OK), ((3, 13), Status.OK), ((3, 99), Status.WARN)],
)
def test_python_version(
    version: tuple[int, int], status: Status, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "version_info", (*version, 0))
    check = doctor.check_python()
    assert check.status is status
    assert bool(check.hint) == (status is not Status.OK)


def test_missing_package_fails() -> None:
    check = doctor.check_package("no_such_package")
    assert check.status is Status.FAIL
    assert "No module named 'no_such_package'" in check.found
    assert "pip install" in check.hint


def pretend_devices(monkeypatch: pytest.MonkeyPatch, *, cuda: int, mps: bool, smi: bool) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: cuda > 0)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: cuda)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda index: f"GPU {index}")
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: mps)
    monkeypatch.setattr(shutil, "which", lambda name: name if smi else None)


@pytest.mark.parametrize(
    ("cuda", "mps", "smi", "status", "found"),
    [
        (2, False, True, Status.OK, "cuda: GPU 0, GPU 1"),
        (0, True, False, Status.OK, "mps: Apple GPU"),
        (0, False, False, Status.OK, "cpu"),
        (0, False, True, Status.WARN, "cpu"),
    ],
)
def test_device(
    cuda: int, mps: bool, smi: bool, status: Status, found: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pretend_devices(monkeypatch, cuda=cuda, mps=mps, smi=smi)
    check = doctor.check_device()
    assert (check.status, check.found) == (status, found)


def test_broken_driver_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken() -> bool:
        raise RuntimeError("driver\n  is broken")

    monkeypatch.setattr(torch.cuda, "is_available", broken)
    check = doctor.check_device()
    assert (check.status, check.found) == (Status.FAIL, "RuntimeError: driver is broken")


@pytest.mark.parametrize(("threads", "status"), [(2, Status.OK), (8, Status.WARN)])
def test_more_threads_than_cpus_are_noticed(
    threads: int, status: Status, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor, "usable_cpus", lambda: 2)
    monkeypatch.setattr(torch, "get_num_threads", lambda: threads)
    check = doctor.check_threads()
    assert check.status is status
    assert f"torch uses {threads}" in check.found


def test_torch_that_does_not_import_fails_both_of_its_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    assert doctor.check_threads().status is Status.FAIL
    assert doctor.check_device().status is Status.FAIL


@pytest.mark.parametrize(("smi", "status"), [(False, Status.OK), (True, Status.WARN)])
def test_torch_that_is_not_installed_is_no_fault(
    smi: bool, status: Status, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(doctor, "_is_installed", lambda package: False)
    monkeypatch.setattr(shutil, "which", lambda name: name if smi else None)
    device = doctor.check_device()
    assert device.status is status
    assert "sparse networks" in device.found
    assert ("keisei[torch]" in device.hint) == smi
    threads = doctor.check_threads()
    assert threads.status is Status.OK
    assert "torch" not in threads.found


def test_kernel_cache_size_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "kernel.nbc").write_bytes(bytes(1_500_000))
    monkeypatch.setattr("keisei.shogi.jit.cache_directory", lambda: tmp_path)
    monkeypatch.setenv("KEISEI_CACHE_DIR", str(tmp_path))
    check = doctor.check_kernel_cache()
    assert check == Check("kernel cache", Status.OK, f"{tmp_path} (1 files, 1.5 MB)")


@pytest.mark.parametrize("chosen", [None, "", "relative/path"])
def test_kernel_cache_that_had_to_move_is_noticed(
    chosen: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("keisei.shogi.jit.cache_directory", lambda: tmp_path)
    monkeypatch.setattr(tempfile, "gettempdir", lambda: str(tmp_path.parent))
    if chosen is None:
        monkeypatch.delenv("KEISEI_CACHE_DIR", raising=False)
    else:  # what is ignored where the directory is chosen counts as not set here as well
        monkeypatch.setenv("KEISEI_CACHE_DIR", chosen)
    check = doctor.check_kernel_cache()
    assert check.status is Status.WARN
    assert "KEISEI_CACHE_DIR" in check.hint


def test_kernel_cache_that_cannot_be_written_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse() -> Path:
        raise OSError("read-only file system")

    monkeypatch.setattr("keisei.shogi.jit.cache_directory", refuse)
    check = doctor.check_kernel_cache()
    assert (check.status, check.found) == (Status.FAIL, "OSError: read-only file system")


@pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason="nothing compiles with the JIT off")
def test_compiled_and_ready_kernels_are_told_apart(install_kernels: Install) -> None:
    increment = numba.njit(lambda number: number + 1)
    install_kernels([("first", lambda: increment(1)), ("second", lambda: increment(2))])
    steps: list[tuple[str, int, int | None]] = []
    check, timings = doctor.compile_kernels(lambda *step: steps.append(step))
    assert [timing.from_cache for timing in timings] == [False, True]
    assert timings[0].wall_seconds > timings[1].wall_seconds > 0
    assert timings[0].cpu_seconds > 0
    assert steps == [("compiling first", 0, 2), ("compiling second", 1, 2)]
    assert check.status is Status.OK
    assert "2 ready" in check.found
    assert "1 from the cache" in check.found


def test_kernel_that_does_not_compile_fails(install_kernels: Install) -> None:
    def broken() -> None:
        raise TypeError("no lowering for i128")

    install_kernels([("good", lambda: None), ("bad", broken)])
    check, timings = doctor.compile_kernels(ignore_progress)
    assert (check.status, check.found) == (Status.FAIL, "bad: TypeError: no lowering for i128")
    assert [timing.name for timing in timings] == ["good"]


def test_kernels_that_do_not_import_fail(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "keisei.warmup", None)
    check, timings = doctor.compile_kernels(ignore_progress)
    assert check.status is Status.FAIL
    assert check.found.startswith("import: ModuleNotFoundError")
    assert timings == ()


def test_jit_that_is_off_is_noticed(
    install_kernels: Install, monkeypatch: pytest.MonkeyPatch
) -> None:
    install_kernels([])
    monkeypatch.setattr(numba.config, "DISABLE_JIT", 1)
    check, _ = doctor.compile_kernels(ignore_progress)
    assert check.status is Status.WARN
    assert "NUMBA_DISABLE_JIT" in check.hint


def test_report_for_people(install_kernels: Install) -> None:
    install_kernels([("perft", lambda: None)])
    result = CliRunner().invoke(app, ["doctor"])
    assert result.exit_code == 0
    assert "Keisei is ready." in result.stdout
    assert "perft" in result.stdout


def test_report_for_machines(install_kernels: Install) -> None:
    install_kernels([("perft", lambda: None)])
    result = CliRunner().invoke(app, ["doctor", "--json"])
    report = json.loads(result.stdout)
    assert report["usable"] is True
    names = {check["name"] for check in report["checks"]}
    assert names >= {"Python", "extra torch", "kernel cache"}
    assert all(check["status"] in list(Status) for check in report["checks"])


def test_trouble_exits_with_1(install_kernels: Install, monkeypatch: pytest.MonkeyPatch) -> None:
    install_kernels([])
    monkeypatch.setattr(doctor, "REQUIRED_PACKAGES", ("no_such_package",))
    result = CliRunner().invoke(app, ["doctor"])
    assert result.exit_code == 1
    assert "can't run yet" in result.stdout

"""What the benchmark says about the machine."""

import os
import platform
from importlib.metadata import version
from pathlib import Path

import pytest

from keisei.benchmark import harness as machine
from keisei.benchmark.harness import Machine, this_machine


def test_this_machine_is_described() -> None:
    found = this_machine(["numpy", "no-such-package"])
    assert found.cpu
    assert found.cpus >= 1
    assert platform.python_version() in found.python
    assert found.versions == {"numpy": version("numpy")}
    assert found.as_dict()["is_busy"] == found.is_busy


@pytest.mark.parametrize(
    ("load", "is_busy"), [(None, False), (0.0, False), (1.0, False), (1.1, True)]
)
def test_busy_is_more_than_half_of_the_processors(load: float | None, is_busy: bool) -> None:
    assert Machine("", cpus=2, load=load, python="", versions={}).is_busy == is_busy


def test_systems_without_a_load_average(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail() -> tuple[float, float, float]:
        raise OSError

    monkeypatch.setattr(os, "getloadavg", fail, raising=False)
    assert this_machine([]).load is None
    monkeypatch.delattr(os, "getloadavg")
    assert this_machine([]).load is None


def test_systems_without_cpuinfo(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(machine, "CPU_INFO", tmp_path / "cpuinfo")
    assert this_machine([]).cpu == (platform.processor() or platform.machine())
    (tmp_path / "cpuinfo").write_text("processor\t: 0\nmodel name\t: Abacus 3000\n")
    assert this_machine([]).cpu == "Abacus 3000"

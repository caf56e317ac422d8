"""``scripts/try_gpu.py``: what it reports of runs that succeed, fail or hang."""

import json
import platform
import re
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch

from keisei import __version__
from keisei.config import load_config
from tests.scripts import SCRIPTS, load_script

STEP = {"metrics": {"charts/SPS": 1234.0, "charts/minibatch_size": 512.0, "memory/vram_mb": 700.0}}
START = {
    "facts": {"device": "cuda:0", "precision": "bfloat16", "compile": "on", "learners": 2},
}


def test_every_check_has_valid_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    script = load_script("try_gpu", monkeypatch)
    for check in script.CHECKS:
        load_config(None, (*script.SETTINGS, *check.settings))
        load_config(None, (*script.SETTINGS, *script.CPU_SETTINGS, *check.settings))


def test_results_are_rows_of_a_table(monkeypatch: pytest.MonkeyPatch) -> None:
    script = load_script("try_gpu", monkeypatch)
    commands: list[list[str]] = []

    def run(command: Sequence[str], **_: Any) -> subprocess.CompletedProcess[str]:
        commands.append([*command])
        if "device.compile=on" in command:
            raise subprocess.TimeoutExpired(command, 300.0)
        if "device.mixed_precision=fp16" in command:
            return subprocess.CompletedProcess(command, 1, "", "trace\nno | kernel\n\n")
        root = next(part for part in command if part.startswith("run.root=")).partition("=")[2]
        (Path(root) / "run").mkdir()
        journal = "\n".join(json.dumps(entry) for entry in (START, STEP))
        (Path(root) / "run" / "metrics.jsonl").write_text(journal)
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr(subprocess, "run", run)
    results = {check.name: script.run_check(check, "cuda", 2) for check in script.CHECKS}
    row = str(results["float32"])
    assert row.startswith("| float32 | ok | 0 | cuda:0, bfloat16, compile on; 1,234 plies/s;")
    assert row.endswith("700 MB of VRAM |")
    assert str(results["float16"]).endswith("| no / kernel |")
    assert not results["float16"].is_ok
    assert "no result after 120 s" in str(results["torch.compile"])
    assert "--nproc-per-node=2" in commands[-1]
    assert all("device.device=cuda" in command for command in commands)
    assert "2 learners by NCCL" in str(results["several learners"])


def test_several_learners_need_several_gpus(monkeypatch: pytest.MonkeyPatch) -> None:
    script = load_script("try_gpu", monkeypatch)
    monkeypatch.setattr(subprocess, "run", None)  # nothing is run
    result = script.run_check(script.CHECKS[-1], "cuda", 1)
    assert str(result) == "| several learners | skipped | 0 | needs two GPUs |"
    assert result.is_ok


def test_what_does_not_fit_into_the_time_is_skipped(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    script = load_script("try_gpu", monkeypatch)
    now, timeouts = 0.0, []

    def run_check(check: Any, device: str, gpus: int, timeout: float) -> Any:
        nonlocal now
        timeouts.append(timeout)
        now += 45.0
        return script.CheckResult(check.name, True, 45.0, "")

    monkeypatch.setattr(script, "run_check", run_check)
    monkeypatch.setattr(script.time, "monotonic", lambda: now)
    assert script.run_checks("cpu", 0, "", script.BUDGET)
    assert timeouts == [120.0, 75.0, 30.0]
    rows = capsys.readouterr().out.splitlines()
    assert [row.split(" | ")[0] for row in rows] == [f"| {name}" for name in script.NAMES]
    assert all("skipped | 0 | the 120 s are over" in row for row in rows[3:])


def test_the_header_names_versions_and_devices(monkeypatch: pytest.MonkeyPatch) -> None:
    script = load_script("try_gpu", monkeypatch)
    monkeypatch.setattr(torch.cuda, "get_device_name", lambda index: f"Card {index}")
    monkeypatch.setattr(
        subprocess,
        "run",
        lambda *_, **__: subprocess.CompletedProcess((), 0, "555.42\n555.42\n", ""),
    )
    versions, system, devices = script.header(2)
    assert versions.startswith(f"Keisei {__version__}, Python 3.")
    assert system == platform.platform()
    assert devices.startswith("Card 0, Card 1; CUDA ")
    assert devices.endswith("driver 555.42")
    monkeypatch.setattr(torch.backends.mps, "is_available", lambda: True)
    assert script.header(0)[2].startswith("MPS of ")


@pytest.mark.soak
def test_it_runs_for_real() -> None:
    for check, figures in (
        ("float32", r"cpu, float32, compile off; [\d,]+ plies/s; minibatch 128"),
        ("memory", r"[\d,]+ of [\d,]+ MB free; too little of it cannot be tried on a CPU"),
    ):
        # Other programs may keep this machine busy: it has more time than a report needs.
        script = (sys.executable, SCRIPTS / "try_gpu.py", "--device", "cpu", "--budget", "900")
        command = (*script, "--only", check)
        result = subprocess.run(command, capture_output=True, text=True, timeout=1500, check=False)
        assert result.returncode == 0, result.stdout + result.stderr
        assert re.search(rf"^\| {check} \| ok \| \d+ \| {figures} \|$", result.stdout, re.M)

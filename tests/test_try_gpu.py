"""``scripts/try_gpu.py``: what it reports of runs that succeed, fail or hang."""

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest

from keisei.config import load_config
from tests.scripts import load_script

STEP = {"metrics": {"charts/SPS": 1234.0, "charts/minibatch_size": 512.0, "memory/vram_mb": 700.0}}
START = {"facts": {"device": "cuda:0", "precision": "bfloat16", "compile": "on"}}


def test_every_check_has_valid_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    script = load_script("try_gpu", monkeypatch)
    for check in script.CHECKS:
        load_config(None, (*script.SETTINGS, *check.settings))


def test_results_are_rows_of_a_table(monkeypatch: pytest.MonkeyPatch) -> None:
    script = load_script("try_gpu", monkeypatch)
    commands: list[list[str]] = []

    def run(command: list[str], **_: Any) -> subprocess.CompletedProcess[str]:
        commands.append(command)
        if "device.compile=on" in command:
            raise subprocess.TimeoutExpired(command, 300.0)
        if "device.mixed_precision=fp16" in command:
            return subprocess.CompletedProcess(command, -4, "", "trace\nIllegal | instruction\n\n")
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
    assert str(results["float16"]).endswith("| Illegal / instruction |")
    assert not results["float16"].is_ok
    assert "no end after 300 s" in str(results["torch.compile"])
    assert "--nproc-per-node=2" in commands[-1]
    assert all("device.device=cuda" in command for command in commands)

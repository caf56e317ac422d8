"""Reduced precision is tried out in a process that may die."""

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch

from keisei.network.towers import device as probe
from keisei.network.towers.device import Probe, probe_precision

PYTHON = sys.executable

SAFE_ISA = {"ONEDNN_MAX_CPU_ISA": "AVX512_CORE_FP16"}
"""Keeps oneDNN away from AMX, which some virtual machines advertise without providing it."""

AUTOCAST_PROGRAM = """
import torch
from tests.network.towers.samples import positions, small_model
torch.set_num_threads(1)
batch = positions(4)
for model_type in ("resnet", "transformer"):
    for policy_head, value_head in (("from_to", "tanh"), ("flat", "wdl")):
        model = small_model(type=model_type, policy_head=policy_head, value_head=value_head)
        exact = model(batch.planes, batch.legal)
        for dtype in (torch.bfloat16, torch.float16):
            with torch.autocast("cpu", dtype=dtype):
                output = model(batch.planes, batch.legal)
                losses = model.value_loss(output.value, torch.ones(4))
            assert output.logits.dtype == output.value.dtype == losses.dtype == torch.float32
            torch.testing.assert_close(output.logits, exact.logits, rtol=0.1, atol=0.02)
            torch.testing.assert_close(output.value, exact.value, rtol=0.1, atol=0.02)
            model.zero_grad()
            (losses.mean() + output.logits.logsumexp(1).mean()).backward()
            for name, parameter in model.named_parameters():
                assert parameter.grad is not None and parameter.grad.isfinite().all(), name
print("fine")
"""


@pytest.fixture(autouse=True)
def forget() -> Iterator[None]:
    probe_precision.cache_clear()
    yield
    probe_precision.cache_clear()


def test_autocast_works_in_both_reduced_precisions() -> None:
    result = subprocess.run(
        [sys.executable, "-c", AUTOCAST_PROGRAM],
        capture_output=True,
        text=True,
        check=False,
        cwd=Path(__file__).parents[3],
        env=os.environ | SAFE_ISA,
    )
    if result.returncode == -getattr(signal, "SIGILL", 4):
        pytest.skip("this machine has no bf16 or fp16, not even without AMX")
    assert result.stdout == "fine\n", result.stderr


def test_the_probe_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(*next(iter(SAFE_ISA.items())))
    monkeypatch.setattr(probe, "PROBE_TIMEOUT", 300.0)
    answer = probe_precision("cpu", torch.bfloat16, 1)
    assert answer.survived, answer.failure
    assert 0.01 < answer.speedup < 100


def stand_in(monkeypatch: pytest.MonkeyPatch, directory: Path, program: str) -> None:
    """Let this program be what the probe starts instead of Python."""
    script = directory / "python"
    script.write_text(f"#!{PYTHON}\n{program}\n")
    script.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(script))


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no scripts with #!")
@pytest.mark.parametrize(
    ("program", "expected"),
    [
        ("print(1.25)", Probe(1.25, "")),
        (
            "import os, signal; os.kill(os.getpid(), signal.SIGILL)",
            Probe(0.0, "ended by SIGILL"),
        ),
        ("raise RuntimeError('no kernel')", Probe(0.0, "RuntimeError: no kernel")),
        ("raise SystemExit(3)", Probe(0.0, "exit code 3")),
        ("import time; time.sleep(60)", Probe(0.0, "no result after 2 s")),
    ],
)
def test_any_end_of_the_probe_is_an_answer(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, program: str, expected: Probe
) -> None:
    stand_in(monkeypatch, tmp_path, program)
    monkeypatch.setattr(probe, "PROBE_TIMEOUT", 2.0 if "sleep" in program else 60.0)
    answer = probe_precision("cpu", torch.bfloat16, 1)
    assert answer == expected
    assert answer.survived == (expected.speedup > 0)


@pytest.mark.skipif(sys.platform == "win32", reason="Windows has no scripts with #!")
def test_it_is_tried_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    stand_in(monkeypatch, tmp_path, "print(2.0)")
    assert probe_precision("cpu", torch.bfloat16, 1).speedup == 2
    stand_in(monkeypatch, tmp_path, "print(3.0)")
    assert probe_precision("cpu", torch.bfloat16, 1).speedup == 2
    assert probe_precision("cpu", torch.bfloat16, 2).speedup == 3


def test_the_speedup_is_that_of_training_steps() -> None:
    """Torch turns autocast to float32 off, with a warning: safe in this process."""
    with pytest.warns(UserWarning, match="target dtype is not supported"):
        assert 0.1 < probe.measure_speedup("cpu", torch.float32) < 10

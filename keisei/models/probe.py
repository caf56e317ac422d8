"""Whether a reduced precision works here: tried out in a process that may die of it.

Some virtual machines advertise AMX without providing it. There the first bfloat16 multiplication
ends the process with SIGILL, which cannot be caught. ``python -m keisei.models.probe cpu bfloat16
1`` is that process: it prints how many times as fast as float32 a training step is.
"""

import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Final

import torch

from keisei.child_processes import module_environment

PROBE_SECONDS: Final = 120.0
"""How long the probe may take; it needs a few seconds, most of them to import torch."""

PROBE_BATCH: Final = 16
PROBE_STEPS: Final = 3
PROBE_PLANES: Final = 46
PROBE_SETTINGS: Final = {
    "tower_depth": 2,
    "tower_width": 64,
    "se_ratio": 0.25,
    "activation": "relu",
    "policy_head": "from_to",
    "policy_width": 32,
    "value_head": "tanh",
    "value_width": 64,
}


@dataclass(frozen=True)
class Probe:
    """What came of trying a precision."""

    speedup: float
    """Training steps per second over those of float32; 0 if the process did not survive."""

    failure: str
    """Why it did not survive; empty if it did."""

    @property
    def survived(self) -> bool:
        """Whether the precision can be used at all."""
        return not self.failure


@cache
def probe_precision(device: str, dtype: torch.dtype, threads: int) -> Probe:
    """Try training steps under autocast to `dtype` in another process. Done once per process."""
    name = str(dtype).removeprefix("torch.")
    command = [sys.executable, "-m", "keisei.models.probe", device, name, str(threads)]
    try:
        result = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=PROBE_SECONDS,
            env=module_environment(),
            check=False,
        )
    except subprocess.TimeoutExpired:
        return Probe(0.0, f"no answer after {PROBE_SECONDS:g} s")
    if result.returncode != 0:
        return Probe(0.0, _cause(result.returncode, result.stderr))
    return Probe(float(result.stdout), "")


def _cause(code: int, errors: str) -> str:
    if code < 0:
        return f"the processor or the system ended it with {signal.Signals(-code).name}"
    lines = errors.strip().splitlines()
    return lines[-1] if lines else f"exit code {code}"


def measure_speedup(device: str, dtype: torch.dtype) -> float:
    """How many times as fast as in float32 a training step is under autocast to `dtype`."""
    from keisei.models.factory import model_factory

    for model_type in ("transformer", "resnet"):
        model = model_factory(model_type, PROBE_PLANES, **PROBE_SETTINGS).to(device)
        planes = torch.rand(PROBE_BATCH, PROBE_PLANES, 9, 9, device=device)
        legal = torch.arange(PROBE_BATCH, device=device).expand(PROBE_BATCH, -1)

        def step(enabled: bool) -> None:
            with torch.autocast(device, dtype=dtype, enabled=enabled):
                output = model(planes, legal)  # noqa: B023 - called within the same iteration
            loss = output.logits.logsumexp(1).mean() + output.value.square().mean()
            loss.backward()
            if not loss.isfinite().item():  # item() also waits for the device
                raise ArithmeticError(f"{dtype} gives a loss of {loss.item()}")

        seconds = {enabled: _best_seconds(step, enabled) for enabled in (False, True)}
    return seconds[False] / seconds[True]


def _best_seconds(step: Callable[[bool], None], enabled: bool) -> float:
    step(enabled)
    best = float("inf")
    for _ in range(PROBE_STEPS):
        start = time.perf_counter()
        step(enabled)
        best = min(best, time.perf_counter() - start)
    return best


def main() -> None:
    """``python -m keisei.models.probe DEVICE DTYPE THREADS``."""
    device, name, threads = sys.argv[1:]
    torch.set_num_threads(int(threads))
    sys.stdout.write(f"{measure_speedup(device, getattr(torch, name))}\n")


if __name__ == "__main__":
    main()

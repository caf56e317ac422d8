"""Try everything that needs a GPU, in about two minutes, and print a report for an issue.

    python scripts/try_gpu.py [--device cuda]

Each check is a tiny run of ``keisei train`` in a process of its own, so that one that crashes does
not end the others: towers in float32, bfloat16 and float16, torch.compile, automatic minibatches,
workers with an inference server, and several learners (NCCL). Nothing is kept.
"""

import json
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Annotated, Final, NamedTuple

import typer

from keisei.system import module_environment

TIMEOUT: Final = 300.0
"""Seconds that a check may take; the first one may compile kernels."""

SETTINGS: Final = (
    "run.total_timesteps=8192",
    "env.num_games=64",
    "env.ply_limit=64",
    "model.type=resnet",
    "model.tower_depth=4",
    "model.tower_width=64",
    "selfplay.rollout_plies=32",
    "ppo.minibatch_size=512",
    "evaluation.opponents=[]",
    "evaluation.final_within=0",
    "checkpoint.interval=0",
    "logging.display=off",
    "logging.tensorboard=false",
)


class GpuCheck(NamedTuple):
    """A run that has to succeed."""

    name: str
    settings: tuple[str, ...] = ()
    is_distributed: bool = False


CHECKS: Final = (
    GpuCheck("float32"),
    GpuCheck("bfloat16", ("device.mixed_precision=bf16",)),
    GpuCheck("float16", ("device.mixed_precision=fp16",)),
    GpuCheck("torch.compile", ("device.compile=on",)),
    GpuCheck("automatic minibatches", ("ppo.minibatch_size=auto",)),
    GpuCheck("inference server", ("parallel.num_workers=2", "parallel.inference=server")),
    GpuCheck("transformer", ("model.type=transformer",)),
    GpuCheck("several learners", ("parallel.ddp=true",), is_distributed=True),
)


class CheckResult(NamedTuple):
    """The row of a check in the report."""

    name: str
    is_ok: bool
    seconds: float
    detail: str

    def __str__(self) -> str:
        verdict = "ok" if self.is_ok else "FAILED"
        return f"| {self.name} | {verdict} | {self.seconds:.0f} | {self.detail} |"


def run_check(check: GpuCheck, device: str, learners: int) -> CheckResult:
    """Run a check in a process of its own."""
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as directory:
        own = (f"run.root={directory}", "run.name=run", f"device.device={device}")
        flags = [part for one in (*SETTINGS, *own, *check.settings) for part in ("--set", one)]
        command = [sys.executable, "-m"]
        if check.is_distributed:
            command += ["torch.distributed.run", f"--nproc-per-node={learners}", "-m"]
        command += ["keisei", "train", *flags]
        try:
            result = subprocess.run(
                command,
                capture_output=True,
                text=True,
                timeout=TIMEOUT,
                env=module_environment(),
                check=False,
            )
        except subprocess.TimeoutExpired:
            return CheckResult(check.name, False, TIMEOUT, f"no end after {TIMEOUT:.0f} s")
        seconds = time.perf_counter() - start
        if result.returncode != 0:
            lines = [line for line in result.stderr.splitlines() if line.strip()]
            detail = lines[-1] if lines else f"exit code {result.returncode}"
            return CheckResult(check.name, False, seconds, detail.replace("|", "/"))
        return CheckResult(check.name, True, seconds, _figures(Path(directory) / "run"))


def _figures(run: Path) -> str:
    """Return device, precision, speed and memory of a run, from its journal."""
    journal = (run / "metrics.jsonl").read_text(encoding="utf-8")
    entries = [json.loads(line) for line in journal.splitlines()]
    facts = next(entry["facts"] for entry in entries if "facts" in entry)
    metrics = [entry["metrics"] for entry in entries if "charts/SPS" in entry.get("metrics", {})]
    last = metrics[-1]
    figures = [
        f"{facts['device']}, {facts['precision']}, compile {facts['compile']}",
        f"{last['charts/SPS']:,.0f} plies/s",
        f"minibatch {last['charts/minibatch_size']:.0f}",
    ]
    if "memory/vram_mb" in last:
        figures.append(f"{last['memory/vram_mb']:,.0f} MB of VRAM")
    return "; ".join(figures)


def main(
    device: Annotated[
        str, typer.Option(help="Device to try: cuda, mps; cpu tries this script.")
    ] = ("auto"),
    only: Annotated[str, typer.Option(help="Run only the check of this name.")] = "",
) -> None:
    """Run all checks and print the report; the exit code is 1 if one failed."""
    import torch

    gpus = torch.cuda.device_count() if torch.cuda.is_available() else 0
    names = [torch.cuda.get_device_name(index) for index in range(gpus)]
    typer.echo(f"torch {torch.__version__}, {', '.join(names) or 'no CUDA GPU'}\n")
    typer.echo("| check | result | seconds | figures |\n|---|---|---|---|")
    is_ok = True
    for check in CHECKS:
        if only in ("", check.name):
            result = run_check(check, device, learners=max(1, gpus))
            typer.echo(str(result))
            is_ok = is_ok and result.is_ok
    raise typer.Exit(0 if is_ok else 1)


if __name__ == "__main__":
    typer.run(main)

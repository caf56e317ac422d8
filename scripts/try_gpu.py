"""Try everything that needs a GPU, in about two minutes, and print a report for an issue.

    python scripts/try_gpu.py [--device cuda]

Each check is a tiny run of ``keisei train`` in a process of its own, so that one that crashes does
not end the others: towers in float32, bfloat16 and float16, torch.compile, automatic minibatches,
too little memory, workers with an inference server, and several learners (NCCL). What does not fit
into the time is skipped. Nothing is kept.
"""

import json
import platform
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Annotated, Final, NamedTuple

import typer

from keisei import __version__
from keisei.system import module_environment, run_module

BUDGET: Final = 120.0
"""Seconds that all checks may take together, once the kernels are compiled."""

WARM_UP: Final = 600.0
"""Seconds that compiling the kernels may take, before that."""

LITTLE_MEMORY: Final = 256 << 20
"""Bytes that learning may take where too little memory is tried: half of a first minibatch."""

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
    "evaluation.ply_limit=16",  # each run ends with 128 games, to compare values with outcomes
    "evaluation.final_within=0",
    "checkpoint.interval=0",
    "logging.display=off",
    "logging.tensorboard=false",
)

CPU_SETTINGS: Final = (
    "run.total_timesteps=512",
    "env.num_games=16",
    "model.tower_depth=1",
    "model.tower_width=16",
    "ppo.minibatch_size=128",
)
"""On a CPU it is the script that is tried: a slow bfloat16 is not to run into the time limit."""


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


MEMORY: Final = "memory"
"""Name of the check that is not a run of ``keisei train``; see `measure_memory`."""

NAMES: Final = (*(check.name for check in CHECKS), MEMORY)


class CheckResult(NamedTuple):
    """The row of a check in the report."""

    name: str
    is_ok: bool
    seconds: float
    detail: str
    is_skipped: bool = False

    @classmethod
    def skipped(cls, name: str, reason: str) -> "CheckResult":
        """Return the row of a check that was not run."""
        return cls(name, True, 0.0, reason, is_skipped=True)

    def __str__(self) -> str:
        verdict = "skipped" if self.is_skipped else "ok" if self.is_ok else "FAILED"
        return f"| {self.name} | {verdict} | {self.seconds:.0f} | {self.detail} |"


def run_check(check: GpuCheck, device: str, gpus: int, timeout: float = BUDGET) -> CheckResult:
    """Run a check in a process of its own, with one learner per GPU if it has several."""
    learners = 2 if device == "cpu" else gpus
    if check.is_distributed and learners < 2:
        return CheckResult.skipped(check.name, "needs two GPUs")
    start = time.perf_counter()
    with tempfile.TemporaryDirectory() as directory:
        own = (f"run.root={directory}", "run.name=run", f"device.device={device}")
        sizes = SETTINGS + (CPU_SETTINGS if device == "cpu" else ())
        flags = [part for one in (*sizes, *own, *check.settings) for part in ("--set", one)]
        launcher: tuple[str, ...] = ()
        if check.is_distributed:
            launcher = ("torch.distributed.run", f"--nproc-per-node={learners}", "-m")
        result = run_module(*launcher, "keisei", "train", *flags, timeout=timeout)
        seconds = time.perf_counter() - start
        if result.failure:
            return CheckResult(check.name, False, seconds, result.failure.replace("|", "/"))
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
    if (learners := facts.get("learners", 1)) > 1:
        backend = "NCCL" if facts["device"].startswith("cuda") else "Gloo"
        figures.append(f"{learners} learners by {backend}")
    if "memory/vram_mb" in last:
        figures.append(f"{last['memory/vram_mb']:,.0f} MB of VRAM")
    return "; ".join(figures)


def run_memory_check(device: str, timeout: float = BUDGET) -> CheckResult:
    """Run `measure_memory` in a process of its own."""
    start = time.perf_counter()
    command = (sys.executable, __file__, "--device", device, "--measure-memory")
    try:
        result = subprocess.run(
            command,
            capture_output=True,
            text=True,
            timeout=timeout,
            env=module_environment(),
            check=False,
        )
    except subprocess.TimeoutExpired:
        return CheckResult(MEMORY, False, timeout, f"no result after {timeout:g} s")
    is_ok = result.returncode == 0
    lines = (result.stdout if is_ok else result.stderr).strip().splitlines() or ["no output"]
    seconds = time.perf_counter() - start
    return CheckResult(MEMORY, is_ok, seconds, lines[-1].replace("|", "/"))


def measure_memory(device: str) -> str:
    """Return free and total memory, and what automatic minibatches did with too little of it.

    Raises:
        RuntimeError: They did not shrink.
    """
    import psutil
    import torch

    from keisei.callbacks import EventBus
    from keisei.config import load_config
    from keisei.network.towers.device import choose_device
    from keisei.ppo.ppo_learner import PPOLearner
    from keisei.training.trainer import Trainer

    chosen = choose_device(device)
    with tempfile.TemporaryDirectory() as directory:
        settings = (*SETTINGS, f"device.device={device}", "ppo.minibatch_size=auto")
        trainer = Trainer(load_config(None, settings), Path(directory), EventBus([]))
        assert isinstance(trainer.learner, PPOLearner)
        if chosen.type == "cuda":
            free, total = torch.cuda.mem_get_info(chosen)
            room = (torch.cuda.memory_reserved(chosen) + LITTLE_MEMORY) / total
            torch.cuda.set_per_process_memory_fraction(min(1.0, room), chosen)
        elif chosen.type == "mps":
            total = torch.mps.recommended_max_memory()
            taken = torch.mps.driver_allocated_memory()
            free = total - taken
            torch.mps.set_per_process_memory_fraction(min(1.0, (taken + LITTLE_MEMORY) / total))
        else:
            memory = psutil.virtual_memory()
            free, total = memory.available, memory.total
        figures = f"{free / 2**20:,.0f} of {total / 2**20:,.0f} MB free"
        if chosen.type == "cpu":
            return f"{figures}; too little of it cannot be tried on a CPU"
        before = min(trainer.learner.minibatch_size, len(trainer.buffer))
        trainer.train_step()
        after = trainer.learner.minibatch_size
        if after >= before:
            raise RuntimeError(f"{figures}; minibatches of {before} are now {after}: no halving")
        return f"{figures}; with {LITTLE_MEMORY >> 20} MB minibatches shrink: {before} -> {after}"


def header(gpus: int) -> list[str]:
    """Return what a reader of the report needs to know of this machine."""
    import torch

    devices = [torch.cuda.get_device_name(index) for index in range(gpus)]
    if torch.backends.mps.is_available():
        devices.append(f"MPS of {platform.processor() or platform.machine()}")
    return [
        f"Keisei {__version__}, Python {platform.python_version()}, torch {torch.__version__}",
        platform.platform(),
        f"{', '.join(devices) or 'no GPU'}{_driver() if gpus else ''}",
    ]


def _driver() -> str:
    """Return the versions of CUDA and of the driver, as far as they can be found out."""
    import torch

    try:
        query = ("nvidia-smi", "--query-gpu=driver_version", "--format=csv,noheader")
        found = subprocess.run(query, capture_output=True, text=True, timeout=20.0, check=True)
        driver = found.stdout.split("\n", maxsplit=1)[0]
    except (OSError, subprocess.SubprocessError):  # AMD's cards have another program
        driver = "unknown"
    return f"; CUDA {torch.version.cuda or torch.version.hip}, driver {driver}"


def run_checks(device: str, gpus: int, only: str, budget: float) -> bool:
    """Run the checks and print their rows while there is time; return whether none failed."""
    is_ok = True
    deadline = time.monotonic() + budget
    checks = {check.name: check for check in CHECKS}
    for name in NAMES if only == "" else (only,):
        left = deadline - time.monotonic()
        if left <= 0.0:
            result = CheckResult.skipped(name, f"the {budget:g} s are over; try --only")
        elif name == MEMORY:
            result = run_memory_check(device, left)
        else:
            result = run_check(checks[name], device, gpus, left)
        typer.echo(str(result))
        is_ok = is_ok and result.is_ok
    return is_ok


def main(
    device: Annotated[
        str, typer.Option(help="Device to try: cuda, mps; cpu tries this script.")
    ] = ("auto"),
    only: Annotated[str, typer.Option(help="Run only the check of this name.")] = "",
    budget: Annotated[float, typer.Option(help="Seconds for all checks together.")] = BUDGET,
    only_memory: Annotated[bool, typer.Option("--measure-memory", hidden=True)] = False,
) -> None:
    """Run all checks and print the report; the exit code is 1 if one failed."""
    import torch

    if only_memory:
        typer.echo(measure_memory(device))
        return
    if only not in ("", *NAMES):
        raise typer.BadParameter(f"there are {', '.join(NAMES)}", param_hint="--only")
    gpus = torch.cuda.device_count() if torch.cuda.is_available() else 0
    typer.echo("\n".join(header(gpus)))
    typer.echo("\n| check | result | seconds | figures |\n|---|---|---|---|")
    # Kernels are compiled once per machine, which may take longer than all checks.
    run_module("keisei", "doctor", timeout=WARM_UP)
    raise typer.Exit(0 if run_checks(device, gpus, only, budget) else 1)


if __name__ == "__main__":
    typer.run(main)

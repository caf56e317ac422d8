"""`Compute`: the device, precision and compiler of a tower, chosen for this machine.

>>> compute = choose_compute(DeviceConfig(device="cpu"))
>>> compute.device, compute.autocast_dtype, compute.needs_scaler
(device(type='cpu'), None, False)
"""

import copy
import logging
import os
import sys
import time
from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from functools import cache, partial
from typing import Final, Literal, NamedTuple, TypeVar

import torch

from keisei.config_schema import DeviceConfig
from keisei.constants import BOARD_SIZE
from keisei.errors import DeviceError
from keisei.network.towers.compilation import compile_forward
from keisei.network.towers.model import ActorCritic, lay_out
from keisei.system import free_memory_share, run_module, usable_cpus

logger = logging.getLogger(__name__)

PROBE_TIMEOUT: Final = 120.0
"""Seconds that the probe may take; it needs a few, most of them to import torch."""

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

DTYPES: Final = {"bf16": torch.bfloat16, "fp16": torch.float16}
FIRST_BF16_CAPABILITY: Final = (8, 0)
"""Lowest CUDA compute capability with bfloat16 in hardware (Ampere)."""

DETERMINISTIC_CUBLAS: Final = ":4096:8"
AUTO_BATCH: Final = 256
"""Batch size with which ``compile: auto`` compares speeds."""

TYPICAL_LEGAL_MOVES: Final = 120
"""Typical length of the longest legal list in a batch of self-play."""

Model = TypeVar("Model", bound=ActorCritic)


@dataclass(frozen=True)
class Compute:
    """Device, precision, compiler and threads of a tower."""

    device: torch.device
    autocast_dtype: torch.dtype | None
    """Lower precision of autocast; None: float32 throughout."""

    compile: Literal["off", "on", "auto"]
    """Whether `compiled` compiles; auto: if that is measured to be faster."""

    channels_last: bool
    """Whether convolutions use the channels_last memory layout."""

    threads: int
    """Number of torch threads."""

    deterministic: bool
    """Whether equal runs give equal weights, bit by bit."""

    @property
    def needs_scaler(self) -> bool:
        """Whether gradients need a `GradScaler`: in float16 they would underflow."""
        return self.autocast_dtype is torch.float16

    def autocast(self) -> AbstractContextManager[object]:
        """Return the context for forward passes and losses."""
        if self.autocast_dtype is None:
            return nullcontext()
        return torch.autocast(self.device.type, dtype=self.autocast_dtype)

    def prepare(self, model: Model) -> Model:
        """Set torch's threads and determinism for this process; move `model` to the device."""
        self._set_up_torch()
        model.to(self.device)
        if self.channels_last:
            lay_out(model, torch.channels_last)
        return model

    def compiled(self, model: Model) -> Model:
        """Compile the prepared `model` if that is chosen and works here; return the same object."""
        if self.compile == "on" or (self.compile == "auto" and self._is_faster_compiled(model)):
            compile_forward(model, autocast=self.autocast)
        return model

    def _is_faster_compiled(self, model: ActorCritic) -> bool:
        # Measured in float32, also under autocast: the compiler saves memory traffic between
        # layers, which both precisions have.
        plain, compiled = copy.deepcopy(model), copy.deepcopy(model)
        if not compile_forward(compiled):
            return False
        before, after = step_seconds(plain), step_seconds(compiled)
        acting, learning = before.acting / after.acting, before.learning / after.learning
        logger.info("compiled, acting is %.2fx and learning %.2fx as fast", acting, learning)
        return bool(1 / acting + 1 / learning < 2)

    def _set_up_torch(self) -> None:
        torch.set_num_threads(self.threads)
        if self.deterministic:
            os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", DETERMINISTIC_CUBLAS)
        # An operation without a deterministic kernel should warn, not stop the run. The call
        # imports the compiler, which is half of the start-up time of an engine: only if needed.
        if self.deterministic or torch.are_deterministic_algorithms_enabled():
            torch.use_deterministic_algorithms(self.deterministic, warn_only=True)
        torch.backends.cudnn.benchmark = not self.deterministic


class StepSeconds(NamedTuple):
    """Seconds of a forward pass and of a training step, each the best of several."""

    acting: float
    learning: float


def step_seconds(model: ActorCritic) -> StepSeconds:
    """Time a forward pass and a training step of `model` with `AUTO_BATCH` positions."""
    device = next(model.parameters()).device
    planes = torch.rand(AUTO_BATCH, model.in_planes, BOARD_SIZE, BOARD_SIZE, device=device)
    legal = torch.arange(TYPICAL_LEGAL_MOVES, device=device).expand(AUTO_BATCH, -1)

    def act() -> None:
        with torch.inference_mode():
            model(planes, legal).value.sum().item()  # item() waits for the device

    def learn() -> None:
        output = model(planes, legal)
        loss = output.logits.logsumexp(1).mean() + output.value.square().mean()
        loss.backward()
        loss.item()

    return StepSeconds(_best_seconds(act), _best_seconds(learn))


def learner_device(name: str, local_rank: int, size: int) -> torch.device:
    """Choose the device of a learner: one GPU for each on a machine, unless one is named.

    Args:
        name: ``device.device`` of the settings.
        local_rank: number of the learner on its machine.
        size: number of learners, on all machines.

    Raises:
        DeviceError: There are fewer GPUs than learners.
    """
    device = choose_device(name)
    if size > 1 and device.type == "cuda" and ":" not in name:
        return choose_device(f"cuda:{local_rank}")
    return device


def choose_compute(config: DeviceConfig) -> Compute:
    """Choose device, precision and threads for this machine according to `config`.

    Raises:
        DeviceError: This machine does not have them.
    """
    device = choose_device(config.device)
    threads = config.threads or usable_cpus()
    return Compute(
        device=device,
        autocast_dtype=_autocast_dtype(config.mixed_precision, device, threads),
        compile=config.compile,
        channels_last=device.type != "mps",  # not faster there, and not all kernels know it
        threads=threads,
        deterministic=config.deterministic,
    )


def free_share_of(device: torch.device) -> float:
    """Return the share of a device's memory that is free or only reserved by torch, 0 to 1."""
    if device.type == "cuda":
        free, total = torch.cuda.mem_get_info(device)
        cached = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
        return (free + cached) / total
    if device.type == "mps":
        return 1.0 - torch.mps.current_allocated_memory() / torch.mps.recommended_max_memory()
    return free_memory_share()


def tower_device(config: DeviceConfig) -> str:
    """Return the device that a tower computes on; raises what `choose_compute` raises."""
    return str(choose_compute(config).device)


def choose_device(name: str) -> torch.device:
    """Return the device of this name; ``auto``: CUDA, else MPS, else the CPU.

    Raises:
        DeviceError: This machine does not have it.
    """
    if name == "auto":
        if torch.cuda.is_available():
            name = "cuda"
        else:
            name = "mps" if torch.backends.mps.is_available() else "cpu"
    try:
        device = torch.device(name)
    except RuntimeError:
        raise DeviceError(f"device {name!r} does not exist; there are {_devices()}") from None
    number = torch.cuda.device_count() if torch.cuda.is_available() else 0
    is_there = {
        "cpu": True,
        "cuda": (device.index or 0) < number,
        "mps": torch.backends.mps.is_available(),
    }
    if not is_there.get(device.type, False):
        raise DeviceError(f"device {name!r} is not available; there are {_devices()}")
    return device


def _devices() -> str:
    names = ["auto", "cpu"]
    if torch.cuda.is_available():
        names += ["cuda", *(f"cuda:{i}" for i in range(torch.cuda.device_count()))]
    if torch.backends.mps.is_available():
        names.append("mps")
    return ", ".join(names)


def _autocast_dtype(choice: str, device: torch.device, threads: int) -> torch.dtype | None:
    if choice == "off":
        return None
    if choice == "auto":
        return _fastest_dtype(device, threads)
    if device.type == "cuda":
        if choice == "bf16" and not _has_bf16(device):
            raise DeviceError(f"mixed_precision bf16: {device} is too old for it; use fp16 or auto")
        return DTYPES[choice]
    probe = probe_precision(device.type, DTYPES[choice], threads)
    if not probe.survived:
        raise DeviceError(
            f"mixed_precision {choice} does not work on this {device.type}: a trial in another "
            f"process failed ({probe.failure}); use off or auto"
        )
    return DTYPES[choice]


def _fastest_dtype(device: torch.device, threads: int) -> torch.dtype | None:
    if device.type == "cuda":
        return torch.bfloat16 if _has_bf16(device) else torch.float16
    probe = probe_precision(device.type, torch.bfloat16, threads)
    if probe.survived and probe.speedup > 1.0:
        return torch.bfloat16
    reason = f"{probe.speedup:.2f}x as fast" if probe.survived else probe.failure
    logger.info("mixed precision stays off: bf16 on this %s: %s", device.type, reason)
    return None


def _has_bf16(device: torch.device) -> bool:
    return torch.cuda.get_device_capability(device) >= FIRST_BF16_CAPABILITY


@dataclass(frozen=True)
class Probe:
    """Result of a trial of a precision."""

    speedup: float
    """Training steps per second relative to float32; 0 if the trial failed."""

    failure: str
    """Why the trial failed; empty if it did not."""

    @property
    def survived(self) -> bool:
        """Return whether the precision works at all."""
        return not self.failure


@cache
def probe_precision(device: str, dtype: torch.dtype, threads: int) -> Probe:
    """Try training steps under autocast to `dtype` in another process, which may crash.

    The result is cached.
    """
    name = str(dtype).removeprefix("torch.")
    result = run_module(
        "keisei.network.towers.device", device, name, str(threads), timeout=PROBE_TIMEOUT
    )
    return Probe(0.0, result.failure) if result.failure else Probe(float(result.output), "")


def measure_speedup(device: str, dtype: torch.dtype) -> float:
    """Measure the speedup of a training step under autocast to `dtype` over float32."""
    from keisei.network.model_factory import model_factory

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

        seconds = {enabled: _best_seconds(partial(step, enabled)) for enabled in (False, True)}
    return seconds[False] / seconds[True]


def _best_seconds(step: Callable[[], None]) -> float:
    step()
    best = float("inf")
    for _ in range(PROBE_STEPS):
        start = time.perf_counter()
        step()
        best = min(best, time.perf_counter() - start)
    return best


def main() -> None:
    """Run ``python -m keisei.network.towers.device DEVICE DTYPE THREADS``: print the speedup."""
    device, name, threads = sys.argv[1:]
    torch.set_num_threads(int(threads))
    sys.stdout.write(f"{measure_speedup(device, getattr(torch, name))}\n")


if __name__ == "__main__":
    main()

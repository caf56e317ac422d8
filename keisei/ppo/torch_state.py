"""The state of torch as plain arrays (optimizers, scalers, generators), and its profiler."""

import logging
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

import numpy as np
import torch
from torch import Tensor
from torch.profiler import ProfilerActivity, profile, schedule, tensorboard_trace_handler

from keisei.errors import KeiseiError
from keisei.system import write_atomically

logger = logging.getLogger(__name__)


def to_arrays(state: Any) -> Any:
    """Replace the tensors of a nested state by arrays, which a checkpoint can hold.

    Arrays of tensors on the CPU share their memory.
    """
    if isinstance(state, Tensor):
        return state.detach().cpu().numpy()
    if isinstance(state, Mapping):
        return {key: to_arrays(value) for key, value in state.items()}
    if isinstance(state, list | tuple):
        return type(state)(to_arrays(value) for value in state)
    return state


def to_tensors(state: Any) -> Any:
    """Replace the arrays of a nested state by tensors on the CPU, which share no memory."""
    if isinstance(state, np.ndarray):
        return torch.from_numpy(state.copy())  # a copy: optimizers count steps in place
    if isinstance(state, Mapping):
        return {key: to_tensors(value) for key, value in state.items()}
    if isinstance(state, list | tuple):
        return type(state)(to_tensors(value) for value in state)
    return state


def torch_rng_state() -> dict[str, Any]:
    """States of torch's global random generators, on the CPU and on every CUDA device."""
    return {
        "cpu": torch.get_rng_state(),
        "cuda": torch.cuda.get_rng_state_all() if torch.cuda.is_available() else [],
    }


def restore_torch_rng(state: Mapping[str, Any]) -> None:
    """Set torch's global random generators to what `torch_rng_state` returned.

    If the number of CUDA devices is another one, theirs are left as they are, with a warning.

    Raises:
        KeiseiError: The state is not one of torch's generators.
    """
    try:
        torch.set_rng_state(state["cpu"])
        saved, present = len(state["cuda"]), torch.cuda.device_count()
        if saved == present and present:
            torch.cuda.set_rng_state_all(state["cuda"])
    except (KeyError, TypeError, ValueError, RuntimeError) as error:
        raise KeiseiError(
            f"the saved random state is not one of torch: {type(error).__name__}: {error}"
        ) from error
    if saved != present:
        logger.warning(
            "random states of %d CUDA devices, but %d are here: they are not restored, "
            "so the run will not be repeated exactly",
            saved,
            present,
        )


SUMMARY: Final = "summary.txt"
"""Name of the file with the table."""

WARM_UP: Final = 1
"""Updates before the recorded one: the first is slower than those that follow."""

RECORDED: Final = 1
"""Updates that are recorded: a trace of one is already large."""

SHOWN_ROWS: Final = 30


class TorchProfiler:
    """Records one update: a trace for TensorBoard, and a table of the slowest operations."""

    def __init__(self, directory: Path) -> None:
        """Prepare to write into `directory`, which need not exist."""
        self._directory = directory
        activities = [ProfilerActivity.CPU]
        if torch.cuda.is_available():
            activities.append(ProfilerActivity.CUDA)
        self._profile = profile(
            activities=activities,
            schedule=schedule(wait=0, warmup=WARM_UP, active=RECORDED, repeat=1),
            on_trace_ready=self._write,
        )

    def start(self) -> None:
        """Start before the first update."""
        self._profile.start()

    def step(self) -> None:
        """Mark the end of an update."""
        self._profile.step()

    def stop(self) -> None:
        """Stop, whether anything was recorded or not."""
        self._profile.stop()

    def _write(self, recorded: profile) -> None:
        self._directory.mkdir(parents=True, exist_ok=True)
        tensorboard_trace_handler(str(self._directory))(recorded)
        key = "self_cuda_time_total" if torch.cuda.is_available() else "self_cpu_time_total"
        table = recorded.key_averages().table(sort_by=key, row_limit=SHOWN_ROWS)
        write_atomically(self._directory / SUMMARY, table.encode())
        logger.info("profile of an update: %s", self._directory / SUMMARY)

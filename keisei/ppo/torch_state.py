"""The state of torch as plain arrays, and a profiler of updates."""

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

SUMMARY: Final = "summary.txt"
WARM_UP: Final = 1
"""Updates before the recorded one: the first is slower than those that follow."""

RECORDED: Final = 1
"""Updates that are recorded: a trace of one is already large."""

SHOWN_ROWS: Final = 30


def to_arrays(state: Any) -> Any:
    """Replace the tensors of a nested state by arrays, which a checkpoint can hold."""
    if isinstance(state, Tensor):
        return state.detach().cpu().numpy()
    if isinstance(state, Mapping):
        return {key: to_arrays(value) for key, value in state.items()}
    if isinstance(state, list | tuple):
        return type(state)(to_arrays(value) for value in state)
    return state


def to_tensors(state: Any) -> Any:
    """Undo `to_arrays`; the tensors are on the CPU."""
    if isinstance(state, np.ndarray):
        return torch.from_numpy(state)
    if isinstance(state, Mapping):
        return {key: to_tensors(value) for key, value in state.items()}
    if isinstance(state, list | tuple):
        return type(state)(to_tensors(value) for value in state)
    return state


def torch_rng_state() -> dict[str, Any]:
    """The states of torch's global generators, on the CPU and on every CUDA device."""
    return {
        "cpu": torch.get_rng_state(),
        "cuda": torch.cuda.get_rng_state_all() if torch.cuda.is_available() else [],
    }


def restore_torch_rng(state: Mapping[str, Any]) -> None:
    """Set torch's global generators to what `torch_rng_state` returned.

    With another number of CUDA devices than before, theirs are left alone, with a warning.
    """
    try:
        torch.set_rng_state(state["cpu"])
        saved, present = len(state["cuda"]), torch.cuda.device_count()
        if saved == present and present:
            torch.cuda.set_rng_state_all(state["cuda"])
    except (KeyError, TypeError, ValueError, RuntimeError) as error:
        raise KeiseiError(
            f"the saved state is not one of torch's generators: {type(error).__name__}: {error}"
        ) from error
    if saved != present:
        logger.warning(
            "random state of %d CUDA devices, but %d are here: theirs is not restored, "
            "and the run will not continue exactly as it would have",
            saved,
            present,
        )


class TorchProfiler:
    """Records one update with torch.profiler: a trace, and a table of what took longest."""

    def __init__(self, directory: Path) -> None:
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
        """Begin before the first update."""
        self._profile.start()

    def step(self) -> None:
        """Count an update."""
        self._profile.step()

    def stop(self) -> None:
        """End, whether anything was recorded or not."""
        self._profile.stop()

    def _write(self, recorded: profile) -> None:
        self._directory.mkdir(parents=True, exist_ok=True)
        tensorboard_trace_handler(str(self._directory))(recorded)
        key = "self_cuda_time_total" if torch.cuda.is_available() else "self_cpu_time_total"
        table = recorded.key_averages().table(sort_by=key, row_limit=SHOWN_ROWS)
        write_atomically(self._directory / SUMMARY, table.encode())
        logger.info("profile of an update: %s", self._directory / SUMMARY)

"""States of torch as plain arrays: optimizers, scalers, random generators."""

import logging
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from torch import Tensor

from keisei.errors import KeiseiError

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

"""The state of random generators, as plain values that a checkpoint can hold."""

import logging
import random

import numpy as np
import torch

from keisei.checkpoints.state_tree import State
from keisei.errors import KeiseiError

logger = logging.getLogger(__name__)


def rng_state() -> State:
    """The global generators of Python, NumPy and PyTorch, on the CPU and on every CUDA device."""
    return {
        "python": random.getstate(),
        "numpy": np.random.get_state(legacy=False),  # noqa: NPY002 - others may draw from it
        "torch": torch.get_rng_state(),
        "cuda": torch.cuda.get_rng_state_all() if torch.cuda.is_available() else [],
    }


def restore_rng(state: State) -> None:
    """Set the global generators to what `rng_state` returned.

    If there is another number of CUDA devices now, theirs are left alone, with a warning.
    """
    try:
        random.setstate(state["python"])
        np.random.set_state(state["numpy"])  # noqa: NPY002 - see above
        torch.set_rng_state(state["torch"])
        saved, present = len(state["cuda"]), torch.cuda.device_count()
        if saved == present and present:
            torch.cuda.set_rng_state_all(state["cuda"])
    except (KeyError, TypeError, ValueError, RuntimeError) as error:
        raise _not_a_state("the global random generators", error) from error
    if saved != present:
        logger.warning(
            "random state of %d CUDA devices, but %d are here: theirs is not restored, "
            "and the run will not go on exactly as it would have",
            saved,
            present,
        )


def generator_state(generator: torch.Generator | np.random.Generator) -> State:
    """The state of one generator."""
    if isinstance(generator, torch.Generator):
        return {"torch": generator.get_state()}
    return {"numpy": generator.bit_generator.state}


def restore_generator(generator: torch.Generator | np.random.Generator, state: State) -> None:
    """Set a generator to what `generator_state` returned for one of its kind."""
    try:
        if isinstance(generator, torch.Generator):
            generator.set_state(state["torch"])
        else:
            generator.bit_generator.state = state["numpy"]
    except (KeyError, TypeError, ValueError, RuntimeError) as error:
        raise _not_a_state(repr(generator), error) from error


def _not_a_state(owner: str, error: Exception) -> KeiseiError:
    return KeiseiError(f"the saved state is not one of {owner}: {type(error).__name__}: {error}")

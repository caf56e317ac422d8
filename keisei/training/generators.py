"""The state of random generators as plain values that a checkpoint can hold."""

import random

import numpy as np

from keisei.checkpoints.state_tree import State
from keisei.errors import KeiseiError


def rng_state() -> State:
    """The states of the global generators of Python and NumPy; torch's are the learner's."""
    return {
        "python": random.getstate(),
        "numpy": np.random.get_state(legacy=False),  # noqa: NPY002 - others may draw from it
    }


def restore_rng(state: State) -> None:
    """Set the global generators to what `rng_state` returned."""
    try:
        random.setstate(state["python"])
        np.random.set_state(state["numpy"])  # noqa: NPY002 - see above
    except (KeyError, TypeError, ValueError) as error:
        raise _not_a_state("the global random generators", error) from error


def generator_state(generator: np.random.Generator) -> State:
    """The state of one generator."""
    return {"numpy": generator.bit_generator.state}


def restore_generator(generator: np.random.Generator, state: State) -> None:
    """Set a generator to what `generator_state` returned for one of its kind."""
    try:
        generator.bit_generator.state = state["numpy"]
    except (KeyError, TypeError, ValueError) as error:
        raise _not_a_state(repr(generator), error) from error


def _not_a_state(owner: str, error: Exception) -> KeiseiError:
    return KeiseiError(f"the saved state is not one of {owner}: {type(error).__name__}: {error}")

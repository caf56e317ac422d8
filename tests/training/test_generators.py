"""Random generators go on where they were."""

import random
from collections.abc import Callable, Iterator

import numpy as np
import pytest

from keisei.errors import KeiseiError
from keisei.training.generators import (
    generator_state,
    restore_generator,
    restore_rng,
    rng_state,
)
from tests.checkpoints.test_state_tree import round_trip


@pytest.fixture(autouse=True)
def _global_generators_stay_as_they_are() -> Iterator[None]:
    before = rng_state()
    yield
    restore_rng(before)


def draw() -> list[float]:
    legacy = np.random
    return [
        random.gauss(),
        random.random(),
        legacy.standard_normal(),
        legacy.random(),
    ]


def test_global_generators() -> None:
    draw()  # odd counts of normal variates leave one in store
    saved = round_trip(rng_state())
    expected = draw()
    assert draw() != expected
    restore_rng(saved)
    assert draw() == expected


@pytest.mark.parametrize(
    "bits", [np.random.PCG64, np.random.Philox, np.random.SFC64, np.random.MT19937]
)
def test_generators_of_numpy(bits: Callable[[int], np.random.BitGenerator]) -> None:
    generator = np.random.Generator(bits(7))
    generator.integers(9, size=3, dtype=np.uint32)  # leaves half of 64 bits in store
    saved = round_trip(generator_state(generator))
    other = np.random.Generator(bits(8))
    restore_generator(other, saved)
    assert other.integers(9, size=5, dtype=np.uint32).tolist() == (
        generator.integers(9, size=5, dtype=np.uint32).tolist()
    )


def test_states_of_something_else_are_refused() -> None:
    numpy = np.random.default_rng(0)
    with pytest.raises(KeiseiError, match="not one of"):
        restore_generator(numpy, {"torch": np.zeros(3, dtype=np.uint8)})
    with pytest.raises(KeiseiError, match="not one of"):
        restore_generator(numpy, generator_state(np.random.Generator(np.random.Philox(0))))
    with pytest.raises(KeiseiError, match="not one of the global"):
        restore_rng({})

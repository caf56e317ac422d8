"""Experience: its size, its layout in shared memory, and how parts make a whole."""

import numpy as np
import pytest

from keisei.ppo.buffer import Experience, experience_bytes
from keisei.shogi.vector import VectorShogi


def test_a_ply_takes_less_than_512_bytes() -> None:
    assert experience_bytes(64, 128) / (64 * 128) <= 160


def test_two_views_of_the_same_memory_see_the_same() -> None:
    memory = memoryview(bytearray(experience_bytes(3, 5)))
    one, other = Experience(3, 5, memory), Experience(3, 5, memory)
    for array in one.arrays().values():
        array.view(np.uint8)[...] = np.random.default_rng(0).integers(
            256, size=array.view(np.uint8).shape, dtype=np.uint8
        )
    for name, array in one.arrays().items():
        assert array.tobytes() == other.arrays()[name].tobytes(), name


def test_arrays_do_not_overlap() -> None:
    experience = Experience(2, 3)
    for number, array in enumerate(experience.arrays().values(), 1):
        array.view(np.uint8)[...] = number % 2
    for number, array in enumerate(experience.arrays().values(), 1):
        assert (array.view(np.uint8) == number % 2).all()


def test_parts_are_copied_to_their_place() -> None:
    whole = Experience(2, 6)
    for part in range(3):
        piece = Experience(2, 2)
        piece.actions[...] = [[10 * part, 10 * part + 1]] * 2
        piece.last_values[...] = part
        piece.packed[...] = VectorShogi(2, seed=part, opening_plies=3).packed
        whole.take(piece, 2 * part)
    assert whole.actions[0].tolist() == [0, 1, 10, 11, 20, 21]
    assert whole.last_values.tolist() == [0, 0, 1, 1, 2, 2]
    expected = VectorShogi(2, seed=2, opening_plies=3).packed
    assert (whole.packed[1, 4:6] == expected).all()


@pytest.mark.parametrize("plies", [0, 3])
def test_an_empty_one_is_not_a_missing_one(plies: int) -> None:
    assert Experience(plies, 0)
    assert len(Experience(plies, 0)) == 0

"""Each operation of the bitboard type: compiled for real here, compared with plain integers.

The kernels usually come from the cache; these functions are compiled in this very process.
"""

from collections.abc import Callable
from typing import Any

import numba
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from keisei.shogi.bitboard import (
    as_words,
    bit,
    count,
    highest,
    load,
    low_word,
    lowest,
    squares_of,
    store,
    without_lowest,
)

BOARD = (1 << 81) - 1
boards = st.integers(0, BOARD)
BINARY: dict[str, Callable[[Any, Any], Any]] = {
    "and": lambda a, b: a & b,
    "or": lambda a, b: a | b,
    "xor": lambda a, b: a ^ b,
    "and not": lambda a, b: a & ~b,
    "difference": lambda a, b: a & (a - b),
    "negative": lambda a, b: a & -b,
    "left": lambda a, b: (a << 9) & b,
    "right": lambda a, b: (a >> 9) | b,
}
TO_NUMBER: dict[str, Callable[[Any, Any], Any]] = {
    "lowest": lambda a, b: lowest(a | bit(80)),
    "highest": lambda a, b: highest(a | bit(0)),
    "count": lambda a, b: count(a),
    "low word": lambda a, b: low_word(a),
    "equal": lambda a, b: int(a == b),
    "unequal": lambda a, b: int(a != b),
    "truth": lambda a, b: 1 if a & b else 0,
}


def in_place(a: Any, b: Any) -> Any:
    a &= b
    a |= bit(3)
    a ^= bit(4)
    a <<= 2
    a >>= 1
    return without_lowest(a)


BINARY["in place"] = in_place


def over_words(function: Callable[[Any, Any], Any]) -> Callable[[Any], None]:
    """`function` compiled, on boards that lie in an array of words: ``[2] = f([0], [1])``."""
    compiled = numba.njit(function)

    def run(words: Any) -> None:
        store(words[2], compiled(load(words[0]), load(words[1])))

    runner: Callable[[Any], None] = numba.njit(run)
    return runner


def to_number(function: Callable[[Any, Any], Any]) -> Callable[[Any], int]:
    """`function` compiled, with a number as its result: ``f([0], [1])``."""
    compiled = numba.njit(function)

    def run(words: Any) -> Any:
        return compiled(load(words[0]), load(words[1]))

    runner: Callable[[Any], int] = numba.njit(run)
    return runner


COMPILED = {name: over_words(function) for name, function in BINARY.items()}


@pytest.mark.parametrize("name", BINARY)
@given(a=boards, b=boards)
def test_operators(name: str, a: int, b: int) -> None:
    words = as_words([a, b, 0])
    COMPILED[name](words)
    assert load(words[2]) == BINARY[name](a, b)


NUMBERS = {name: to_number(function) for name, function in TO_NUMBER.items()}


@pytest.mark.parametrize("name", TO_NUMBER)
@given(a=boards, b=boards)
def test_numbers(name: str, a: int, b: int) -> None:
    assert NUMBERS[name](as_words([a, b])) == TO_NUMBER[name](a, b)


@given(boards)
def test_words_round_trip(board: int) -> None:
    words = np.zeros(2, dtype=np.uint64)
    store(words, board)
    assert load(words) == board
    assert as_words([board]).tolist() == [words.tolist()]
    assert sum(1 << sq for sq in squares_of(board)) == board

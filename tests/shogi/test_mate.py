"""Mate in one, against trying every move."""

import itertools
from collections.abc import Callable, Iterator

import numpy as np
import pytest

from keisei.shogi.game import ShogiGame
from keisei.shogi.mate import NO_MATE, MateScratch, find_mates
from keisei.shogi.position import new_positions
from keisei.shogi.vector import VectorShogi
from tests.positions import random_endgames, random_games
from tests.sampling import IS_COMPILED, sample


def mate_of(game: ShogiGame) -> int:
    positions = new_positions(1)
    positions[0] = game.position
    legal_indices = np.zeros(1, dtype=np.int64)
    legal = game.legal_actions[None]
    counts = np.array([legal.shape[1]], dtype=np.int32)
    find_mates(positions, legal, counts, MateScratch.of(1), legal_indices, 0, 1)
    assert positions[0] == game.position
    return int(legal_indices[0])


def mates(game: ShogiGame) -> list[int]:
    """The legal indices of all moves that give check and leave no answer."""
    found = []
    for legal_index, action in enumerate(game.legal_actions.tolist()):
        game.push_action(action)
        if game.in_check and not game.legal_moves:
            found.append(legal_index)
        game.pop()
    return found


@pytest.mark.kernels
@pytest.mark.parametrize("source", [random_endgames, random_games])
def test_a_mate_is_found_exactly_where_there_is_one(
    source: Callable[..., Iterator[ShogiGame]],
) -> None:
    found = 0
    for game in itertools.islice(source(21), sample(250, 8)):
        expected = mates(game)
        assert mate_of(game) == (expected[0] if expected else NO_MATE), game
        found += bool(expected)
    if IS_COMPILED and source is random_endgames:
        assert found > 0


@pytest.mark.kernels
@pytest.mark.parametrize(
    ("sfen", "move"),
    [
        ("4k4/9/4P4/9/9/9/9/9/4K4 b G 1", "G*5b"),
        ("4k4/9/4P4/9/9/9/9/9/4K4 b P 1", None),  # a pawn drop may not mate
        ("4k4/9/9/9/9/9/9/9/4K4 b - 1", None),
        ("4k4/9/9/9/9/9/9/9/9 w - 1", None),  # no king to mate
    ],
)
def test_examples(sfen: str, move: str | None) -> None:
    game = ShogiGame(sfen)
    legal_index = mate_of(game)
    assert (None if legal_index == NO_MATE else game.legal_moves[legal_index].usi) == move


@pytest.mark.kernels
def test_many_games_at_once() -> None:
    env = VectorShogi(sample(200, 8), ply_limit=200, seed=5)
    for _ in range(sample(100, 5)):
        env.step(env.sample_actions())
    legal_indices = env.mates_in_one()
    for index in range(env.num_games):
        assert legal_indices[index] == mate_of(env.game(index))
    assert (legal_indices >= 0).any() or env.num_games < 100

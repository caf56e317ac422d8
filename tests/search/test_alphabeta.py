"""Alpha-beta gives the answer of plain minimax, finds mates, and breaks ties by its seed alone."""

from itertools import islice

import numpy as np
import pytest

from keisei.errors import KeiseiError
from keisei.search.alphabeta import MATE
from keisei.search.evaluation import evaluate
from keisei.search.player import AlphaBeta
from keisei.shogi.game import ShogiGame
from tests.oracles.minimax import minimax, static_value
from tests.positions import random_endgames, random_games
from tests.sampling import sample

pytestmark = pytest.mark.kernels


def searched(bot: AlphaBeta, game: ShogiGame, seed: int = 0) -> tuple[int, int]:
    """(action, value) of the position that a game has reached."""
    legal = game.legal_actions
    columns, values = bot.search(
        game.position.reshape(1),
        legal[None, :],
        np.array([len(legal)], dtype=np.int32),
        np.random.default_rng(seed),
    )
    return int(legal[columns[0]]), int(values[0])


def positions(number: int, seed: int) -> list[ShogiGame]:
    """From games and from wild endgames, all with something to play."""
    found = []
    for source in (random_games(seed), random_endgames(seed)):
        playable = (game.copy() for game in source if len(game.legal_actions))
        found += list(islice(playable, 0, 7 * number, 7))
    return found


def test_the_value_is_kept_up_by_moves() -> None:
    for game in positions(sample(200, 5), seed=1):
        assert evaluate(game.position) == static_value(game)


@pytest.mark.parametrize(("depth", "number"), [(1, sample(1_000, 3)), (2, sample(60, 0))])
@pytest.mark.parametrize("is_quiet", [False, True])
def test_it_is_minimax(depth: int, number: int, is_quiet: bool) -> None:
    bot = AlphaBeta(depth, quiet=is_quiet)
    checked = 0
    for game in positions(number, seed=depth):
        if is_quiet and len(game.legal_actions) > 60:
            continue  # the reference follows every capture: it would take minutes
        if depth == 2 and len(game.legal_actions) > 80:
            continue
        assert searched(bot, game)[1] == minimax(game, depth, is_quiet=is_quiet), game.sfen()
        checked += 1
    assert checked >= number // 2

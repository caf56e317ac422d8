"""Alpha-beta gives the answer of plain minimax, finds mates, and breaks ties by its seed alone."""

from itertools import islice

import numpy as np
import pytest

from keisei.errors import KeiseiError
from keisei.search.alphabeta import MATE, AlphaBeta
from keisei.shogi.game import ShogiGame
from keisei.shogi.material import evaluate
from keisei.shogi.rng import seed_rng_states
from tests.oracles.minimax import minimax, static_value
from tests.positions import random_endgames, random_games
from tests.sampling import sample

pytestmark = pytest.mark.kernels


def searched(bot: AlphaBeta, game: ShogiGame, seed: int = 0) -> tuple[int, int]:
    """(action, value) of the position that a game has reached."""
    legal = game.legal_actions
    legal_indices, values = bot.search(
        np.array([game.position], dtype=game.position.dtype).view(np.recarray),
        legal[None, :],
        np.array([len(legal)], dtype=np.int32),
        seed_rng_states(np.random.default_rng(seed), 1),
    )
    return int(legal[legal_indices[0]]), int(values[0])


def positions(number: int, seed: int, *, most_moves: int = 600) -> list[ShogiGame]:
    """From games and from wild endgames, all with something to play, but not with too much."""
    found: list[ShogiGame] = []
    for source in (random_games(seed), random_endgames(seed)):
        playable = (game.copy() for game in source if 0 < len(game.legal_actions) <= most_moves)
        found += islice(playable, number // 2)
    return found


def test_the_value_is_kept_up_by_moves() -> None:
    for game in positions(sample(400, 6), seed=1):
        assert evaluate(game.position) == static_value(game)


@pytest.mark.parametrize(
    ("depth", "number", "most_moves"),
    [(1, sample(2_000, 4), 600), (2, sample(1_000, 2), 100), (3, sample(200, 0), 40)],
)
def test_it_is_minimax(depth: int, number: int, most_moves: int) -> None:
    bot = AlphaBeta(depth)
    for game in positions(number, seed=depth, most_moves=most_moves):
        assert searched(bot, game)[1] == minimax(game, depth), game.sfen()


@pytest.mark.parametrize(("depth", "number"), [(1, sample(300, 2)), (2, sample(40, 0))])
def test_captures_are_followed_as_minimax_does(depth: int, number: int) -> None:
    bot = AlphaBeta(depth, quiet_plies=3)
    for game in positions(number, seed=5 + depth, most_moves=60):
        assert searched(bot, game)[1] == minimax(game, depth, quiet_plies=3), game.sfen()


def test_the_move_has_the_value() -> None:
    """Playing the move and searching one ply less leads to the same value."""
    two, one = AlphaBeta(2), AlphaBeta(1)
    for game in positions(sample(60, 2), seed=9):
        action, value = searched(two, game)
        game.push_action(action)
        if len(game.legal_actions):
            reply = -searched(one, game)[1]
            assert value == (reply if abs(reply) < MATE // 2 else reply - np.sign(reply))


def test_mates_in_one_are_played() -> None:
    bot = AlphaBeta(1)
    found = 0
    for game in positions(sample(3_000, 40), seed=11):
        action, value = searched(bot, game)
        if value == MATE - 1:
            found += 1
            game.push_action(action)
            assert not len(game.legal_actions)
    assert found >= sample(25, 0)


@pytest.mark.skipif(sample(1, 0) == 0, reason="takes minutes without the compiler")
@pytest.mark.parametrize("plies", [3, 5])
def test_mates_that_cshogi_knows_are_found(plies: int) -> None:
    cshogi = pytest.importorskip("cshogi")
    bot = AlphaBeta(plies)
    board = cshogi.Board()
    wanted = {3: 100, 5: 20}[plies]
    found = 0
    for game in random_games(seed=plies, plies=300):
        board.set_sfen(game.sfen())
        if (
            not 0 < len(game.legal_actions) <= 60
            or board.is_check()
            or board.mate_move_in_1ply()
            or not board.mate_move(plies)
            or (plies == 5 and board.mate_move(3))
        ):
            continue
        assert searched(bot, game)[1] >= MATE - plies, game.sfen()
        found += 1
        if found == wanted:
            break
    assert found == wanted


def test_ties_are_drawn_by_the_seed_alone() -> None:
    game = ShogiGame()
    chosen = [searched(AlphaBeta(1), game, seed)[0] for seed in range(12)]
    again = [searched(AlphaBeta(1), game, seed)[0] for seed in range(12)]
    assert chosen == again
    near = {searched(AlphaBeta(1, margin=50), game, seed)[0] for seed in range(60)}
    assert len(near) > len(set(chosen))
    values = []
    for action in near:
        after = game.copy()
        after.push_action(action)
        values.append(-minimax(after, 0))
    best = searched(AlphaBeta(1), game)[1]
    assert all(best - 50 <= value <= best for value in values)


@pytest.mark.parametrize(("depth", "margin"), [(0, 0), (17, 0), (2, -1), (2, 10**20)])
def test_what_cannot_be_is_refused(depth: int, margin: int) -> None:
    with pytest.raises(KeiseiError):
        AlphaBeta(depth, margin=margin)

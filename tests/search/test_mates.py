"""The mate search finds what cshogi knows, shortest first, and nothing that is no mate."""

from itertools import islice

import numpy as np
import pytest

from keisei.errors import KeiseiError
from keisei.search.mates import MateRule, MateSearch
from keisei.shogi.game import ShogiGame
from keisei.shogi.vector import VectorShogi
from tests.positions import random_games
from tests.sampling import sample

pytestmark = pytest.mark.kernels


def found(search: MateSearch, game: ShogiGame) -> int:
    legal = game.legal_actions
    return int(
        search.find(
            np.array([game.position], dtype=game.position.dtype).view(np.recarray),
            legal[None, :],
            np.array([len(legal)], dtype=np.int32),
        )[0]
    )


def is_mated_within(game: ShogiGame, plies: int) -> bool:
    """Return whether the side to move is mated within `plies`, by plain recursion."""
    if not game.in_check:
        return False
    for reply in game.legal_actions.tolist():
        game.push_action(reply)
        escapes = plies < 2 or not any_mate(game, plies - 1)
        game.pop()
        if escapes:
            return False
    return True


def any_mate(game: ShogiGame, plies: int) -> bool:
    for action in game.legal_actions.tolist():
        game.push_action(action)
        mates = is_mated_within(game, plies - 1)
        game.pop()
        if mates:
            return True
    return False


def test_it_agrees_with_a_plain_search() -> None:
    search = MateSearch(3)
    mates = 0
    for game in islice(random_games(3, plies=300), 0, sample(6_000, 100), 7):
        if len(game.legal_actions) > 80:
            continue
        legal_index = found(search, game)
        assert (legal_index >= 0) == any_mate(game, 3), game.sfen()
        mates += legal_index >= 0
    assert mates >= sample(3, 0)


@pytest.mark.skipif(sample(1, 0) == 0, reason="takes minutes without the compiler")
@pytest.mark.parametrize(("plies", "wanted"), [(3, 100), (5, 60), (7, 10)])
def test_mates_that_cshogi_knows_are_found(plies: int, wanted: int) -> None:
    cshogi = pytest.importorskip("cshogi")
    search = MateSearch(plies, nodes=1_000_000)
    board = cshogi.Board()
    number = 0
    for game in random_games(seed=plies, plies=300):
        board.set_sfen(game.sfen())
        if board.is_check() or not board.mate_move(plies):
            continue
        if board.mate_move(plies - 2) if plies > 3 else board.mate_move_in_1ply():
            continue
        legal_index = found(search, game)
        assert legal_index >= 0, game.sfen()
        number += 1
        if number == wanted:
            return
    assert number == wanted


def test_the_shortest_mate_is_played() -> None:
    game = ShogiGame("4k4/9/4P4/9/9/9/9/9/4K4 b 2G 1")
    legal_index = found(MateSearch(5), game)
    game.push_action(int(game.legal_actions[legal_index]))
    assert game.legal_moves == []


def test_a_rule_shows_the_mates_of_an_environment() -> None:
    mate_in_one = "4k4/9/4P4/9/9/9/9/9/4K4 b G 1"
    env = VectorShogi(4, starts=[mate_in_one])
    games = np.array([1, 3])
    assert MateRule(0).legal_indices(env, games).tolist() == [-1, -1]
    expected = env.mates_in_one()[games].tolist()
    assert min(expected) >= 0
    for plies in (1, 3, 5):
        assert MateRule(plies).legal_indices(env, games).tolist() == expected


def test_a_longer_rule_shows_longer_mates() -> None:
    for game in random_games(seed=3, plies=300):
        if not game.in_check and found(MateSearch(3), game) >= 0 > found(MateSearch(1), game):
            break
    env = VectorShogi(1, starts=[game.sfen()], ply_limit=1_000)
    assert MateRule(1).legal_indices(env, np.arange(1)).tolist() == [-1]
    legal_index = int(MateRule(3).legal_indices(env, np.arange(1))[0])
    env.step([int(env.legal_actions[0, legal_index])])
    while not env.last_step.terminations[0]:
        replies = MateRule(1).legal_indices(env, np.arange(1))
        env.step([int(env.legal_actions[0, max(0, int(replies[0]))])])
    assert env.finished_game(0).ply == game.ply + 3


def test_the_position_is_left_as_it_was() -> None:
    game = ShogiGame("4k4/9/4P4/9/9/9/9/9/4K4 b G 1")
    before = game.position.copy()
    found(MateSearch(3), game)
    assert game.position == before


@pytest.mark.parametrize("plies", [0, 2, 11])
def test_lengths_that_no_mate_has_are_refused(plies: int) -> None:
    with pytest.raises(KeiseiError, match="mates take"):
        MateSearch(plies)

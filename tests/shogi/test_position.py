"""Playing and undoing on the record: both views, key and hands stay what a fresh set-up gives."""

import itertools

import numpy as np
import pytest

from keisei.errors import IllegalPositionError
from keisei.shogi.game import ShogiGame
from keisei.shogi.legality import from_diagram
from keisei.shogi.notation.sfen import parse_sfen
from keisei.shogi.position import POSITION, decode, encode, to_diagram
from tests.positions import random_endgames, random_games
from tests.sampling import sample


@pytest.mark.kernels
def test_play_keeps_the_record_as_a_fresh_set_up_would_make_it() -> None:
    for game in itertools.islice(random_games(seed=8), sample(400, 60)):
        fresh = from_diagram(game.diagram)
        for name in POSITION.names or ():
            if name != "start_ply":
                assert np.array_equal(game.position[name], fresh[name]), (name, game)


@pytest.mark.kernels
def test_undo_restores_every_byte() -> None:
    for game in itertools.islice(random_endgames(seed=9), sample(60, 5)):
        before = game.position.tobytes()
        for action in game.legal_actions.tolist():
            game.push_action(action)
            game.pop()
            assert game.position.tobytes() == before


@pytest.mark.kernels
def test_keys_tell_positions_apart() -> None:
    diagrams: dict[int, object] = {}
    for game in itertools.islice(random_games(seed=10), sample(1_000, 60)):
        diagram = game.diagram
        content = (diagram.board, diagram.hands, diagram.turn)
        assert diagrams.setdefault(game.key, content) == content
    assert len(diagrams) > sample(900, 50)


@pytest.mark.kernels
def test_moves_decode_and_encode() -> None:
    assert tuple(decode(9054)) == (56, 47, 0)
    assert tuple(decode(13240)) == (81, 40, 0)
    for move in range(0, 13_527, sample(1, 50)):
        assert encode(*decode(move)) == move


@pytest.mark.kernels
def test_diagrams_survive_the_record() -> None:
    for game in itertools.islice(random_endgames(seed=11), sample(200, 20)):
        assert to_diagram(from_diagram(game.diagram)) == game.diagram


@pytest.mark.parametrize(
    ("sfen", "reason"),
    [
        ("4k4/9/9/9/9/9/9/9/4R4 b - 1", "White is in check and it is not White's turn"),
        ("4k4/4K4/9/9/9/9/9/9/9 b - 1", "in check and it is not"),
        ("9/9/9/9/9/9/9/9/4R4 b - 1", "no king"),
        ("4k4/9/9/9/9/9/9/9/K3K4 b - 1", "Black has 2 kings"),
        ("4k4/9/9/9/P8/P8/9/9/4K4 b - 1", "two pawns on file 9"),
        ("4k3P/9/9/9/9/9/9/9/4K4 b - 1", "pawn on 1a could never move"),
        ("4k4/8N/9/9/9/9/9/9/4K4 b - 1", "knight on 1b could never move"),
        ("4k4/9/9/9/9/9/9/9/4K3l w - 1", "lance on 1i could never move"),
        ("4k4/9/9/9/9/9/9/9/4K4 b 3R 1", "3 pieces of kind R, but a set has 2"),
    ],
)
def test_positions_that_cannot_be_are_refused(sfen: str, reason: str) -> None:
    with pytest.raises(IllegalPositionError, match=reason):
        from_diagram(parse_sfen(sfen))


def test_a_mating_problem_may_lack_the_attackers_king() -> None:
    game = ShogiGame("4k4/9/4P4/9/9/9/9/9/9 b G 1")
    game.push("G*5b")
    assert not game.legal_moves

"""Everything is seen by the side to move: a game and its turned twin are the same to a network."""

import random

import numpy as np
import pytest

from keisei.shogi.actions import MIRRORED_ACTIONS
from keisei.shogi.features import feature_spec
from keisei.shogi.game import ShogiGame
from keisei.shogi.packed import (
    mirror_packed,
    new_packed,
    pack_game,
    unpack_diagram,
)
from keisei.shogi.rules import Outcome
from keisei.shogi.types import Diagram, Piece
from tests.sampling import sample

SPEC = feature_spec("core46+all")
COLOR_PLANE = SPEC.plane_names.index("mover is Black")


def turned(diagram: Diagram) -> Diagram:
    """The board turned by 180 degrees, colours swapped."""
    board = tuple(
        None if piece is None else Piece(piece.color.opponent, piece.kind)
        for piece in reversed(diagram.board)
    )
    black, white = diagram.hands
    return Diagram(board, (white, black), diagram.turn.opponent, diagram.move_number)


def mirrored(diagram: Diagram) -> Diagram:
    """The board mirrored left to right."""
    board = tuple(diagram.board[row * 9 + 8 - column] for row in range(9) for column in range(9))
    return Diagram(board, diagram.hands, diagram.turn, diagram.move_number)


@pytest.mark.kernels
@pytest.mark.parametrize("seed", range(sample(30, 2)))
def test_a_game_and_its_turned_twin(seed: int) -> None:
    chance = random.Random(seed)
    game = ShogiGame(ply_limit=150)
    twin = ShogiGame(turned(game.diagram), ply_limit=150)
    while True:
        assert game.legal_actions.tolist() == twin.legal_actions.tolist()
        planes, twin_planes = SPEC.encode(pack_game(game))[0], SPEC.encode(pack_game(twin))[0]
        assert (planes[COLOR_PLANE] == 1 - twin_planes[COLOR_PLANE]).all()
        planes[COLOR_PLANE] = twin_planes[COLOR_PLANE]
        assert np.array_equal(planes, twin_planes)
        outcome, twin_outcome = game.outcome(), twin.outcome()
        if outcome is not None:
            winner = None if outcome.winner is None else outcome.winner.opponent
            assert twin_outcome == Outcome(outcome.termination, winner)
            break
        assert twin_outcome is None
        action = chance.choice(game.legal_actions.tolist())
        game.push_action(action)
        twin.push_action(action)


@pytest.mark.kernels
@pytest.mark.parametrize("seed", range(sample(30, 2)))
def test_a_game_and_its_mirror_image(seed: int) -> None:
    chance = random.Random(seed)
    game = ShogiGame()
    image = ShogiGame(mirrored(game.diagram))
    for _ in range(sample(150, 40)):
        actions = game.legal_actions
        assert sorted(MIRRORED_ACTIONS[actions]) == sorted(image.legal_actions)
        packed, flipped = pack_game(game), new_packed(1)
        mirror_packed(packed, flipped)
        assert flipped == pack_game(image)
        assert unpack_diagram(flipped[0]) == mirrored(game.diagram)
        assert np.array_equal(SPEC.encode(flipped), SPEC.encode(packed)[..., ::-1])
        outcome = game.outcome()
        assert outcome == image.outcome()
        if outcome is not None:
            break
        action = chance.choice(actions.tolist())
        game.push_action(action)
        image.push_action(int(MIRRORED_ACTIONS[action]))


@pytest.mark.kernels
def test_mirroring_works_in_place() -> None:
    packed = pack_game(ShogiGame("position startpos moves 7g7f 3c3d 2h6h"))
    apart, in_place = new_packed(1), packed.copy()
    mirror_packed(packed, apart)
    mirror_packed(in_place, in_place)
    assert apart == in_place

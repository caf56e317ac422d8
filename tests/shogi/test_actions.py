"""The policy's 13,527 actions."""

import numpy as np
import pytest

from keisei.constants import NUM_ACTIONS, NUM_BOARD_ACTIONS
from keisei.shogi.actions import MIRRORED_ACTIONS, PolicyOutputMapper, mirrored_square
from keisei.shogi.game import ShogiGame
from keisei.shogi.types import Color, Move, PieceKind
from tests.sampling import sample

MAPPER = PolicyOutputMapper()


def test_there_are_13527_actions() -> None:
    assert NUM_ACTIONS == 81 * 80 * 2 + 81 * 7 == 13_527


@pytest.mark.kernels
@pytest.mark.parametrize("turn", list(Color))
def test_every_action_maps_to_a_move_and_back(turn: Color) -> None:
    moves = set()
    for action in range(0, NUM_ACTIONS, sample(1, 7)):
        move = MAPPER.move(action, turn)
        assert MAPPER.index(move, turn) == action
        assert Move.from_usi(move.usi) == move
        moves.add(move)
    assert len(moves) == len(range(0, NUM_ACTIONS, sample(1, 7)))


@pytest.mark.kernels
@pytest.mark.parametrize(
    ("usi", "black", "white"),
    [
        ("7g7f", 9054, 24 * 160 + (33 - 1) * 2),
        ("8h2b+", 10273, 16 * 160 + (64 - 1) * 2 + 1),
        ("P*5e", 13240, 13240),
        ("R*9a", 12966, 12960 + 80 * 7 + 6),
    ],
)
def test_check_values(usi: str, black: int, white: int) -> None:
    move = Move.from_usi(usi)
    assert MAPPER.index(move, Color.BLACK) == black
    assert MAPPER.index(move, Color.WHITE) == white


@pytest.mark.parametrize(
    "move",
    [
        Move(70, 70),
        Move(51, 286),
        Move(-1, 5),
        Move(None, 40, False, PieceKind.KING),
        Move(None, 40, True, PieceKind.PAWN),
        Move(None, 40),
        Move(3, 40, False, PieceKind.PAWN),
    ],
    ids=lambda move: str(tuple(move)),
)
def test_what_is_no_move_has_no_index(move: Move) -> None:
    with pytest.raises(ValueError, match=r"does not go|neither|only P L N S G B R"):
        MAPPER.index(move, Color.BLACK)


def test_actions_out_of_range_are_refused() -> None:
    for action in (-1, NUM_ACTIONS):
        with pytest.raises(ValueError, match="out of range"):
            MAPPER.move(action, Color.BLACK)


def test_the_mask_marks_the_legal_moves() -> None:
    game = ShogiGame("l6nl/5+P1gk/2np1S3/p1p4Pp/3P2Sp1/1PPb2P1P/P5GS1/R8/LN4bKL w GR5pnsg 1")
    mask = MAPPER.legal_mask(game)
    assert mask.shape == (NUM_ACTIONS,)
    marked = {MAPPER.move(int(action), game.turn) for action in np.flatnonzero(mask)}
    assert marked == set(game.legal_moves)


@pytest.mark.parametrize("action", range(0, NUM_ACTIONS, 13))
def test_mirrored_actions_are_the_moves_on_the_mirrored_board(action: int) -> None:
    move = MAPPER.move(action, Color.BLACK)
    origin = None if move.from_square is None else mirrored_square(move.from_square)
    image = Move(origin, mirrored_square(move.to_square), move.promote, move.drop)
    assert MAPPER.mirrored(action) == MAPPER.index(image, Color.BLACK)


def test_mirroring_twice_changes_nothing() -> None:
    assert np.array_equal(MIRRORED_ACTIONS[MIRRORED_ACTIONS], np.arange(NUM_ACTIONS))
    assert (MIRRORED_ACTIONS[:NUM_BOARD_ACTIONS] < NUM_BOARD_ACTIONS).all()

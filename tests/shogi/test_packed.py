"""Packed positions: layout, round trips, damage."""

import itertools

import numpy as np
import pytest

from keisei.constants import HAND_LIMITS, MOVE_BUFFER
from keisei.shogi.features import feature_spec
from keisei.shogi.game import ShogiGame
from keisei.shogi.packed import (
    PACKED,
    DamagedPositionError,
    legal_from_packed,
    new_packed,
    pack_game,
    require_valid,
    unpack_diagram,
)
from keisei.shogi.position import new_positions
from tests.positions import random_endgames, random_games
from tests.sampling import sample


def test_the_layout_is_fixed() -> None:
    """Stored experience depends on it."""
    assert PACKED.itemsize == 112
    offsets = {name: PACKED.fields[name][1] for name in PACKED.names or ()}  # type: ignore[index]
    assert offsets == {
        "board": 0,
        "hands": 81,
        "turn": 95,
        "in_check": 96,
        "repetitions": 97,
        "last_moves": 98,
        "ply": 102,
        "ply_limit": 104,
    }


@pytest.mark.kernels
def test_positions_come_back() -> None:
    games = itertools.chain(
        itertools.islice(random_games(31), sample(300, 30)),
        itertools.islice(random_endgames(31), sample(100, 10)),
    )
    for game in games:
        assert unpack_diagram(pack_game(game)[0]) == game.diagram


@pytest.mark.kernels
def test_legal_lists_are_made_anew_in_the_same_order() -> None:
    games = itertools.islice(random_endgames(32), sample(100, 10))
    legal, counts = np.zeros((1, MOVE_BUFFER), np.uint16), np.zeros(1, np.int32)
    scratch = new_positions(2)
    for game in games:
        legal_from_packed(pack_game(game), legal, counts, scratch, 0, 1)
        assert legal[0, : counts[0]].tolist() == game.legal_actions.tolist()


@pytest.mark.kernels
def test_more_repetitions_than_a_byte_holds() -> None:
    game = ShogiGame("9/9/9/9/9/9/1R7/9/k3K4 b - 1")
    for move in ["8g8f", "9i9h", "8f8g", "9h9i"] * 256:
        game.push(move)
    assert game.repetitions == 256
    assert pack_game(game)[0].repetitions == 255


@pytest.mark.kernels
@pytest.mark.parametrize(
    ("field", "value"), [("board", 29), ("board", 255), ("hands", 19), ("hands", 255), ("turn", 2)]
)
def test_damage_is_refused(field: str, value: int) -> None:
    packed = new_packed(3)
    packed[field][1] = value
    with pytest.raises(DamagedPositionError, match="packed position 1 is damaged"):
        feature_spec("core46").encode(packed)
    with pytest.raises(DamagedPositionError):
        unpack_diagram(packed[1])
    with pytest.raises(DamagedPositionError, match="have the dtype PACKED"):
        feature_spec("core46").encode(np.zeros(3, dtype=[("board", np.uint8)]).view(np.recarray))


@pytest.mark.kernels
def test_more_pieces_than_a_set_has_are_refused() -> None:
    """Kernels that play moves would count them beyond the end of a hand."""
    for kind, limit in enumerate((*HAND_LIMITS, 2)):
        packed = new_packed(1)
        for sq in range(limit):  # of either side, promoted or not
            packed[0].board[sq] = 1 + kind + 14 * (sq % 2)
        require_valid(packed)
        packed[0].board[80] = 1 + kind
        with pytest.raises(DamagedPositionError, match="position 0 is damaged"):
            require_valid(packed)
        if kind < 7:
            packed[0].board[80] = 0
            packed[0].hands[1, kind] = 1
            with pytest.raises(DamagedPositionError):
                require_valid(packed)
            packed[0].board[0] = 0
            require_valid(packed)
    crowded = new_packed(2)
    crowded[1].board[:] = 1
    crowded[1].hands[:, 0] = 18
    with pytest.raises(DamagedPositionError, match="position 1 is damaged"):
        require_valid(crowded)


@pytest.mark.kernels
def test_positions_of_games_are_valid() -> None:
    for game in itertools.islice(random_endgames(5), sample(300, 5)):
        require_valid(pack_game(game))

"""Code shared by the environments: views, starts, and invalid settings."""

import importlib
import sys
from dataclasses import replace
from itertools import islice

import numpy as np
import pytest

from keisei.errors import IllegalPositionError, KeiseiError, NotationError
from keisei.shogi import DeclarationRule, ShogiGame, feature_spec
from keisei.shogi.envs.env_game import GameSettings, opponents_view
from keisei.shogi.notation.sfen import STARTPOS_SFEN
from keisei.shogi.packed import pack_game
from tests.positions import random_endgames, random_games

MATE_IN_ONE = "4k4/9/4P4/9/9/9/9/9/4K4 b G 1"
DECLARATION_NEXT = "4K4/GGGGSSSS1/BBRR5/9/9/9/9/9/8k w - 1"
"""Whatever White plays, Black may declare a win."""

MATED = "4k4/4G4/4P4/9/9/9/9/9/4K4 w - 2"


def settings(
    *,
    starts: tuple[str, ...] = (STARTPOS_SFEN,),
    opening_plies: int = 0,
    ply_limit: int = 512,
) -> GameSettings:
    rule = DeclarationRule.POINTS_27
    return GameSettings("core46", starts, opening_plies, ply_limit, rule)


def test_the_side_not_to_move_sees_the_position_as_if_it_were_its_turn() -> None:
    spec = feature_spec("core46+check+prom_zone+hand_onehot")
    compared = 0
    for game in islice(random_endgames(seed=1), 200):
        if game.in_check:  # the other side to move could take the king: no such diagram
            continue
        its_turn = ShogiGame(replace(game.diagram, turn=game.turn.opponent))
        seen = spec.encode(opponents_view(pack_game(game)))
        np.testing.assert_array_equal(seen, spec.encode(pack_game(its_turn)))
        compared += 1
    assert compared > 50


def test_the_side_not_to_move_sees_history_turned_round() -> None:
    names = feature_spec("core46+last2ply+repetition").plane_names
    last_moves = slice(names.index("last from"), names.index("before last to") + 1)
    occurrences = slice(names.index("occurred 1x before"), names.index("occurred 3x before") + 1)
    spec = feature_spec("core46+last2ply+repetition")
    for game in islice(random_games(seed=2), 100):
        packed = pack_game(game)
        mover, other = spec.encode(packed)[0], spec.encode(opponents_view(packed))[0]
        np.testing.assert_array_equal(other[last_moves], mover[last_moves, ::-1, ::-1])
        np.testing.assert_array_equal(other[occurrences], mover[occurrences])


def test_looking_twice_from_the_other_side_is_looking_from_ones_own() -> None:
    for game in islice(random_games(seed=3), 100):
        packed = pack_game(game)
        packed["in_check"] = 0  # the one thing that the other side has not got
        np.testing.assert_array_equal(opponents_view(opponents_view(packed)), packed)


def test_openings_are_random_legal_and_of_the_length_asked_for() -> None:
    random = np.random.default_rng(0)
    games = [settings(opening_plies=5).begin(random) for _ in range(10)]
    assert {len(game.moves) for game in games} == {5}
    assert len({game.sfen() for game in games}) == 10


def test_an_opening_that_always_ends_the_game_is_left_out() -> None:
    random = np.random.default_rng(0)
    game = settings(starts=(DECLARATION_NEXT,), opening_plies=1).begin(random)
    assert game.sfen() == DECLARATION_NEXT


def test_a_given_start_is_taken_as_it_is() -> None:
    game = settings(opening_plies=4).begin(
        np.random.default_rng(0), "position startpos moves 7g7f 3c3d"
    )
    assert game.usi_position() == "position startpos moves 7g7f 3c3d"


def test_starts_are_chosen_at_random() -> None:
    starts = (STARTPOS_SFEN, MATE_IN_ONE)
    random = np.random.default_rng(0)
    assert {settings(starts=starts).begin(random).sfen() for _ in range(20)} == set(starts)


def test_settings_that_leave_no_game_are_refused() -> None:
    with pytest.raises(IllegalPositionError, match="already over: checkmate"):
        settings(starts=(MATED,))
    with pytest.raises(IllegalPositionError, match=r"ply 0: adding 8 opening plies .* limit of 8"):
        settings(opening_plies=8, ply_limit=8)
    with pytest.raises(IllegalPositionError, match="already over: ply limit"):
        settings().begin(np.random.default_rng(0), STARTPOS_SFEN[:-1] + "600")
    with pytest.raises(NotationError):
        settings(starts=("not a position",))


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"starts": ()}, "at least one"),
        ({"starts": STARTPOS_SFEN}, "list"),
        ({"opening_plies": -1}, "opening_plies is -1"),
        ({"ply_limit": 0}, "ply_limit is 0"),
        ({"ply_limit": 70_000}, "from 1 to 65535"),
    ],
)
def test_wrong_settings_are_refused(wrong: dict[str, object], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        settings(**wrong)  # type: ignore[arg-type]


@pytest.mark.parametrize("package", ["gymnasium", "pettingzoo"])
def test_without_the_extra_the_import_says_what_to_install(
    package: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.delitem(sys.modules, "keisei.shogi.envs")
    with pytest.raises(KeiseiError, match=rf'{package}: python -m pip install "keisei\[envs\]"'):
        importlib.import_module("keisei.shogi.envs")

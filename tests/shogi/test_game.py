"""`ShogiGame`: playing, undoing, and the reasons why moves are illegal."""

import random
from dataclasses import replace
from typing import Any
from xml.etree import ElementTree

import pytest

from keisei.errors import (
    IllegalMoveError,
    IllegalPositionError,
    KeiseiError,
    NotationError,
)
from keisei.shogi.game import ShogiGame
from keisei.shogi.rules import DeclarationRule, Termination
from keisei.shogi.types import (
    Color,
    Move,
    Piece,
    PieceKind,
    parse_square,
)
from tests.sampling import sample


@pytest.mark.kernels
@pytest.mark.parametrize(
    ("sfen", "mate"),
    [
        ("startpos", None),
        ("4k4/9/4P4/9/9/9/9/9/4K4 b G 1", "G*5b"),
        ("4k4/9/9/9/9/9/4p4/9/4K4 w g 1", "G*5h"),
        ("4k4/9/4P4/9/9/9/9/9/4K4 b P 1", None),
    ],
)
def test_a_mate_in_one(sfen: str, mate: str | None) -> None:
    game = ShogiGame(sfen)
    assert game.mate_in_one() == (None if mate is None else Move.from_usi(mate))
    assert game.sfen() == ShogiGame(sfen).sfen()
    if mate is not None:
        game.push(mate)
        assert game.outcome() == (Termination.CHECKMATE, game.turn.opponent)
        assert game.mate_in_one() is None, "nothing can be played any more"


def test_the_start_position() -> None:
    game = ShogiGame()
    assert game.turn is Color.BLACK
    assert game.ply == 0
    assert len(game.legal_moves) == 30
    assert not game.in_check
    assert game.checked_king is None
    assert game.last_move is None
    assert game.outcome() is None
    assert game.piece_at(parse_square("5i")) == Piece(Color.BLACK, PieceKind.KING)
    assert game.piece_at(parse_square("5e")) is None


@pytest.mark.kernels
def test_playing_and_taking_back() -> None:
    game = ShogiGame()
    moves = ["7g7f", "3c3d", "8h2b+", "3a2b", "B*4e"]
    sfens = []
    for move in moves:
        sfens.append(game.sfen())
        game.push(move)
    assert [move.usi for move in game.moves] == moves
    assert game.last_move == Move.from_usi("B*4e")
    assert game.hand(Color.WHITE) == (0, 0, 0, 0, 0, 1, 0)
    assert game.ply == 5
    for move, sfen in zip(reversed(moves), reversed(sfens), strict=True):
        assert game.pop().usi == move
        assert game.sfen() == sfen
    with pytest.raises(IndexError, match="no move to undo"):
        game.pop()


@pytest.mark.kernels
def test_repr_round_trips_with_the_whole_history() -> None:
    chance = random.Random(1)
    game = ShogiGame()
    for _ in range(sample(120, 20)):
        game.push(chance.choice(game.legal_moves))
    twin = eval(repr(game))
    assert (twin.sfen(), twin.moves, twin.key) == (game.sfen(), game.moves, game.key)
    copy = game.copy()
    game.pop()
    assert copy.sfen() == twin.sfen()


@pytest.mark.kernels
def test_a_history_longer_than_the_first_buffer() -> None:
    game = ShogiGame("9/9/9/9/9/9/1R7/9/k3K4 b - 1")
    cycle = ["8g8f", "9i9h", "8f8g", "9h9i"]
    for move in cycle * 150:
        game.push(move)
    assert game.repetitions == 150
    assert game.ply == 600


@pytest.mark.kernels
@pytest.mark.parametrize(
    ("sfen", "move", "reason"),
    [
        ("startpos", "5e5d", "there is no piece on 5e"),
        ("startpos", "3c3d", "the pawn on 3c is White's"),
        ("startpos", "7g7e", "a pawn cannot go from 7g to 7e"),
        ("startpos", "2h2b", "a rook cannot go from 2h to 2b"),
        ("startpos", "8h7g", "7g holds a piece of Black's own"),
        ("startpos", "5i5h+", "a king does not promote"),
        ("startpos", "2g2f+", "neither 2g nor 2f is in the promotion zone"),
        ("startpos", "P*5e", "Black has no pawn in hand"),
        ("4k4/9/9/9/9/9/4P4/9/4K4 b P 1", "P*5e", "nifu: Black already has a pawn on file 5"),
        ("4k4/9/9/9/9/9/9/9/4K4 b P 1", "P*5a", "5a is occupied"),
        ("4k4/9/9/9/9/9/9/9/4K4 b P 1", "P*1a", "a pawn dropped on 1a could never move again"),
        ("4k4/9/9/9/9/9/9/9/4K4 w n 1", "N*1h", "a knight dropped on 1h could never move again"),
        ("8k/7P1/9/9/9/9/9/9/4K4 b - 1", "2b2a", "the pawn must promote on 2a"),
        ("4k4/4r4/9/9/9/9/4G4/9/4K4 b - 1", "5g4g", "the gold on 5g is pinned"),
        ("4k4/4r4/9/9/9/9/9/9/4K4 b G 1", "G*1e", "Black would still be in check"),
        ("4k4/4r4/9/9/9/9/9/9/4K2G1 b - 1", "2i2h", "Black would still be in check"),
        ("4k4/4r4/9/9/9/9/9/9/4K4 b - 1", "5i5h", "the king would be in check on 5h"),
        ("7nk/7s1/8+S/7+p1/9/9/7K1/9/9 b P2g 1", "P*1b", "uchifuzume: a pawn dropped on 1b"),
        ("4k4/9/9/9/9/9/9/9/K3+p4 w - 1", "5i5h+", "a promoted pawn does not promote"),
    ],
)
def test_illegal_moves_say_why(sfen: str, move: str, reason: str) -> None:
    game = ShogiGame(sfen)
    before = game.sfen()
    with pytest.raises(
        IllegalMoveError, match="^" + move.replace("*", r"\*").replace("+", r"\+")
    ) as caught:
        game.push(move)
    assert reason in str(caught.value)
    assert game.sfen() == before
    assert not game.is_legal(move)


@pytest.mark.kernels
def test_every_refused_move_of_a_position_has_a_reason() -> None:
    """Every USI move, in positions with checks and pins: legal, or refused for a named reason."""
    for sfen in (
        "l6nl/5+P1gk/2np1S3/p1p4Pp/3P2Sp1/1PPb2P1P/P5GS1/R8/LN4bKL w GR5pnsg 1",
        "4k4/4r4/9/9/9/9/4G4/9/4K4 b P 1",
    ):
        game = ShogiGame(sfen)
        legal = set(game.legal_moves)
        squares = range(0, 81, sample(1, 9))
        for origin in squares:
            for target in range(0, 81, sample(2, 9)):
                if origin == target:
                    continue
                move = Move(origin, target, promote=bool((origin + target) % 2))
                assert game.is_legal(move) == (move in legal)
                if move not in legal:
                    with pytest.raises(IllegalMoveError):
                        game.push(move)


@pytest.mark.parametrize(
    "settings", [{"ply_limit": 0}, {"ply_limit": 65_536}, {"declaration": 99}], ids=str
)
def test_settings_that_make_no_sense_are_refused(settings: dict[str, Any]) -> None:
    with pytest.raises(ValueError, match=r"ply_limit|DeclarationRule"):
        ShogiGame(**settings)


def test_repr_names_unusual_settings() -> None:
    game = ShogiGame(ply_limit=80, declaration=DeclarationRule.OFF)
    twin = eval(repr(game))
    assert (twin.ply_limit, twin.declaration) == (80, DeclarationRule.OFF)


def test_plies_are_counted_up_to_a_limit() -> None:
    with pytest.raises(IllegalPositionError, match="move number is 70000"):
        ShogiGame(replace(ShogiGame().diagram, move_number=70_000))
    game = ShogiGame()
    game.position.ply = game.position.start_ply = 65_535
    with pytest.raises(IllegalMoveError, match="ply 65535"):
        game.push("7g7f")


def test_actions_out_of_range_say_so() -> None:
    for action in (-1, 13_527, 70_000):
        with pytest.raises(IllegalMoveError, match="out of range, 0 to 13526"):
            ShogiGame().push_action(action)


@pytest.mark.parametrize("text", ["7g", "7g7g", "K*5e", "7g7f=", "0a1b", "", "P*", "７g7f"])
def test_what_is_no_move_at_all(text: str) -> None:
    with pytest.raises(NotationError):
        ShogiGame().push(text)


def test_a_bad_move_in_a_list_is_named() -> None:
    with pytest.raises(IllegalMoveError, match="move 2 of the list: 7g7f: there is no piece on 7g"):
        ShogiGame("position startpos moves 7g7f 7g7f")


def test_user_errors_are_keisei_errors() -> None:
    for error in (IllegalMoveError, NotationError):
        assert issubclass(error, KeiseiError)
        assert issubclass(error, ValueError)


def test_boards_to_look_at() -> None:
    game = ShogiGame("position startpos moves 7g7f 3c3d 8h3c+")
    assert "馬" in str(game)
    root = ElementTree.fromstring(game._repr_svg_())
    assert root.tag.endswith("svg")
    assert game.checked_king == parse_square("5a")

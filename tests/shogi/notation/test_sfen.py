"""SFEN and USI: round trips, faults with their place, and any text at all."""

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st

from keisei.errors import IllegalPositionError, KeiseiError, NotationError
from keisei.shogi.game import ShogiGame
from keisei.shogi.notation.sfen import (
    STARTPOS_SFEN,
    format_position,
    format_sfen,
    parse_position,
    parse_sfen,
)
from keisei.shogi.types import Color, Move
from tests.positions import random_endgames, random_games

MATSURI = "l6nl/5+P1gk/2np1S3/p1p4Pp/3P2Sp1/1PPb2P1P/P5GS1/R8/LN4bKL w GR5pnsg 1"


@pytest.mark.parametrize(
    "sfen",
    [
        STARTPOS_SFEN,
        MATSURI.replace("GR5pnsg", "RGgsn5p"),
        "4k4/9/9/9/9/9/9/9/4K4 w 2R2B4G4S4N4L18P 300",
        "8k/9/9/9/9/9/9/9/9 b 2R2B4G4S4N4L9P9p 1",
    ],
)
def test_canonical_sfens_come_back(sfen: str) -> None:
    assert format_sfen(parse_sfen(sfen)) == sfen


def test_positions_come_back() -> None:
    games = itertools.chain(
        itertools.islice(random_games(1), 0, 600, 20), itertools.islice(random_endgames(1), 30)
    )
    for game in games:
        assert parse_sfen(format_sfen(game.diagram)) == game.diagram


def test_liberal_input() -> None:
    assert parse_sfen("sfen " + STARTPOS_SFEN) == parse_sfen(STARTPOS_SFEN)
    assert parse_sfen(STARTPOS_SFEN.removesuffix(" 1")).move_number == 1
    assert parse_sfen(STARTPOS_SFEN[:-1] + "0").move_number == 1
    assert format_sfen(parse_sfen(MATSURI)).split()[2] == "RGgsn5p", "hands in the usual order"


@pytest.mark.parametrize(
    ("sfen", "column", "reason"),
    [
        ("lnsgkgsnl/1r5b1/pppppxppp/9/9/9/PPPPPPPPP/1B5R1/LNSGKGSNL b - 1", 22, "'x' is neither"),
        ("lnsgkgsnl/1r5b1/pppppppp/9/9/9/PPPPPPPPP/1B5R1/LNSGKGSNL b - 1", 17, "has 8 squares"),
        ("lnsgkgsnl/1r5b1/ppppppppp/9/9/PPPPPPPPP/1B5R1/LNSGKGSNL b - 1", 1, "has 8 ranks"),
        ("lnsgkgsnl/1r5b1/ppppp+gppp/9/9/9/PPPPPPPPP/1B5R1/LNSGKGSNL b - 1", 22, "'+g' is neither"),
        ("4k4/9/9/9/9/9/9/9/4K4 x - 1", 23, "'b' or 'w'"),
        ("4k4/9/9/9/9/9/9/9/4K4 b 2K 1", 25, "'2' is not a piece in hand"),
        ("4k4/9/9/9/9/9/9/9/4K4 b P+P 1", 26, "'+' is not a piece in hand"),
        ("4k4/9/9/9/9/9/9/9/4K4 b - one", 27, "not a move number"),
    ],
)
def test_faults_have_a_column(sfen: str, column: int, reason: str) -> None:
    with pytest.raises(NotationError) as caught:
        parse_sfen(sfen)
    assert caught.value.column == column
    assert reason in str(caught.value)


@pytest.mark.parametrize("text", ["", "startpos", "4k4/9/9/9/9/9/9/9/4K4 b", "a b c d e"])
def test_the_wrong_number_of_fields(text: str) -> None:
    with pytest.raises(NotationError, match="fields"):
        parse_sfen(text)


def test_move_numbers_have_a_limit() -> None:
    with pytest.raises(IllegalPositionError, match="move number 40000"):
        parse_sfen("4k4/9/9/9/9/9/9/9/4K4 b - 40000")


def test_position_commands() -> None:
    diagram, moves = parse_position("position startpos moves 7g7f 3c3d")
    assert diagram == parse_sfen(STARTPOS_SFEN)
    assert moves == [Move.from_usi("7g7f"), Move.from_usi("3c3d")]
    assert parse_position(f"sfen {MATSURI}")[0].turn is Color.WHITE
    assert parse_position(MATSURI)[1] == []
    for text in (
        "position startpos",
        f"position sfen {format_sfen(parse_sfen(MATSURI))} moves 5a5b",
    ):
        assert format_position(*parse_position(text)) == text
    with pytest.raises(NotationError, match="only 'moves' can follow"):
        parse_position("startpos 7g7f")


@pytest.mark.parametrize(
    ("text", "wrong", "reason"),
    [
        ("4k4/9/9/9/9/9/9/9/4K4 x - 1", "x", "'b' or 'w'"),
        ("sfen 4k4/9/9/9/9/9/9/9/4K4 x - 1", "x", "'b' or 'w'"),
        ("position sfen 4k4/9/9/9/9/9/9/9/4K4 x - 1", "x", "'b' or 'w'"),
        ("  position   sfen  4k4/9/9/9/9/9/9/9/4K4   x - 1", "x", "'b' or 'w'"),
        ("position\tsfen\n4k4/9/9/9/9/9/9/9/4K4\u3000b  !  1", "!", "not a piece in hand"),
        ("position sfen 4k4/9/9/9/?8/9/9/9/4K4 b - 1 moves 5i5h", "?", "'?' is neither"),
        ("position  startpos  then 7g7f", "then", "'then' after 'startpos'"),
        ("startpos moves  7g7f  3c3d 2g", "2g", "move 3 of the list: '2g' is not a USI move"),
        ("position startpos moves K*5e", "K*5e", "move 1 of the list: 'K*5e': only P L N"),
        (f"position sfen {MATSURI} moves 5a5b 5j5i", "5j5i", "move 2 of the list: '5j' is not"),
        ("startpos moves 7g7f 5e5e", "5e5e", "move 2 of the list: '5e5e': origin and target"),
        ("startpos moves 7g7f moves", "moves", "move 2 of the list: 'moves' is not"),
    ],
)
def test_faults_in_position_commands_have_their_column(text: str, wrong: str, reason: str) -> None:
    with pytest.raises(NotationError) as caught:
        parse_position(text)
    assert caught.value.column == text.rindex(wrong) + 1
    assert reason in str(caught.value)


@given(st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    for reader in (parse_sfen, parse_position, Move.from_usi, ShogiGame):
        try:
            reader(text)
        except KeiseiError as error:
            message = str(error)
        else:
            message = "read"
        assert message


sfen_like = st.text(alphabet="lnsgkbrpLNSGKBRP+123456789/ bw-", min_size=10, max_size=90)


@given(
    st.one_of(
        sfen_like,
        st.builds(
            lambda at, piece: STARTPOS_SFEN[:at] + piece + STARTPOS_SFEN[at + len(piece) :],
            st.integers(0, len(STARTPOS_SFEN)),
            st.text(alphabet="kKpPlLnN+19/ bw-", max_size=3),
        ),
    )
)
def test_nearly_sfens_give_a_playable_game_or_a_keisei_error(text: str) -> None:
    try:
        game = ShogiGame(text)
    except KeiseiError:
        return
    assert parse_sfen(game.sfen()) == game.diagram
    for move in game.legal_moves:
        game.push(move)
        game.pop()

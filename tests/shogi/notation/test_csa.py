"""CSA: the standard's own rules, one by one, and the errors for faulty files."""

import pytest

from keisei.errors import NotationError
from keisei.shogi.notation.csa import read_csa, write_csa
from keisei.shogi.notation.record import (
    STARTPOS,
    Ending,
    GameRecord,
    RecordedMove,
    Result,
)
from keisei.shogi.notation.sfen import format_sfen, parse_sfen
from keisei.shogi.types import Color, Move

SAMPLE = """\
'CSA encoding=UTF-8
V3.0
'This line is for people.
N+Akane
N-Botan, Ltd.
$EVENT:Spring: round 1
$SITE:Kyoto
$START_TIME:2026/04/05 10:00:00
$END_TIME:2026/04/05 10:42:10
$OPENING:IBISHA
$TIME:600+10+0
$TIME+:600+10+0
$TIME-:300+0+5
$MAX_MOVES:320
$JISHOGI:27
$NOTE:two\\nlines, one \\\\
$REFEREE:Chiyo
P1-KY-KE-GI-KI-OU-KI-GI-KE-KY
P2 * -HI *  *  *  *  * -KA *
P3-FU-FU-FU-FU-FU-FU-FU-FU-FU
P4 *  *  *  *  *  *  *  *  *
P5 *  *  *  *  *  *  *  *  *
P6 *  *  *  *  *  *  *  *  *
P7+FU+FU+FU+FU+FU+FU+FU+FU+FU
P8 * +KA *  *  *  *  * +HI *
P9+KY+KE+GI+KI+OU+KI+GI+KE+KY
P+
P-
+
'*A friendly game.
+7776FU,T12.345
'*The usual
'* first move.
-3334FU
T6
+8822UM
'** 1200 -3122GI
-3122GI,T0,'*recaptures
+0055KA
%TORYO
T31.5
'*Botan thanks Akane.
"""


def game(moves: str, start: str = "PI\n+") -> GameRecord:
    [record] = read_csa(f"V2.2\n{start}\n{moves}")
    return record


def start_of(position: str) -> str:
    return format_sfen(game("", position).start)


def fault(text: str) -> NotationError:
    with pytest.raises(NotationError) as caught:
        read_csa(text)
    return caught.value


def test_sample_game() -> None:
    [record] = read_csa(SAMPLE)
    assert record.start == STARTPOS
    assert [
        (recorded.move.usi, recorded.seconds, recorded.comment) for recorded in record.moves
    ] == [
        ("7g7f", 12.345, "The usual\n first move."),
        ("3c3d", 6.0, ""),
        ("8h2b+", None, "* 1200 -3122GI"),
        ("3a2b", 0.0, "recaptures"),
        ("B*5e", None, ""),
    ]
    assert record.comment == "A friendly game."
    assert record.result == Result(Ending.RESIGNATION, 31.5, "Botan thanks Akane.")
    assert record.winner is Color.BLACK
    assert record.headers == {
        "black": "Akane",
        "white": "Botan, Ltd.",
        "event": "Spring: round 1",
        "site": "Kyoto",
        "start_time": "2026/04/05 10:00:00",
        "end_time": "2026/04/05 10:42:10",
        "opening": "IBISHA",
        "time": "600+10+0",
        "time+": "600+10+0",
        "time-": "300+0+5",
        "max_moves": "320",
        "jishogi": "27",
        "note": "two\nlines, one \\",
        "REFEREE": "Chiyo",
    }


def test_sample_is_written_as_the_standard_has_it() -> None:
    record = read_csa(SAMPLE)[0]
    text = write_csa(record)
    assert read_csa(text) == [record]
    assert text.splitlines()[:4] == ["'CSA encoding=UTF-8", "V3.0", "N+Akane", "N-Botan, Ltd."]
    assert text.splitlines()[16:] == [
        "PI",
        "+",
        "'*A friendly game.",
        "+7776FU",
        "T12.345",
        "'*The usual",
        "'* first move.",
        "-3334FU",
        "T6",
        "+8822UM",
        "'** 1200 -3122GI",
        "-3122GI",
        "T0",
        "'*recaptures",
        "+0055KA",
        "%TORYO",
        "T31.5",
        "'*Botan thanks Akane.",
    ]


def test_version_2_2_has_whole_seconds_and_its_own_time_limit() -> None:
    record = GameRecord(
        moves=[RecordedMove(Move.from_usi("7g7f"), seconds=12.9)], headers={"time": "1500+30+0"}
    )
    lines = write_csa(record, "2.2").splitlines()
    assert lines == ["V2.2", "$TIME_LIMIT:00:25+30", "PI", "+", "+7776FU", "T12"]
    assert read_csa("\n".join(lines))[0].headers == record.headers


@pytest.mark.parametrize("limit", ["1501+30+0", "1500+0+5", "1500+100+0", "free text"])
def test_version_2_2_borrows_the_time_limits_it_cannot_say(limit: str) -> None:
    record = GameRecord(headers={"time": limit})
    text = write_csa(record, "2.2")
    assert f"$TIME:{limit}\n" in text
    assert read_csa(text) == [record]


def test_both_spellings_of_the_time_of_one_side() -> None:
    assert game("", "$TIMET+:60+0+0\n$TIME-:90+0+0\nPI\n+").headers == {
        "time+": "60+0+0",
        "time-": "90+0+0",
    }


def test_faulty_time_limits_are_kept_as_text() -> None:
    record = game("", "$TIME_LIMIT:an hour\nPI\n+")
    assert record.headers == {"TIME_LIMIT": "an hour"}
    assert read_csa(write_csa(record)) == [record]


class TestStarts:
    def test_usual(self) -> None:
        assert game("").start == STARTPOS

    def test_handicap_by_taking_away(self) -> None:
        expected = "lnsgkgsnl/9/ppppppppp/9/9/9/PPPPPPPPP/1B5R1/LNSGKGSNL w - 1"
        assert start_of("PI82HI22KA\n-") == expected
        assert "PI82HI22KA\n-\n" in write_csa(GameRecord(parse_sfen(expected)))

    def test_piece_by_piece(self) -> None:
        assert (
            start_of("P-51OU\nP+53TO52KI00FU\nP+00FU59OU\nP-00KA\n-")
            == "4k4/4G4/4+P4/9/9/9/9/9/4K4 w 2Pb 1"
        )

    def test_all_the_rest(self) -> None:
        assert (
            start_of("P-11OU\nP+13FU55RY00HI\nP-00AL\n+")
            == "8k/9/8P/9/4+R4/9/9/9/9 b R2b4g4s4n4l17p 1"
        )

    def test_all_the_rest_for_black(self) -> None:
        assert start_of("P-11OU\nP+00AL\n+") == "8k/9/9/9/9/9/9/9/9 b 2R2B4G4S4N4L18P 1"

    def test_turn_may_be_missing(self) -> None:
        assert game("", "PI").start.turn is Color.BLACK

    def test_old_files_without_a_start(self) -> None:
        assert read_csa("+7776FU\n-3334FU")[0].start == STARTPOS

    def test_whole_board_is_written_rank_by_rank(self) -> None:
        start = parse_sfen("8k/8P/8+R/9/9/9/9/9/4K4 w 2Bg 1")
        text = write_csa(GameRecord(start))
        assert "P1 *  *  *  *  *  *  *  * -OU\n" in text
        assert "P3 *  *  *  *  *  *  *  * +RY\n" in text
        assert "P+00KA00KA\nP-00KI\n-\n" in text
        assert read_csa(text)[0].start == start


def test_several_games() -> None:
    games = read_csa("V2.2\nN+A\nPI\n+\n+7776FU\n/\nN+B\nPI\n+\n%CHUDAN\n/\nV2.2\n/\n")
    assert [(record.black, len(record.moves)) for record in games] == [("A", 1), ("B", 0)]
    assert read_csa(write_csa(games)) == games
    assert read_csa(write_csa(games, "2.2")) == games


def test_many_statements_on_a_line() -> None:
    record = game("+7776FU,T3,-3334FU,T4.5,%CHUDAN,T0", "PI,+")
    assert [recorded.seconds for recorded in record.moves] == [3.0, 4.5]
    assert record.result == Result(Ending.INTERRUPTED, 0.0)


def test_blanks_and_empty_lines_do_not_matter() -> None:
    assert game("  +7776FU \n\n \n\t-3334FU , T1 ").main_line == [
        Move.from_usi("7g7f"),
        Move.from_usi("3c3d"),
    ]


@pytest.mark.parametrize(
    ("line", "column", "message", "moves"),
    [
        (4, 1, "'\\+7775FU?'? is illegal|cannot go from 7g to 7e", "+7775FU"),
        (5, 1, "cannot go from 3c to 3e", "+7776FU\n-3335FU"),
        (4, 9, "it is White's turn: expected '-'", "+7776FU,+2726FU"),
        (4, 2, "Black has no piece on 55", "+5554FU"),
        (4, 2, "Black has no piece on 33", "+3334FU"),
        (4, 6, "the piece on 77 is FU; it cannot be KI after the move", "+7776KI"),
        (4, 1, "must promote|neither 7g nor 7f", "+7776TO"),
        (4, 1, "no rook in hand", "+0055HI"),
        (4, 6, "TO cannot be dropped", "+0055TO"),
        (4, 2, "07 is not a square", "+0776FU"),
        (4, 2, "origin and target are the same square", "+7777FU"),
        (4, 1, "'\\+7770FU' is not a move; expected something like '\\+7776FU'", "+7770FU"),
        (4, 1, "is not a move", "+7776XX"),
        (4, 1, "is not a move", "+7776"),
        (4, 1, "a time must follow a move", "T12"),
        (4, 9, "'Tx' is not a time; expected seconds", "+7776FU,Tx"),
        (4, 1, "is not a time", "T-1"),
        (4, 9, "6000000 seconds; a move can take at most 5999999", "+7776FU,T6000000"),
        (5, 1, r"the game ended before this \(resignation\)", "%TORYO\n+7776FU"),
        (5, 1, "the game ended before this", "%TORYO\n%TORYO"),
        (4, 1, "the side to move was already given", "+"),
        (4, 1, "the start position was already given", "PI"),
        (4, 1, "'hello' is not CSA", "hello"),
        (4, 1, "is not a header", "$EVENT"),
        (4, 1, "is not a header", "$:x"),
        (4, 1, "is not a header", "Nobody"),
        (4, 1, "'V' is not a version", "V"),
    ],
)
def test_faults_in_the_moves(line: int, column: int, message: str, moves: str) -> None:
    error = fault(f"V2.2\nPI\n+\n{moves}\n")
    assert (error.line, error.column) == (line, column)
    with pytest.raises(NotationError, match=message):
        raise error


@pytest.mark.parametrize("ending", ["%ILLEGAL_MOVE", "%-ILLEGAL_ACTION"])
def test_an_illegal_last_move_that_lost_the_game(ending: str) -> None:
    record = game(f"+7776FU\n-3335FU\nT7\n'*too far\n{ending}")
    comment = "illegal move 3c3e: a pawn cannot go from 3c to 3e\ntoo far"
    assert record.main_line == [Move.from_usi("7g7f")]
    assert record.result == Result(Ending.ILLEGAL_MOVE, 7.0, comment)
    assert record.winner is Color.BLACK
    assert read_csa(write_csa(record)) == [record]


@pytest.mark.parametrize("after", ["", "\n%TORYO", "\n%+ILLEGAL_ACTION", "\n+2726FU", "\n/\nPI"])
def test_other_illegal_moves_are_faults(after: str) -> None:
    error = fault(f"PI\n+\n+7776FU\n-3335FU{after}")
    assert (error.line, error.column) == (4, 1)
    assert "-3335FU is illegal: 3c3e: a pawn cannot go from 3c to 3e" in str(error)


@pytest.mark.parametrize(
    ("line", "column", "message", "start"),
    [
        (1, 3, "there is no HI on this square", "PI22HI"),
        (1, 3, "there is no HI on this square", "PI55HI"),
        (1, 3, "there is no FU on this square", "PI00FU"),
        (1, 7, "'22K' is not a piece", "PI82HI22K"),
        (1, 3, "'82XX' is not a piece", "PI82XX"),
        (2, 1, "PI must be the first line", "P+00FU\nPI"),
        (1, 1, "'PX'; expected PI, P1 to P9", "PX"),
        (1, 1, "'P'; expected PI, P1 to P9", "P"),
        (1, 6, "'\\+XX' is not a square", "P1 * +XX"),
        (1, 6, "'   ' is not a square", "P1 * "),
        (1, 26, "'   ' is not a square", "P1" + " * " * 7 + "* "),
        (1, 30, "nine squares", "P1" + " * " * 9 + "x"),
        (2, 1, "rank 5 is given twice", "P5" + " * " * 9 + "\nP5" + " * " * 9),
        (2, 1, "rank 1 is given twice", "PI\nP1" + " * " * 9),
        (1, 7, "square 55 is already occupied", "P+55KI55FU"),
        (1, 3, "05 is not a square", "P+05FU"),
        (1, 3, "TO cannot be held", "P+00TO"),
        (1, 3, "OU cannot be held", "P+00OU"),
        (1, 3, "goes to the hand: 00AL", "P+55AL"),
        (1, 7, "must be last", "P+00AL00FU"),
        (1, 1, r"no game can start here: White has two pawns on file 1 \(nifu\)", "P-11OU12FU13FU"),
        (1, 1, "no game can start here: there is no king", "P+55KI"),
        (2, 1, "White is in check and it is not White's turn", "P-11OU\nP+12KI"),
        (1, 1, "headers without a game", "N+Akane"),
    ],
)
def test_faults_in_the_start(line: int, column: int, message: str, start: str) -> None:
    error = fault(start)
    assert (error.line, error.column) == (line, column)
    with pytest.raises(NotationError, match=message):
        raise error


@pytest.mark.parametrize("text", ["", "\n\n", "V2.2\n", "'comment\n/\n"])
def test_texts_without_a_game(text: str) -> None:
    assert "no game in this text" in str(fault(text))


@pytest.mark.parametrize("headers", [{"a:b": "x"}, {"event": "x\ny"}, {"": "x"}, {"a\nb": "x"}])
def test_headers_that_cannot_be_written(headers: dict[str, str]) -> None:
    with pytest.raises(NotationError, match="cannot be written"):
        write_csa(GameRecord(headers=headers))

"""Records: every move is legal, headers have types, endings have winners."""

from dataclasses import replace
from datetime import date, datetime

import pytest

from keisei.errors import IllegalMoveError, IllegalPositionError
from keisei.shogi.game import ShogiGame
from keisei.shogi.notation.headers import TimeLimit, format_moment, parse_moment
from keisei.shogi.notation.record import (
    MAX_SECONDS,
    STARTPOS,
    Ending,
    GameRecord,
    RecordedMove,
    Result,
    Variation,
)
from keisei.shogi.notation.sfen import parse_sfen
from keisei.shogi.rules import Outcome, Termination
from keisei.shogi.types import Color, Move


def moves(*usi: str) -> list[RecordedMove]:
    return [RecordedMove(Move.from_usi(text)) for text in usi]


def test_a_record_refuses_illegal_moves_and_says_which_and_why() -> None:
    with pytest.raises(IllegalMoveError, match=r"move 3, 8h2b\+.*cannot go from 8h to 2b"):
        GameRecord.from_moves(["2g2f", "3c3d", "8h2b+"])


def test_a_record_refuses_impossible_starts() -> None:
    board = list(STARTPOS.board)
    board[0] = board[4]
    with pytest.raises(IllegalPositionError, match="White has 2 kings"):
        GameRecord(replace(STARTPOS, board=tuple(board)))


def test_who_is_to_move_and_who_won() -> None:
    handicap = parse_sfen("lnsgkgsnl/1r7/ppppppppp/9/9/9/PPPPPPPPP/1B5R1/LNSGKGSNL w - 1")
    record = GameRecord.from_moves(["3c3d"], start=handicap, result=Result(Ending.RESIGNATION))
    assert record.turn is Color.BLACK
    assert record.winner is Color.WHITE
    assert GameRecord().winner is None


@pytest.mark.parametrize(
    ("ending", "winner"),
    [
        (Ending.RESIGNATION, Color.WHITE),
        (Ending.TIME_UP, Color.WHITE),
        (Ending.ILLEGAL_MOVE, Color.WHITE),
        (Ending.MATE, Color.WHITE),
        (Ending.BLACK_FOUL, Color.WHITE),
        (Ending.DEFAULT_LOSS, Color.WHITE),
        (Ending.WHITE_FOUL, Color.BLACK),
        (Ending.DECLARATION, Color.BLACK),
        (Ending.DEFAULT_WIN, Color.BLACK),
        *(
            (ending, None)
            for ending in (
                Ending.INTERRUPTED,
                Ending.REPETITION,
                Ending.IMPASSE,
                Ending.DECLARED_DRAW,
                Ending.MAX_MOVES,
                Ending.TAKEN_BACK,
                Ending.NO_MATE,
                Ending.ERROR,
            )
        ),
    ],
)
def test_winner_with_black_to_move(ending: Ending, winner: Color | None) -> None:
    assert ending.winner(Color.BLACK) is winner


@pytest.mark.parametrize(
    ("start", "cycle", "ending", "winner"),
    [
        ("4k4/9/9/9/9/9/9/9/4K4 b G 1", ["G*5c"], None, None),
        ("4k4/9/4P4/9/9/9/9/9/4K4 b G 1", ["G*5b"], Ending.MATE, Color.BLACK),
        ("k8/9/1PP6/9/9/9/9/9/4K4 b G 1", ["G*8b"], Ending.MATE, Color.BLACK),
        ("4k4/9/9/9/9/9/9/9/4K4 b - 1", ["5i4i", "5a4a", "4i5i", "4a5a"], Ending.REPETITION, None),
        (
            "4k4/9/9/9/9/9/9/9/K4R3 b - 1",
            ["4i5i", "5a4a", "5i4i", "4a5a"],
            Ending.BLACK_FOUL,
            Color.WHITE,
        ),
    ],
)
def test_records_of_played_games(
    start: str, cycle: list[str], ending: Ending | None, winner: Color | None
) -> None:
    game = ShogiGame(start)
    for move in cycle * (3 if len(cycle) > 1 else 1):
        game.push(move)
    record = GameRecord.from_game(game, headers={"black": "Keisei"})
    assert record.main_line == game.moves
    assert record.result == (None if ending is None else Result(ending))
    assert record.winner is winner
    assert record.black == "Keisei"


def test_the_move_limit_ends_a_record() -> None:
    game = ShogiGame(ply_limit=2)
    game.push("7g7f")
    assert GameRecord.from_game(game).result is None
    game.push("3c3d")
    assert GameRecord.from_game(game).result == Result(Ending.MAX_MOVES)


ENDINGS = {
    Termination.CHECKMATE: (Ending.MATE, Color.BLACK),
    Termination.NO_LEGAL_MOVE: (Ending.MATE, Color.BLACK),
    Termination.REPETITION: (Ending.REPETITION, None),
    Termination.PERPETUAL_CHECK: (Ending.WHITE_FOUL, Color.BLACK),
    Termination.DECLARATION: (Ending.DECLARATION, Color.WHITE),
    Termination.PLY_LIMIT: (Ending.MAX_MOVES, None),
    Termination.ILLEGAL_MOVE: (Ending.ILLEGAL_MOVE, Color.BLACK),
}
"""The ending and the winner of each termination, with White to move."""


@pytest.mark.parametrize("termination", Termination)
def test_every_outcome_has_its_ending(termination: Termination) -> None:
    ending, winner = ENDINGS[termination]
    game = ShogiGame("startpos moves 7g7f")
    record = GameRecord.from_game(game, Outcome(termination, winner))
    assert record.result == Result(ending)
    assert record.winner is winner


def test_perpetual_check_may_be_either_sides_foul() -> None:
    outcome = Outcome(Termination.PERPETUAL_CHECK, Color.WHITE)
    record = GameRecord.from_game(ShogiGame("startpos moves 7g7f"), outcome)
    assert record.result == Result(Ending.BLACK_FOUL)


def test_a_declared_win_is_recorded() -> None:
    game = ShogiGame("KG+P+P+P+P+P+P+P/+P+P+P6/9/9/9/9/9/9/8k b 2R2B 1")
    assert GameRecord.from_game(game).result is None
    record = GameRecord.from_game(game, game.outcome(claim_declaration=True))
    assert record.result == Result(Ending.DECLARATION)
    assert record.winner is Color.BLACK


@pytest.mark.parametrize(
    "outcome",
    [
        Outcome(Termination.CHECKMATE, Color.WHITE),
        Outcome(Termination.ILLEGAL_MOVE, Color.WHITE),
        Outcome(Termination.DECLARATION, Color.BLACK),
        Outcome(Termination.REPETITION, Color.BLACK),
    ],
)
def test_an_outcome_has_to_fit_the_side_to_move(outcome: Outcome) -> None:
    with pytest.raises(ValueError, match="impossible with White to move"):
        GameRecord.from_game(ShogiGame("startpos moves 7g7f"), outcome)


def test_typed_headers() -> None:
    record = GameRecord(
        headers={
            "black": "Akane",
            "event": "Friendly",
            "site": "Kyoto",
            "start_time": "2026/02/28 09:30:00",
            "end_time": "2026/03/01",
            "time": "600+30+0",
            "time-": "900+0+5",
            "max_moves": "320",
        }
    )
    assert (record.black, record.white) == ("Akane", "")
    assert (record.event, record.site) == ("Friendly", "Kyoto")
    assert record.start_time == datetime(2026, 2, 28, 9, 30)
    assert record.end_time == date(2026, 3, 1)
    assert record.max_moves == 320
    assert record.time_limit(Color.BLACK) == TimeLimit(main=600, byoyomi=30)
    assert record.time_limit(Color.WHITE) == TimeLimit(main=900, increment=5)


def test_typed_headers_of_free_text_are_none_and_the_text_stays() -> None:
    record = GameRecord(headers={"start_time": "last spring", "max_moves": "many", "time": "long"})
    assert record.start_time is None
    assert record.end_time is None
    assert record.max_moves is None
    assert record.time_limit(Color.BLACK) is None
    assert record.headers["start_time"] == "last spring"


@pytest.mark.parametrize(
    ("text", "moment"),
    [
        ("2026/02/28", date(2026, 2, 28)),
        ("2026-2-8", date(2026, 2, 8)),
        ("2026年2月28日", date(2026, 2, 28)),
        ("1999/07/15(木) 19:07:12", datetime(1999, 7, 15, 19, 7, 12)),
        ("2026/02/28 9:05", datetime(2026, 2, 28, 9, 5)),
        ("2026年2月28日 9時5分", datetime(2026, 2, 28, 9, 5)),
        ("2026-02-28T09:05:01", datetime(2026, 2, 28, 9, 5, 1)),
        ("2026/02/30", None),
        ("2026/02/28 25:00", None),
        ("", None),
        ("yesterday", None),
    ],
)
def test_moments(text: str, moment: date | None) -> None:
    assert parse_moment(text) == moment
    if moment is not None:
        assert parse_moment(format_moment(moment)) == moment


@pytest.mark.parametrize("seconds", [-1.0, float("nan"), float("inf"), MAX_SECONDS + 1, 1e8])
def test_impossible_times_are_refused(seconds: float) -> None:
    with pytest.raises(ValueError, match="a time must be from 0 to 5999999"):
        RecordedMove(Move.from_usi("7g7f"), seconds)
    with pytest.raises(ValueError, match="a time must be from 0 to 5999999"):
        Result(Ending.RESIGNATION, seconds)


def test_a_bookmark_is_a_single_line() -> None:
    with pytest.raises(ValueError, match="single line"):
        RecordedMove(Move.from_usi("7g7f"), bookmark="a\nb")


def test_variations_are_checked_against_the_line_before_them() -> None:
    main = moves("7g7f", "3c3d", "2g2f")
    second = Variation(2, moves("8c8d", "6g6f"))
    third = Variation(3, moves("2g2f", "8d8e"))  # follows 8c8d of the second line
    assert GameRecord(moves=main, variations=[second, third]).variations == [second, third]
    with pytest.raises(IllegalMoveError, match="move 4, 8d8e"):
        GameRecord(moves=main, variations=[third])


@pytest.mark.parametrize("ply", [0, 5])
def test_variations_leave_an_existing_line(ply: int) -> None:
    with pytest.raises(IllegalMoveError, match=f"variation at move {ply} of a line of 3 moves"):
        GameRecord(moves=moves("7g7f", "3c3d", "2g2f"), variations=[Variation(ply, [])])

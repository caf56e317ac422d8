"""The session of a game: moves, taking back, looking back, clocks, endings, files."""

import pytest

from keisei.errors import IllegalMoveError, KeiseiError, NotationError
from keisei.play.session import MAX_GAME_PLIES, End, GameSession, time_left
from keisei.play.transfer import (
    FORMATS,
    MAX_GAME_BYTES,
    read_session,
    write_session,
)
from keisei.shogi.game import ShogiGame
from keisei.shogi.notation.files import read_games
from keisei.shogi.notation.headers import TimeLimit
from keisei.shogi.notation.japanese import HANDICAPS
from keisei.shogi.notation.record import (
    Ending,
    GameRecord,
    RecordedMove,
    Result,
)
from keisei.shogi.notation.sfen import format_sfen
from keisei.shogi.types import Color

BLACK, WHITE = Color
MATE_IN_ONE = "4k4/9/4P4/9/9/9/9/9/4K4 b G 1"
LINE = ["7g7f", "3c3d", "2g2f", "8c8d", "2f2e"]
SHUFFLE = ["2h3h", "8b7b", "3h2h", "7b8b"]
CAN_DECLARE = "K+R+R+B+BGGGG/SSSS5/9/9/9/9/9/9/8k b 18P4L4N 1"


class Hand:
    """A clock whose hand is moved by the test."""

    def __init__(self) -> None:
        self.seconds = 100.0

    def __call__(self) -> float:
        return self.seconds


def played(session: GameSession) -> list[str]:
    return [move.usi for move in session.game.moves]


def test_moves_alternate_and_the_view_follows() -> None:
    session = GameSession(people={BLACK})
    assert (session.is_persons_turn, session.turn) == (True, BLACK)
    session.push("7g7f")
    assert (session.is_persons_turn, session.turn) == (False, WHITE)
    session.push("3c3d")
    assert (session.cursor, session.length, session.is_live) == (2, 2, True)
    assert session.shown.sfen() == ShogiGame("startpos moves 7g7f 3c3d").sfen()


def test_an_illegal_move_changes_nothing() -> None:
    session = GameSession()
    before = session.revision
    with pytest.raises(IllegalMoveError):
        session.push("7g7e")
    assert (session.revision, session.length) == (before, 0)


@pytest.mark.parametrize(
    ("people", "moves", "left"),
    [
        ({BLACK}, 2, 0),  # the answer goes with the move
        ({BLACK}, 3, 2),  # while the other side thinks, only the move
        ({WHITE}, 3, 1),
        ({BLACK, WHITE}, 3, 2),  # two people take back one move
    ],
)
def test_taking_back(people: set[Color], moves: int, left: int) -> None:
    session = GameSession("startpos moves " + " ".join(LINE[:moves]), people=people)
    before = session.revision
    session.take_back()
    assert played(session) == LINE[:left]
    assert session.revision > before, "an answer on its way is out of date"


@pytest.mark.parametrize(("people", "moves"), [({BLACK}, 0), ({WHITE}, 1), (set(), 3)])
def test_nothing_to_take_back(people: set[Color], moves: int) -> None:
    session = GameSession("startpos moves " + " ".join(LINE[:moves]), people=people)
    assert not session.can_take_back
    with pytest.raises(KeiseiError, match="no move to take back"):
        session.take_back()


def test_after_the_end_one_may_take_back_and_go_on() -> None:
    session = GameSession(MATE_IN_ONE, people={BLACK})
    session.push("G*5b")
    assert session.end == End(Ending.MATE, BLACK)
    with pytest.raises(IllegalMoveError, match="over"):
        session.push("5a5b")
    session.take_back()
    assert session.is_persons_turn


def test_showing_earlier_positions() -> None:
    session = GameSession("startpos moves " + " ".join(LINE))
    revision = session.revision
    for ply in (0, 3, 5, 99, -1):
        session.go_to(ply)
        nearest = max(0, min(ply, 5))
        assert session.cursor == nearest
        assert [move.usi for move in session.shown.moves] == LINE[:nearest]
        assert session.is_live is (nearest == 5)
    assert session.revision == revision, "looking changes nothing"
    session.go_to(2)
    session.push("1c1d")  # the game's own next move, wherever one looks
    assert played(session) == [*LINE, "1c1d"]
    assert session.cursor == 6


def test_playing_on_from_an_earlier_position() -> None:
    session = GameSession("startpos moves " + " ".join(LINE))
    session.finish(Ending.RESIGNATION)
    session.go_to(2)
    session.play_on()
    assert played(session) == LINE[:2]
    assert session.end is None
    assert session.is_live


@pytest.mark.parametrize(
    ("ending", "winner"),
    [(Ending.RESIGNATION, WHITE), (Ending.TIME_UP, WHITE), (Ending.ERROR, None)],
)
def test_ending_a_game(ending: Ending, winner: Color | None) -> None:
    session = GameSession()
    session.finish(ending)
    assert session.end == End(ending, winner)
    with pytest.raises(KeiseiError, match="over already"):
        session.finish(Ending.RESIGNATION)


def test_declaring_needs_the_right_to() -> None:
    with pytest.raises(KeiseiError, match="can't be declared"):
        GameSession().finish(Ending.DECLARATION)
    session = GameSession(CAN_DECLARE)
    session.finish(Ending.DECLARATION)
    assert session.end == End(Ending.DECLARATION, BLACK)


def test_repetition_and_length_are_judged() -> None:
    session = GameSession("startpos moves " + " ".join(SHUFFLE * 3))
    assert session.end == End(Ending.REPETITION, None)
    first = format_sfen(GameSession().game.start).replace(" 1", " 400")
    session = GameSession(first)
    assert session.end is None
    assert session.game.ply_limit == 399 + MAX_GAME_PLIES


@pytest.mark.parametrize(
    ("end", "text"),
    [
        (End(Ending.MATE, BLACK), "Black wins: mate."),
        (End(Ending.RESIGNATION, WHITE), "White wins: resignation."),
        (End(Ending.REPETITION, None), "A draw: the fourth repetition."),
        (End(Ending.ERROR, None), "Broken off: the player did not answer."),
    ],
)
def test_endings_in_words(end: End, text: str) -> None:
    assert str(end) == text


# ---- clocks ----


def test_time_runs_for_the_side_to_move() -> None:
    hand = Hand()
    session = GameSession(limit=TimeLimit(main=60, byoyomi=10), now=hand)
    hand.seconds += 20
    assert str(session.time_left(BLACK)) == "0:40"
    assert str(session.time_left(WHITE)) == "1:00"
    session.push("7g7f")
    hand.seconds += 5
    assert str(session.time_left(BLACK)) == "0:40"
    assert str(session.time_left(WHITE)) == "0:55"
    session.push("3c3d")
    hand.seconds += 45
    left = session.time_left(BLACK)
    assert left is not None
    assert (left.main, left.byoyomi, left.is_up) == (0.0, 5.0, False)
    session.push("2g2f")
    left = session.time_left(BLACK)
    assert left is not None
    assert (left.main, left.byoyomi) == (0.0, 10.0), "byoyomi is new for each move"


def test_time_that_is_up_loses() -> None:
    hand = Hand()
    session = GameSession(limit=TimeLimit(main=5, byoyomi=3), now=hand)
    hand.seconds += 8
    assert (session.has_lost_on_time, "the last moment") == (False, "the last moment")
    hand.seconds += 0.1
    assert (session.has_lost_on_time, "after it") == (True, "after it")
    session.push("7g7f")  # too late
    assert session.end == End(Ending.TIME_UP, WHITE)
    assert session.length == 0


def test_a_clock_that_is_stopped_keeps_what_was_used() -> None:
    hand = Hand()
    session = GameSession(limit=TimeLimit(main=0, byoyomi=10), now=hand)
    for _ in range(2):
        hand.seconds += 3
        session.stop_clock()
        session.stop_clock()
        hand.seconds += 100
        assert not session.has_lost_on_time
        session.start_clock()
        session.start_clock()
    hand.seconds += 3
    assert str(session.time_left(BLACK)) == "0:01"
    session.push("7g7f")
    assert session.record().moves[0].seconds == 9
    session.stop_clock()
    session.push("3c3d")
    hand.seconds += 100
    assert str(session.time_left(BLACK)) == "0:10", (
        "the turn has changed, but the clock was not started"
    )


def test_another_strength_gives_no_time_back() -> None:
    hand = Hand()
    session = GameSession(people={BLACK}, limit=TimeLimit(main=0, byoyomi=10), now=hand)
    for strength in ("weak", "strong"):
        hand.seconds += 9
        session.change_players({BLACK}, {"white": strength})
    assert session.has_lost_on_time


def test_taking_back_gives_the_time_back() -> None:
    hand = Hand()
    session = GameSession(people={BLACK}, limit=TimeLimit(main=60), now=hand)
    hand.seconds += 30
    session.push("7g7f")
    session.push("3c3d")
    session.take_back()
    assert str(session.time_left(BLACK)) == "1:00"


def test_increments() -> None:
    left = time_left(TimeLimit(main=10, increment=5), [8.0, 6.0], 2.0)
    assert (left.main, left.is_up) == (4.0, False)
    assert time_left(TimeLimit(main=10, increment=5), [8.0, 6.0], 6.1).is_up


@pytest.mark.parametrize(("seconds", "text"), [(59.01, "1:00"), (60.0, "1:00"), (0.2, "0:01")])
def test_clocks_round_up(seconds: float, text: str) -> None:
    assert str(time_left(TimeLimit(main=600), [600 - seconds])) == text


def test_no_limit_no_clock() -> None:
    session = GameSession()
    assert session.time_left(BLACK) is None
    assert not session.has_lost_on_time


def test_a_finished_game_has_no_running_clock() -> None:
    hand = Hand()
    session = GameSession(limit=TimeLimit(main=60), now=hand)
    session.finish(Ending.RESIGNATION)
    hand.seconds += 1000
    assert str(session.time_left(BLACK)) == "1:00"
    assert not session.has_lost_on_time


# ---- files ----


def a_game() -> GameSession:
    hand = Hand()
    session = GameSession(
        headers={"black": "you", "white": "first@64"}, limit=TimeLimit(main=600), now=hand
    )
    for seconds, move in enumerate(LINE):
        hand.seconds += seconds
        session.push(move)
    session.finish(Ending.RESIGNATION)
    return session


@pytest.mark.parametrize("kind", FORMATS)
def test_what_is_written_can_be_read(kind: str) -> None:
    session = a_game()
    again = read_session(write_session(session, kind), f"game.{kind}")
    assert played(again) == LINE
    if kind != "sfen":
        assert again.end == End(Ending.RESIGNATION, BLACK)
        assert (again.name(BLACK), again.name(WHITE)) == ("you", "first@64")
        assert [move.seconds for move in again.record().moves] == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("kind", FORMATS)
def test_what_is_pasted_needs_no_name(kind: str) -> None:
    assert played(read_session(write_session(a_game(), kind))) == LINE


def test_ki2_and_bare_sfens_are_read() -> None:
    assert played(read_session("▲７六歩 △３四歩".encode())) == LINE[:2]
    assert read_session(f"{MATE_IN_ONE}\n".encode()).game.sfen() == MATE_IN_ONE


def test_names_that_shift_jis_lacks_are_written_in_utf8() -> None:
    session = GameSession(headers={"black": "Zoë 🐈"})
    session.push("7g7f")
    assert read_session(write_session(session, "kif"), "game.kif").name(BLACK) == "Zoë 🐈"


@pytest.mark.parametrize("data", [b"", b"hello", b"\xff\xfe\x00", b"position startpos moves 1a1b"])
@pytest.mark.parametrize("name", ["", "game.kif", "game.csa", "game.sfen"])
def test_invalid_files_are_refused(data: bytes, name: str) -> None:
    with pytest.raises(KeiseiError):
        read_session(data, name)


def test_other_files_are_no_games() -> None:
    with pytest.raises(NotationError, match=r"\.kif"):
        read_session(b"", "game.exe")
    with pytest.raises(NotationError, match="kif, csa, sfen"):
        write_session(GameSession(), "exe")


def test_a_record_keeps_its_end() -> None:
    handicap = HANDICAPS["二枚落ち"]
    record = GameRecord(
        handicap,
        [RecordedMove(ShogiGame(handicap).legal_moves[0], 12.0)],
        {"black": "A", "white": "B"},
        result=Result(Ending.TIME_UP),
    )
    session = GameSession.from_record(record)
    assert session.end == End(Ending.TIME_UP, WHITE)
    assert session.people == {BLACK, WHITE}
    assert session.record() == record


def test_a_game_that_is_too_long_is_refused() -> None:
    moves = GameRecord.from_moves(SHUFFLE * (MAX_GAME_PLIES // 4 + 1)).moves
    with pytest.raises(KeiseiError, match=f"up to {MAX_GAME_PLIES}"):
        GameSession.from_record(GameRecord(moves=moves))
    usi = "startpos moves " + " ".join(SHUFFLE * (MAX_GAME_PLIES // 4))
    assert GameSession(usi).length == MAX_GAME_PLIES
    with pytest.raises(KeiseiError, match=f"{MAX_GAME_PLIES + 1} moves; up to {MAX_GAME_PLIES}"):
        GameSession(f"{usi} {SHUFFLE[0]}")


def test_what_is_too_large_is_not_read() -> None:
    game = b"PI\n+\n+7776FU\n"
    size = MAX_GAME_BYTES - len(game)
    comment = b"'*\n" * (size // 3) + b"\n" * (size % 3)
    assert read_session(game + comment, "game.csa").length == 1
    with pytest.raises(KeiseiError, match="at most 256 kB"):
        read_session(game + comment + b"\n", "game.csa")


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("game.csa", "PI\n+\n+7776FU\n/\nPI\n+\n+1111FU\n"),
        ("game.sfen", "startpos moves 7g7f\nstartpos moves 1a1a\n"),
        ("game.kif", "   1 ７六歩(77)\n\n変化：1手\n   1 ７六歩(11)\n"),
        ("game.ki2", "▲７六歩\n\n変化：1手\n▲１一歩\n"),
    ],
)
def test_what_comes_after_the_first_game_is_not_read(name: str, text: str) -> None:
    assert played(read_session(text.encode(), name)) == ["7g7f"]
    with pytest.raises(NotationError):
        read_games(text.encode(), name)


@pytest.mark.parametrize(
    ("moves", "japanese", "letters"),
    [
        (["7g7f"], "☗７六歩", "P-7f"),
        (["7g7f", "3c3d", "8h2b+"], "☗２二角成", "Bx2b+"),
        (["7g7f", "3c3d", "8h2b", "3a2b"], "☖同銀", "Sx2b"),
        (["7g7f", "3c3d", "8h2b"], "☗２二角不成", "Bx2b="),
        (["7g7f", "3c3d", "8h2b+", "3a2b", "B*5e"], "☗５五角", "B*5e"),
        (["4i5h"], "☗５八金右", "G4i-5h"),
    ],
)
def test_moves_in_words(moves: list[str], japanese: str, letters: str) -> None:
    session = GameSession("startpos moves " + " ".join(moves))
    assert session.moves("kanji")[-1] == japanese
    assert session.moves("letters")[-1] == letters


def test_a_clock_that_ran_out_stays_at_zero() -> None:
    now = 0.0
    session = GameSession(limit=TimeLimit(0, byoyomi=10), now=lambda: now)
    now = 10.5
    assert session.has_lost_on_time
    session.finish(Ending.TIME_UP)
    assert str(session.time_left(Color.BLACK)) == "0:00"
    assert str(session.time_left(Color.WHITE)) == "0:10"
    assert session.copy().time_left(Color.BLACK) == session.time_left(Color.BLACK)


def test_a_copy_goes_on_by_itself() -> None:
    session = GameSession(people={Color.BLACK}, headers={"black": "You"}, limit=TimeLimit(60))
    session.push("7g7f")
    copy = session.copy()
    session.push("3c3d")
    assert (copy.length, copy.people, copy.limit) == (1, frozenset({Color.BLACK}), TimeLimit(60))
    assert copy.name(Color.BLACK) == "You"

"""Records survive every format, and every way through the formats."""

import random
from collections.abc import Callable

import pytest
from hypothesis import given, settings

from keisei.errors import IllegalMoveError
from keisei.shogi.game import ShogiGame
from keisei.shogi.notation.csa import read_csa, write_csa
from keisei.shogi.notation.files import format_name, left_out
from keisei.shogi.notation.headers import TimeLimit
from keisei.shogi.notation.ki2 import read_ki2, write_ki2
from keisei.shogi.notation.kif import read_kif, write_kif
from keisei.shogi.notation.record import (
    MAX_SECONDS,
    STARTPOS,
    Ending,
    GameRecord,
    RecordedMove,
    Result,
)
from keisei.shogi.notation.sfen import format_position, parse_position, parse_sfen
from keisei.shogi.types import Color, Diagram, Move
from tests.shogi.notation.random_records import (
    crowded_start,
    handicap_start,
    random_record,
    without_bookmarks,
    without_times,
)
from tests.shogi.notation.record_strategies import kept, records, time_limits


def _start(kind: str, rng: random.Random) -> Diagram:
    if kind == "usual":
        return STARTPOS
    return handicap_start(rng) if kind == "handicap" else crowded_start(rng)


@pytest.fixture(params=["usual", "handicap", "crowded"])
def record(request: pytest.FixtureRequest, seed: int) -> GameRecord:
    rng = random.Random(f"{request.param} {seed}")
    return random_record(rng, _start(request.param, rng))


@pytest.mark.parametrize("seed", range(4))
class TestRandomGames:
    def test_csa(self, record: GameRecord) -> None:
        assert read_csa(write_csa(record)) == [without_bookmarks(record)]
        assert read_csa(write_csa(record, "2.2")) == [without_bookmarks(record)]

    def test_kif(self, record: GameRecord) -> None:
        assert read_kif(write_kif(record)) == record

    def test_ki2(self, record: GameRecord) -> None:
        assert read_ki2(write_ki2(record)) == without_times(record)

    def test_through_all_formats_to_usi_and_back(self, record: GameRecord) -> None:
        [by_csa] = read_csa(write_csa(read_kif(write_kif(record))))
        by_ki2 = read_ki2(write_ki2(by_csa))
        position = format_position(by_ki2.start, by_ki2.main_line)
        assert parse_position(position) == (record.start, record.main_line)

    def test_line_breaks_of_windows_and_byte_order_marks(self, record: GameRecord) -> None:
        for read, write in ((read_kif, write_kif), (read_ki2, write_ki2)):
            text = write(record)
            assert read("\ufeff" + text.replace("\n", "\r\n")) == read(text)
        text = write_csa(record)
        assert read_csa("\ufeff" + text.replace("\n", "\r\n")) == read_csa(text)


@given(record=records())
@settings(max_examples=60, deadline=None)
def test_records_come_back_but_for_what_is_said_to_be_left_out(record: GameRecord) -> None:
    again = {
        ".csa": read_csa(write_csa(record))[0],
        ".kif": read_kif(write_kif(record)),
        ".ki2": read_ki2(write_ki2(record)),
    }
    for suffix, read in again.items():
        path = f"game{suffix}"
        assert read == kept(record, format_name(path))
        assert (read == record) is (left_out([record], path) == [])


@given(limit=time_limits)
@settings(deadline=None)
def test_time_limits_come_back(limit: TimeLimit) -> None:
    record = GameRecord(headers={"time": str(limit), "time+": str(limit)})
    assert read_csa(write_csa(record)) == [record]
    assert read_csa(write_csa(record, "2.2")) == [record]
    assert read_kif(write_kif(record)) == record


def test_late_starts_and_long_times_come_back() -> None:
    """Once refused by readers: move numbers of five digits, and the maximum time."""
    start = parse_sfen("4k4/9/9/9/9/9/9/9/4K4 b - 30000")
    move = RecordedMove(Move.from_usi("5i5h"), float(MAX_SECONDS))
    record = GameRecord(start, [move], result=Result(Ending.TIME_UP, float(MAX_SECONDS)))
    assert read_kif(write_kif(record)) == record
    assert read_ki2(write_ki2(record)) == without_times(record)
    assert read_csa(write_csa(record))[0].moves == record.moves
    assert read_csa(write_csa(record, "2.2"))[0].moves == record.moves


@pytest.mark.parametrize("seed", range(6))
def test_ki2_tells_crowded_pieces_apart(seed: int) -> None:
    """Every legal move of positions full of golds, silvers, dragons and horses."""
    rng = random.Random(seed)
    start = crowded_start(rng)
    for move in ShogiGame(start).legal_moves:
        record = GameRecord(start, [RecordedMove(move)])
        assert read_ki2(write_ki2(record)) == record


@pytest.mark.parametrize("ending", Ending)
@pytest.mark.parametrize("plies", [0, 1])
def test_endings_keep_their_winner(ending: Ending, plies: int) -> None:
    record = GameRecord.from_moves(["7g7f"][:plies], result=Result(ending))
    mover = Color(plies)
    assert record.winner == ending.winner(mover)

    [csa] = read_csa(write_csa(record))
    if ending in (Ending.DEFAULT_WIN, Ending.DEFAULT_LOSS):  # CSA has no word for these
        assert csa.result == Result(Ending.INTERRUPTED)
    else:
        assert csa == record

    # A foul of the mover himself is an illegal move in KIF and KI2: same loser, other word.
    own_foul = ending.winner(mover) is mover.opponent and "foul" in ending.value
    expected = Result(Ending.ILLEGAL_MOVE) if own_foul else record.result
    for again in (read_kif(write_kif(record)), read_ki2(write_ki2(record))):
        assert again.result == expected
        assert again.winner == record.winner


def test_ongoing_games_stay_ongoing() -> None:
    record = GameRecord.from_moves(["7g7f", "3c3d"])
    assert read_csa(write_csa(record)) == [record]
    assert read_kif(write_kif(record)) == record
    assert read_ki2(write_ki2(record)) == record


@pytest.mark.parametrize("write", [write_csa, write_kif, write_ki2])
def test_writers_notice_moves_put_in_behind_their_back(write: Callable[[GameRecord], str]) -> None:
    record = GameRecord.from_moves(["7g7f"])
    record.moves.append(RecordedMove(Move.from_usi("5e5d")))
    with pytest.raises(IllegalMoveError, match="5e"):
        write(record)


def test_empty_games() -> None:
    record = GameRecord()
    assert read_csa(write_csa(record)) == [record]
    assert read_kif(write_kif(record)) == record
    assert read_ki2(write_ki2(record)) == record

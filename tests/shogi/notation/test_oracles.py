"""Other people's libraries read what we write, and agree with what we read."""

import random
import re
from typing import Any

import pytest

from keisei.shogi.notation.csa import read_csa, write_csa
from keisei.shogi.notation.japanese import HANDICAPS
from keisei.shogi.notation.ki2 import format_move, origins, read_ki2, write_ki2
from keisei.shogi.notation.kif import read_kif, write_kif
from keisei.shogi.notation.record import (
    STARTPOS,
    Ending,
    GameRecord,
    Replay,
    Result,
)
from keisei.shogi.notation.sfen import format_sfen
from keisei.shogi.types import Color
from tests.shogi.notation.random_records import (
    crowded_start,
    random_moves,
    random_record,
    without_bookmarks,
)

SEEDS = range(4)


def usi(record: GameRecord) -> list[str]:
    return [move.usi for move in record.main_line]


@pytest.fixture(params=SEEDS)
def record(request: pytest.FixtureRequest) -> GameRecord:
    """A resigned game, from the usual start or with a handicap."""
    rng = random.Random(request.param)
    # The libraries do not know every handicap, nor bookmarks.
    start = STARTPOS if request.param % 2 else HANDICAPS[rng.choice(["角落ち", "二枚落ち"])]
    record = without_bookmarks(random_record(rng, start))
    record.result = Result(Ending.RESIGNATION, 5.0)
    return record


class TestCshogi:
    @pytest.fixture
    def cshogi(self) -> Any:
        return pytest.importorskip("cshogi")

    @pytest.mark.parametrize("version", ["2.2", "3.0"])
    def test_csa(self, cshogi: Any, record: GameRecord, version: Any) -> None:
        parser = pytest.importorskip("cshogi.CSA").Parser
        [game] = parser.parse_str(write_csa(record, version))
        self._check(cshogi, game, record)

    def test_kif(self, cshogi: Any, record: GameRecord) -> None:
        parser = pytest.importorskip("cshogi.KIF").Parser
        self._check(cshogi, parser.parse_str(write_kif(record)), record)

    def _check(self, cshogi: Any, game: Any, record: GameRecord) -> None:
        assert game.sfen == format_sfen(record.start)
        assert [cshogi.move_to_usi(move) for move in game.moves] == usi(record)
        times = [recorded.seconds for recorded in record.moves]
        assert game.times[: len(times)] == times
        assert game.endgame == "%TORYO"

    @pytest.mark.parametrize("seed", range(12))
    def test_how_pieces_are_told_apart(self, cshogi: Any, seed: int) -> None:
        """Up to two rivals the libraries agree; from three on they differ among themselves."""
        move_to_ki2 = pytest.importorskip("cshogi.KI2").move_to_ki2
        rng = random.Random(seed)
        start = crowded_start(rng)
        board, replay = cshogi.Board(format_sfen(start)), Replay(start)
        for move in random_moves(rng, start, plies=80):
            piece = replay.moving_piece(move)
            if len(origins(replay.board, piece, move.to_square)) <= 2:
                theirs = move_to_ki2(board.move_from_usi(move.usi), board)
                ours = format_move(replay, move)
                assert ours.replace("　", "") == re.sub("[▲△　]", "", theirs).replace("竜", "龍")
            board.push_usi(move.usi)
            replay.play(move)


class TestPythonShogi:
    @pytest.mark.parametrize("version", ["2.2", "3.0"])
    def test_csa(self, record: GameRecord, version: Any) -> None:
        parser = pytest.importorskip("shogi.CSA").Parser
        record.comment = ""  # it takes '* before the first move for a fault
        [game] = parser.parse_str(write_csa(record, version))
        self._check(game, record)

    def test_kif(self, record: GameRecord) -> None:
        parser = pytest.importorskip("shogi.KIF").Parser
        game = parser.parse_str(write_kif(record))
        self._check(game[0] if isinstance(game, list) else game, record)

    def _check(self, game: dict[str, Any], record: GameRecord) -> None:
        assert game["sfen"] == format_sfen(record.start)
        assert game["moves"] == usi(record)
        assert game["win"] == ("b" if record.winner is Color.BLACK else "w")


class TestRsshogi:
    @pytest.fixture
    def records(self) -> Any:
        return pytest.importorskip("rsshogi.record").Record

    @staticmethod
    def moves(game: Any) -> list[str]:
        position: str = game.to_usi_position()
        return position.partition(" moves ")[2].split()

    def test_it_reads_what_we_write(self, records: Any, record: GameRecord) -> None:
        assert self.moves(records.from_csa_str(write_csa(record, "2.2"))) == usi(record)
        assert self.moves(records.from_csa_str(write_csa(record, "3.0"))) == usi(record)
        assert self.moves(records.from_kif_str(write_kif(record))) == usi(record)
        assert self.moves(records.from_ki2_str(write_ki2(record))) == usi(record)

    def test_we_read_what_it_writes(self, records: Any, record: GameRecord) -> None:
        theirs = records.from_csa_str(write_csa(record))
        [csa] = read_csa(theirs.to_csa())
        for ours in (csa, read_kif(theirs.to_kif()), read_ki2(theirs.to_ki2())):
            assert ours.start == record.start
            assert ours.main_line == record.main_line
            assert ours.winner is record.winner
        seconds = [recorded.seconds for recorded in record.moves]
        assert [recorded.seconds for recorded in csa.moves] == seconds

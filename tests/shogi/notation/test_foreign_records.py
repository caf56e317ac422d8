"""Records of other programs: endings that nobody standardised, old encodings, and no records."""

from pathlib import Path
from typing import Any

import pytest

from keisei.errors import KeiseiError, NotationError
from keisei.play.transfer import read_session
from keisei.shogi.notation.csa import read_csa, write_csa
from keisei.shogi.notation.files import load_game, read_games
from keisei.shogi.notation.ki2 import read_ki2
from keisei.shogi.notation.kif import read_kif, write_kif
from keisei.shogi.notation.reader import decode
from keisei.shogi.notation.record import Ending, GameRecord, Result
from keisei.shogi.types import Color

MOVES = ["7g7f", "3c3d", "2g2f"]
START = "1 ７六歩(77)\n2 ３四歩(33)\n3 ２六歩(27)\n"
CSA_START = "PI\n+\n+7776FU\n-3334FU\n+2726FU\n"


def usi(record: GameRecord) -> list[str]:
    return [move.usi for move in record.main_line]


@pytest.mark.parametrize(
    ("word", "ending", "winner"),
    [
        ("入玉宣言", Ending.DECLARATION, Color.WHITE),
        ("反則手", Ending.ILLEGAL_MOVE, Color.BLACK),
        ("裁定引分", Ending.DECLARED_DRAW, None),
    ],
)
def test_more_words_of_kif(word: str, ending: Ending, winner: Color | None) -> None:
    record = read_kif(f"{START}   4 {word}       ( 0:03/00:00:03)\n")
    assert (usi(record), record.result, record.winner) == (MOVES, Result(ending, 3.0), winner)


@pytest.mark.parametrize("word", ["トライ", "接続切れ", "パス", "サーバー停止", "abandoned"])
def test_an_unknown_word_of_kif_keeps_the_moves(word: str) -> None:
    record = read_kif(f"{START}   4 {word}         ( 0:03/00:00:03)\n*さようなら\nまで3手で{word}")
    assert usi(record) == MOVES
    assert record.result == Result(Ending.INTERRUPTED, 3.0, f"{word}\nさようなら")
    assert read_kif(write_kif(record)) == record
    assert read_csa(write_csa(record)) == [record]


def test_what_follows_an_unknown_word_is_kept_as_text() -> None:
    record = read_kif(f"{START}4 パス\n5 ２五歩(26)\n*ここまで\n変化：2手\n2 ８四歩(83)\n")
    assert usi(record) == MOVES
    assert record.result is not None
    assert record.result.comment == "パス\n5 ２五歩(26)\nここまで"
    assert [move.move.usi for move in record.variations[0].moves] == ["8c8d"]


@pytest.mark.parametrize(
    ("line", "ending"),
    [
        ("まで3手で連続王手の千日手により先手の勝ち", Ending.WHITE_FOUL),
        ("まで3手で王手千日手により後手の勝ち", Ending.BLACK_FOUL),
        ("まで3手で裁定引分", Ending.DECLARED_DRAW),
    ],
)
def test_more_closing_lines(line: str, ending: Ending) -> None:
    assert read_kif(START + line).result == Result(ending)
    assert read_ki2(f"▲７六歩 △３四歩 ▲２六歩\n{line}").result == Result(ending)


@pytest.mark.parametrize("line", ["まで3手で満足", "まで3手で連続王手の千日手"])
def test_an_unknown_closing_line_is_kept_as_a_comment(line: str) -> None:
    result = Result(Ending.INTERRUPTED, comment=line)
    assert read_kif(START + line).result == result
    assert read_ki2(f"▲７六歩 △３四歩 ▲２六歩\n{line}").result == result


def test_an_unknown_word_of_ki2() -> None:
    record = read_ki2("▲７六歩 △３四歩 ▲２六歩 △パス ▲２五歩\n*ここまで")
    assert usi(record) == MOVES
    assert record.result == Result(Ending.INTERRUPTED, comment="パス\n▲２五歩\nここまで")


@pytest.mark.parametrize("word", ["%NANI", "%PASS", "%DISCONNECTED", "%%CHAT"])
def test_an_unknown_word_of_csa_keeps_the_moves(word: str) -> None:
    [record] = read_csa(f"{CSA_START}{word}\nT3\n-8384FU\n'*the end\n")
    assert usi(record) == MOVES
    assert record.result == Result(Ending.INTERRUPTED, 3.0, f"{word}\n-8384FU\nthe end")
    assert read_csa(write_csa(record)) == [record]


@pytest.mark.parametrize(
    ("moves", "loser"),
    [
        # White's king walks between two checks of Black's rook: the side to move is in check ...
        ("+2838HI\n-3121OU\n+3828HI\n-2131OU\n" * 3 + "+2838HI\n", Color.BLACK),
        # ... or has just evaded it.
        ("+2838HI\n-3121OU\n+3828HI\n-2131OU\n" * 3, Color.BLACK),
    ],
)
def test_perpetual_check_of_csa_servers(moves: str, loser: Color) -> None:
    [record] = read_csa(f"P-31OU\nP+28HI59OU\n+\n{moves}%OUTE_SENNICHITE\n")
    assert record.winner is loser.opponent
    assert record.result == Result((Ending.BLACK_FOUL, Ending.WHITE_FOUL)[loser])


def test_a_misspelt_move_is_no_ending() -> None:
    for move in ("七六歩(77)", "76", "P-7f", "同"):
        with pytest.raises(NotationError):
            read_kif(f"{START}4 {move}\n")


@pytest.mark.parametrize("suffix", [".kif", ".ki2", ".csa"])
def test_euc_jp(tmp_path: Path, suffix: str) -> None:
    texts = {
        ".kif": f"先手：羽生善治\n後手：佐藤康光\n{START}4 投了\n",
        ".ki2": "先手：羽生善治\n▲７六歩 △３四歩 ▲２六歩\n",
        ".csa": f"N+羽生善治\n{CSA_START}%TORYO\n",
    }
    path = tmp_path / f"game{suffix}"
    path.write_bytes(texts[suffix].encode("euc_jp"))
    record = load_game(path)
    assert (record.black, usi(record)) == ("羽生善治", MOVES)


@pytest.mark.parametrize(
    ("encoding", "declared"),
    [
        *(("utf-8", name) for name in ("", "UTF-8", "EUC-JP")),
        *(("cp932", name) for name in ("", "UTF-8", "SHIFT_JIS", "EUC-JP")),
        *(("euc_jp", name) for name in ("", "UTF-8", "EUC-JP")),
    ],
)
def test_encodings_are_found_out(encoding: str, declared: str) -> None:
    text = "".join(f"先手：{name}\n" for name in ("羽生善治", "やまだ", "ヤマダ", "☆"))
    if declared:
        text = f"#KIF version=2.0 encoding={declared}\n{text}"
    assert decode(text.encode(encoding)) == text


@pytest.mark.parametrize(
    "text",
    [
        "https://lishogi.org/abcdefgh",
        "https://lishogi.org/abcdefgh\nhttps://81dojo.com/kifuviewer.html?kid=1",
        "Dear friend: how are you?",
        "*only a comment",
        "1 apple\n2 pears",
        "まで",
        "key：value",
        "[Result \"1-0\"]",
        "\n\n",
    ],
)  # fmt: skip
@pytest.mark.parametrize("suffix", ["", ".txt", ".kif", ".ki2", ".csa", ".sfen", ".psn"])
def test_what_is_no_record_is_refused(text: str, suffix: str) -> None:
    """Before, a pasted link was read as a header without moves."""
    with pytest.raises(KeiseiError):
        read_session(text.encode(), f"game{suffix}")
    if suffix:
        with pytest.raises(KeiseiError):
            read_games(text.encode(), f"game{suffix}")


@pytest.mark.parametrize(
    "text", ["先手：あかね", "手合割：角落ち", "後手番", "手数----指手---------消費時間--"]
)
def test_a_known_header_or_a_position_is_a_record(text: str) -> None:
    assert read_session(text.encode()).length == 0


class TestOtherPrograms:
    """Files that cshogi and rsshogi write."""

    @pytest.mark.parametrize(
        ("reason", "ending"),
        [
            ("resign", Ending.RESIGNATION),
            ("win", Ending.DECLARATION),
            ("draw", Ending.IMPASSE),
            ("sennichite", Ending.REPETITION),
            ("illegal_win", Ending.BLACK_FOUL),
            ("illegal_lose", Ending.ILLEGAL_MOVE),
        ],
    )
    def test_endings_of_cshogi(self, tmp_path: Path, reason: str, ending: Ending) -> None:
        cshogi = pytest.importorskip("cshogi")
        exporter = pytest.importorskip("cshogi.KIF").Exporter(str(tmp_path / "game.kif"))
        exporter.header(["あかね", "ぼたん"])
        board = cshogi.Board()
        for move in MOVES:
            exporter.move(board.push_usi(move))
        exporter.end(reason)
        exporter.close()
        record = load_game(tmp_path / "game.kif")
        assert usi(record) == MOVES
        assert record.result is not None
        assert record.result.ending is ending

    @pytest.mark.parametrize("name", ["トライ", "接続切れ", "パス", "謎の終局"])
    def test_words_of_rsshogi(self, name: str) -> None:
        records: Any = pytest.importorskip("rsshogi.record")
        game = records.Record.from_usi_position(f"startpos moves {' '.join(MOVES)}")
        entry = records.SpecialMoveEntry(
            "UNKNOWN", records.GameResult.PAUSED, unknown_name=name, raw=name
        )
        game.set_main_terminal(entry)
        record = read_kif(game.to_kif())
        assert usi(record) == MOVES
        assert record.result is not None
        assert name in record.result.comment

    def test_results_of_rsshogi(self) -> None:
        records: Any = pytest.importorskip("rsshogi.record")
        results = [name for name in dir(records.GameResult) if name.isupper()]
        written = 0
        for result in results:
            game = records.Record.from_usi_position(f"startpos moves {' '.join(MOVES)}")
            entry = records.SpecialMoveEntry.from_result(getattr(records.GameResult, result))
            try:
                game.set_main_terminal(entry)
                texts = {"kif": game.to_kif(), "csa": game.to_csa(), "ki2": game.to_ki2()}
            except ValueError:  # it cannot write this one after three moves
                continue
            for suffix, text in texts.items():
                [record] = read_games(text.encode(), f"game.{suffix}")
                assert usi(record) == MOVES
                if suffix != "ki2":
                    assert record.result is not None
            written += 1
        assert written >= 8

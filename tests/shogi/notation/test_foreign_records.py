"""Records of other programs: endings that nobody standardised, old encodings, and no records."""

from pathlib import Path
from typing import Any

import pytest

from keisei.errors import KeiseiError, NotationError
from keisei.play.transfer import read_session
from keisei.shogi.notation.csa import read_csa, write_csa
from keisei.shogi.notation.files import load_game, read_games, read_usi
from keisei.shogi.notation.ki2 import read_ki2
from keisei.shogi.notation.kif import read_kif, write_kif
from keisei.shogi.notation.reader import decode
from keisei.shogi.notation.record import Ending, GameRecord, Result
from keisei.shogi.notation.western import read_western
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


KNOWN = {
    "時間切れ負け": (Ending.TIME_UP, ""),
    "入玉勝ち宣言": (Ending.DECLARATION, ""),
    "反則負け(二歩)": (Ending.ILLEGAL_MOVE, "(二歩)"),
    "反則負け（二歩）": (Ending.ILLEGAL_MOVE, "（二歩）"),
    "投了 (時間切れ)": (Ending.RESIGNATION, "(時間切れ)"),
    "投了です": (Ending.RESIGNATION, "です"),
    "中断(封じ手)": (Ending.INTERRUPTED, "(封じ手)"),
    "切れ負け２": (Ending.TIME_UP, "２"),
}
"""Known words with more behind them."""

UNKNOWN = (
    *("Time up", "time-out2", "10秒切れ", "２回目の中断", "15手詰", "★終局", "「中断」"),
    *("(中断)", "一時中断", "同時切断", "同時打ち切り", "二歩", "三十分経過", "サーバー 停止", "*"),
    *("%TORYO", "--", "投 了", "終局：投了"),
    *("abandoned", "Sente disconnected", "--Adjourned--", "接続切れ"),
)  # fmt: skip

MISSPELT = (
    *("七六歩(77)", "76", "７六", "P-7f", "同", "同鋸(31)", "同　鋸打", "３四鋸(33)", "34"),
    *("3c3d", "3c3d+", "-3334FU", "3334FU", "p-3d", "P34", "Q-3d", "+P-3d", "P", "３四歩"),
    *("三四歩", "3 四歩(33)", "▲３四歩(33)", "△３四鋸(33)", "歩(33)", "３歩(33)", "歩３四", "P*3d"),
)  # fmt: skip


@pytest.mark.parametrize("time", ["", "       ( 0:03/00:00:03)", "( 0:03/00:00:03)+"])
@pytest.mark.parametrize("word", KNOWN)
def test_what_follows_a_known_word_is_a_comment(word: str, time: str) -> None:
    """Before, the whole game was refused."""
    ending, comment = KNOWN[word]
    record = read_kif(f"{START}   4 {word}{time}\n*さようなら\n")
    seconds = 3.0 if time else None
    text = "\n".join(text for text in (comment, "さようなら") if text)
    assert (usi(record), record.result) == (MOVES, Result(ending, seconds, text))
    assert read_kif(write_kif(record)) == record
    record = read_ki2(f"▲７六歩 △３四歩 ▲２六歩\n{word}\n")
    assert (usi(record), record.result) == (MOVES, Result(ending, comment=comment))


@pytest.mark.parametrize("word", UNKNOWN)
def test_whatever_is_no_move_ends_the_game(word: str) -> None:
    """Before, signs, blanks, digits and the first characters of squares refused the whole game."""
    for time, seconds in (("", None), (" ( 0:03/00:00:03)", 3.0), ("  ( 0:03/00:00:03)  +", 3.0)):
        record = read_kif(f"{START}4 {word}{time}\n5 ２五歩(26)\n")
        result = Result(Ending.INTERRUPTED, seconds, f"{word}\n5 ２五歩(26)")
        assert (usi(record), record.result) == (MOVES, result)
        assert read_kif(write_kif(record)) == record
    result = Result(Ending.INTERRUPTED, comment=word)
    if not word.startswith("*"):  # which begins a comment there
        for text in (f" {word}", f"\n{word}", f" △{word}"):
            if not (text.startswith(" △") and word[0] in "12２同"):
                record = read_ki2(f"▲７六歩 △３四歩 ▲２六歩{text}")
                assert (usi(record), record.result) == (MOVES, result)


@pytest.mark.parametrize("move", MISSPELT)
def test_misspelt_moves_of_all_notations_are_no_endings(move: str) -> None:
    with pytest.raises(NotationError):
        read_kif(f"{START}4 {move} ( 0:03/00:00:03)\n")
    if move not in ("34", "３四歩", "３歩(33)"):  # legal there, or with another fault
        with pytest.raises(NotationError):
            read_ki2(f"▲７六歩 △３四歩 ▲２六歩 {move}")
    if move.isascii() and move != "P-3d":
        with pytest.raises(NotationError):
            read_western(f"1. P-7f P-3d 2. P-2f {move}")


@pytest.mark.parametrize(
    ("text", "comment"),
    [
        ("abandoned", "abandoned"),
        ("*", "*"),
        ("--Adjourned--", "--Adjourned--"),
        ("Sente disconnected {bad network}", "Sente disconnected\nbad network"),
        ("\nWhite has left the game\n3. P-2e", "White has left the game\n3. P-2e"),
        ("投了", "投了"),
    ],
)
def test_words_in_western_records(text: str, comment: str) -> None:
    record = read_western(f"Black: Akane\n1. P-7f P-3d 2. P-2f {text}\n")
    assert (usi(record), record.result) == (MOVES, Result(Ending.INTERRUPTED, comment=comment))


def test_what_follows_a_known_word_of_western_records() -> None:
    record = read_western("1. P-7f P-3d 2. P-2f White resigns, on time\nThanks to all.\n")
    assert record.result == Result(Ending.RESIGNATION, comment="on time\nThanks to all.")
    # Full-width brackets begin no comment of their own.
    record = read_western("1. P-7f P-3d 2. P-2f White resigns （時間） {late}")
    assert record.result == Result(Ending.RESIGNATION, comment="（時間）\nlate")
    with pytest.raises(NotationError, match="the game ended before this"):
        read_western("1. P-7f P-3d 2. P-2f resigns 3. P-2e")
    with pytest.raises(NotationError, match="a move such as"):
        read_western("1. P-7f oops P-3d")


@pytest.mark.parametrize(
    ("words", "result"),
    [
        ("resign", Result(Ending.RESIGNATION)),
        ("Resign", Result(Ending.RESIGNATION)),
        ("win", Result(Ending.DECLARATION)),
        ("time up  # late", Result(Ending.INTERRUPTED, comment="time up")),
        ("中断", Result(Ending.INTERRUPTED, comment="中断")),
        ("%CHUDAN", Result(Ending.INTERRUPTED, comment="%CHUDAN")),
    ],
)
def test_words_in_usi_records(words: str, result: Result) -> None:
    moves = " ".join(MOVES)
    for command in (
        f"startpos moves {moves} {words}",
        f"position startpos moves {moves}  {words} ",
    ):
        [record] = read_usi(command)
        assert (usi(record), record.result) == (MOVES, result)


def test_misspelt_moves_in_usi_records_are_no_endings() -> None:
    assert read_usi("startpos moves resign")[0].result == Result(Ending.RESIGNATION)
    for words in ("3c3", "P*", "P-3d", "七六歩", "7g7f x9", "oops 3c3d", "resign 3c3d"):
        with pytest.raises(NotationError):
            read_usi(f"startpos moves 7g7f {words}")
    for command in ("startpos moves oops", "startpos resign", "resign"):
        with pytest.raises(NotationError):
            read_usi(command)


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

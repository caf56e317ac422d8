"""KIF: headers, diagrams, moves, variations, and the errors for faulty files."""

import pytest

from keisei.errors import NotationError
from keisei.shogi.notation.japanese import HANDICAPS
from keisei.shogi.notation.kif import read_kif, write_kif
from keisei.shogi.notation.record import (
    STARTPOS,
    Ending,
    GameRecord,
    RecordedMove,
    Result,
    Variation,
)
from keisei.shogi.notation.sfen import format_sfen, parse_sfen
from keisei.shogi.types import Color, Move

SAMPLE = """\
# ---- a line for people ----
開始日時：2026/04/05(日) 10:00:00
終了日時：2026/04/05
棋戦：春の部：第1局
場所：京都
持ち時間：各1時間30分
備考：一行目
備考：二行目
手合割：平手
先手：あかね
後手：ぼたん
手数----指手---------消費時間--
*始まる前に
   1 ７六歩(77)   ( 0:16/00:00:16)
*いつもの手
* 二行
&しおり
   2 ３四歩(33)   ( 0:00/00:00:00)+
   3 ２二角成(88) ( 1:05/00:01:21)
   4 同　銀(31)   ( 1:00:02/01:00:02)
   5 ５五角打     ( 0:03/00:01:24)
   6 ８四歩(83)
   7 ２二角成(55)
   8 投了         ( 0:09/01:00:11)
*ありがとうございました
まで7手で先手の勝ち

変化：2手
*別の手
   2 ８四歩(83)
   3 ２六歩(27)+
   4 中断
まで3手で中断

変化：3手
   3 ６八飛(28)
"""


def read_moves(*lines: str) -> GameRecord:
    return read_kif("\n".join(f"{number} {line}" for number, line in enumerate(lines, start=1)))


def fault(text: str) -> NotationError:
    with pytest.raises(NotationError) as caught:
        read_kif(text)
    return caught.value


def test_sample_game() -> None:
    record = read_kif(SAMPLE)
    assert record.start == STARTPOS
    assert record.headers == {
        "start_time": "2026/04/05 10:00:00",
        "end_time": "2026/04/05",
        "event": "春の部：第1局",
        "site": "京都",
        "time": "5400+0+0",
        "note": "一行目\n二行目",
        "black": "あかね",
        "white": "ぼたん",
    }
    assert record.comment == "始まる前に"
    assert record.moves[:4] == [
        RecordedMove(Move.from_usi("7g7f"), 16.0, "いつもの手\n 二行", "しおり"),
        RecordedMove(Move.from_usi("3c3d"), 0.0),
        RecordedMove(Move.from_usi("8h2b+"), 65.0),
        RecordedMove(Move.from_usi("3a2b"), 3602.0),
    ]
    assert [recorded.move.usi for recorded in record.moves[4:]] == ["B*5e", "8c8d", "5e2b+"]
    assert record.result == Result(Ending.RESIGNATION, 9.0, "ありがとうございました")
    assert record.winner is Color.BLACK
    first, second = record.variations
    assert first == Variation(
        2,
        [RecordedMove(Move.from_usi(usi)) for usi in ("8c8d", "2g2f")],
        Result(Ending.INTERRUPTED),
        "別の手",
    )
    assert second == Variation(3, [RecordedMove(Move.from_usi("2h6h"))])
    assert read_kif(write_kif(record)) == record


def test_what_is_written() -> None:
    record = read_kif(SAMPLE)
    assert write_kif(record).splitlines()[7:] == [
        "手合割：平手",
        "先手：あかね",
        "後手：ぼたん",
        "手数----指手---------消費時間--",
        "*始まる前に",
        "   1 ７六歩(77)   ( 0:16/00:00:16)",
        "*いつもの手",
        "* 二行",
        "&しおり",
        "   2 ３四歩(33)   ( 0:00/00:00:00)+",
        "   3 ２二角成(88) ( 1:05/00:01:21)",
        "   4 同　銀(31)   (60:02/01:00:02)",
        "   5 ５五角打     ( 0:03/00:01:24)",
        "   6 ８四歩(83)",
        "   7 ２二角成(55)",
        "   8 投了         ( 0:09/01:00:11)",
        "*ありがとうございました",
        "まで7手で先手の勝ち",
        "",
        "変化：2手",
        "*別の手",
        "   2 ８四歩(83)",
        "   3 ２六歩(27)   +",
        "   4 中断",
        "まで3手で中断",
        "",
        "変化：3手",
        "   3 ６八飛(28)",
    ]


@pytest.mark.parametrize(
    "line",
    [
        "７六歩(77)",
        "76歩(77)",
        "７6歩（７７）",
        "▲７六歩(77)",
        "☗ ７六歩 (77)",
        "７六歩不成(77)",
        "７六歩(77)　( 0:01/00:00:01)",
        "７六歩(77) (0:01/)",
        "７六歩(77)( 0:01)+",
        "７六歩( 7 7 )   (00:00:01/00:00:01) +",
    ],
)
def test_many_ways_to_write_a_move(line: str) -> None:
    assert read_moves(line).main_line == [Move.from_usi("7g7f")]


def test_full_width_numbers_and_blanks() -> None:
    assert (
        len(
            read_kif(
                "　１　７六歩（７７）\n　２　３四歩（３３）（　０：０１／００：００：０１）"
            ).moves
        )
        == 2
    )


def test_same_square() -> None:
    for same in ("同　歩(23)", "同歩(23)", "同 歩(23)", "２四同歩(23)"):
        record = read_moves(
            "２六歩(27)", "８四歩(83)", "２五歩(26)", "８五歩(84)", "２四歩(25)", same
        )
        assert record.main_line[-1] == Move.from_usi("2c2d")


def test_promoted_pieces_by_all_names() -> None:
    start = parse_sfen("4k4/9/9/2+B+R+S+N+L2/9/9/9/9/4K4 b - 1")
    for move, names in {
        "7d8c": ("馬",),
        "6d6c": ("龍", "竜"),
        "5d5c": ("成銀", "全"),
        "4d4c": ("成桂", "圭"),
        "3d3c": ("成香", "杏"),
        "5i5h": ("玉", "王"),
    }.items():
        text = write_kif(GameRecord.from_moves([move], start=start))
        assert names[0] in text.splitlines()[-1]
        for name in names:
            assert read_kif(text.replace(names[0] + "(", name + "(")).main_line[0].usi == move


@pytest.mark.parametrize("name", HANDICAPS)
def test_handicaps(name: str) -> None:
    record = read_kif(f"手合割：{name}\n下手：A\n上手：B\n")
    assert record.start == HANDICAPS[name]
    assert record.start.turn is (Color.BLACK if name == "平手" else Color.WHITE)
    assert (record.black, record.white) == ("A", "B")
    again = write_kif(record)
    assert f"手合割：{'左七枚落ち' if name == '七枚落ち' else name}\n" in again
    assert ("先手：A\n後手：B\n" if name == "平手" else "下手：A\n上手：B\n") in again
    assert read_kif(again) == record


@pytest.mark.parametrize(
    ("name", "sfen"),
    [
        ("香落ち", "lnsgkgsn1/1r5b1"),
        ("右香落ち", "1nsgkgsnl/1r5b1"),
        ("飛香落ち", "lnsgkgsn1/7b1"),
        ("三枚落ち", "lnsgkgsn1/9"),
        ("五枚落ち", "2sgkgsn1/9"),
        ("左五枚落ち", "1nsgkgs2/9"),
        ("左七枚落ち", "2sgkg3/9"),
        ("右七枚落ち", "3gkgs2/9"),
        ("十枚落ち", "4k4/9"),
    ],
)
def test_left_and_right_are_whites(name: str, sfen: str) -> None:
    assert format_sfen(HANDICAPS[name]).startswith(f"{sfen}/ppppppppp/")


@pytest.mark.parametrize("written", ["飛車落ち", "飛車落", "飛車落ち　　", " 飛車落 "])
def test_loose_handicap_names(written: str) -> None:
    assert read_kif(f"手合割：{written}").start == HANDICAPS["飛車落ち"]


def test_handicap_games_end_with_the_right_names() -> None:
    record = GameRecord.from_moves(
        ["3c3d"], start=HANDICAPS["飛車落ち"], result=Result(Ending.RESIGNATION)
    )
    assert write_kif(record).endswith("   2 投了\nまで1手で上手の勝ち\n")
    assert read_kif(write_kif(record)) == record


DIAGRAM = """\
手合割：その他
後手の持駒：飛二　角　歩十二
  ９ ８ ７ ６ ５ ４ ３ ２ １
+---------------------------+
| ・ ・ ・ ・ ・ ・ ・v桂v玉|一
| ・ ・ ・ ・ ・ ・ ・v銀 ・|二
| ・ ・ ・ ・ ・ ・v歩 ・v歩|三
| ・ ・ ・ ・ ・ ・ ・ ・ ・|四
| ・ ・ ・ ・ ・ ・ ・ ・ ・|五
| ・ ・ ・ ・ 馬 ・ ・ ・ ・|六
| ・ ・ ・v全 ・v圭 ・v杏 ・|七
| ・ 玉 ・ ・ ・ ・ ・ ・ ・|八
| ・ ・ ・ ・ ・ ・ ・ ・ ・|九
+---------------------------+
先手の持駒：金　銀2 桂1
手数＝30　△１三歩　まで
後手番
先手：あかね
"""


class TestDiagrams:
    SFEN = "7nk/7s1/6p1p/9/9/4+B4/3+s1+n1+l1/1K7/9 w G2SN2rb12p 31"

    def test_reading(self) -> None:
        record = read_kif(DIAGRAM)
        assert format_sfen(record.start) == self.SFEN
        assert record.headers == {"black": "あかね"}

    def test_moves_are_numbered_from_one(self) -> None:
        assert len(read_kif(f"{DIAGRAM}1 １四歩(13)\n2 １二金打").moves) == 2

    def test_writing(self) -> None:
        record = GameRecord(parse_sfen(self.SFEN))
        text = write_kif(record)
        assert "後手の持駒：飛二　角　歩十二\n" in text
        assert "| ・ ・ ・v全 ・v圭 ・v杏 ・|七\n" in text
        assert "先手の持駒：金　銀二　桂\n手数＝30　まで\n後手番\n" in text
        assert read_kif(text) == record

    def test_empty_hands(self) -> None:
        record = GameRecord(parse_sfen("4k4/9/9/9/9/9/9/9/4K4 b - 1"))
        assert write_kif(record).count("の持駒：なし\n") == 2
        assert read_kif(write_kif(record)) == record
        assert read_kif(write_kif(record).replace("なし", "")) == record

    def test_turn_as_a_header(self) -> None:
        text = DIAGRAM.replace("後手番", "手番：後手")
        assert format_sfen(read_kif(text).start) == self.SFEN

    @pytest.mark.parametrize("names", [("下手", "上手")])
    def test_handicap_names(self, names: tuple[str, str]) -> None:
        text = DIAGRAM.replace("先手", names[0]).replace("後手", names[1])
        assert format_sfen(read_kif(text).start) == self.SFEN

    @pytest.mark.parametrize(
        ("line", "column", "message", "old", "new"),
        [
            (
                5,
                2,
                "this rank has 8 squares",
                "| ・ ・ ・ ・ ・ ・ ・v桂v玉|",
                "| ・ ・ ・ ・ ・ ・ ・v桂|",
            ),
            (
                5,
                2,
                "is not a square; expected ' ・', ' 歩' or 'v歩'",
                "| ・ ・ ・ ・ ・ ・ ・v桂v玉",
                "|x・ ・ ・ ・ ・ ・ ・v桂v玉",
            ),
            (5, 16, "is not a square", "v桂v玉|一", "ww・|一"),
            (5, 19, "must be between two", "v桂v玉|一", "v桂v玉"),
            (12, 1, "the diagram has 8 ranks", "| ・ ・ ・ ・ ・ ・ ・ ・ ・|九\n", ""),
            (14, 1, "a tenth rank", "|九\n", "|九\n| ・ ・ ・ ・ ・ ・ ・ ・ ・|十\n"),
            (15, 7, "'王　銀2' is not a piece in hand", "金　銀", "王　銀"),
            (15, 7, "is not a piece in hand", "金　銀", "金二十　銀"),
            (
                13,
                1,
                "no game can start here: White has two pawns on file 3",
                "馬 ・ ・ ・",
                "馬 ・v歩 ・",
            ),
            (13, 1, "no game can start here: 20 pieces of kind P", "歩十二", "歩十八"),
        ],
    )
    def test_faults(self, line: int, column: int, message: str, old: str, new: str) -> None:
        assert DIAGRAM.count(old) == 1
        error = fault(DIAGRAM.replace(old, new))
        assert (error.line, error.column) == (line, column)
        assert message in str(error)

    def test_side_not_to_move_in_check(self) -> None:
        error = fault(
            write_kif(GameRecord(parse_sfen("4k4/9/9/9/9/9/9/9/4K4 b - 1"))).replace(
                "| ・ ・ ・ ・ ・ ・ ・ ・ ・|二", "| ・ ・ ・ ・ 金 ・ ・ ・ ・|二"
            )
        )
        assert "White is in check and it is not White's turn" in str(error)

    def test_the_side_to_move_of_a_named_handicap(self) -> None:
        record = read_kif(DIAGRAM.replace("その他", "飛車落ち").replace("後手番\n", ""))
        assert format_sfen(record.start) == self.SFEN

    def test_the_side_to_move_without_a_diagram(self) -> None:
        record = read_kif("手合割：平手\n後手番\n1 ３四歩(33)")
        assert record.start.turn is Color.WHITE
        assert read_kif(write_kif(record)) == record

    def test_hands_without_a_diagram(self) -> None:
        assert read_kif("先手の持駒：なし\n手合割：平手").start == STARTPOS
        error = fault("手合割：平手\n先手の持駒：金")
        assert (error.line, error.column) == (2, 1)
        assert "pieces in hand need a diagram" in str(error)

    def test_other_start_without_a_diagram(self) -> None:
        error = fault("先手：A\n手合割：その他\n1 ７六歩(77)")
        assert (error.line, error.column) == (2, 1)
        assert "needs a diagram" in str(error)


@pytest.mark.parametrize(
    ("written", "kept", "limit"),
    [
        ("25分", "25分", "1500+0+0"),
        ("各３０分", "30分", "1800+0+0"),
        ("1時間30分", "1時間30分", "5400+0+0"),
        ("10分切れ負け", "10分", "600+0+0"),
        ("30分+30秒", "30分+30秒", "1800+30+0"),
        ("5分＋10秒加算", "5分+10秒加算", "300+0+10"),
        ("0分+30秒", "0分+30秒", "0+30+0"),
        ("1分30秒+10秒+5秒加算", "1分30秒+10秒+5秒加算", "90+10+5"),
        ("600+0+5", "10分+5秒加算", "600+0+5"),
    ],
)
def test_time_limits(written: str, kept: str, limit: str) -> None:
    record = read_kif(f"持ち時間：{written}\n後手持ち時間：{written}\n手合割：平手")
    assert record.headers == {"time": limit, "time-": limit}
    assert f"持ち時間：{kept}\n後手持ち時間：{kept}\n" in write_kif(record)
    assert read_kif(write_kif(record)) == record


def test_free_text_stays_under_its_own_name() -> None:
    record = read_kif("持ち時間：たっぷり\n秒読み：30秒\n開始日時：春\n作者：わたし\n手合割：平手")
    assert record.headers == {
        "持ち時間": "たっぷり",
        "秒読み": "30秒",
        "start_time": "春",
        "作者": "わたし",
    }
    assert read_kif(write_kif(record)) == record


@pytest.mark.parametrize(
    ("word", "ending"),
    [
        ("投了", Ending.RESIGNATION),
        ("中断", Ending.INTERRUPTED),
        ("封じ手", Ending.INTERRUPTED),
        ("千日手", Ending.REPETITION),
        ("持将棋", Ending.IMPASSE),
        ("詰み", Ending.MATE),
        ("不詰", Ending.NO_MATE),
        ("切れ負け", Ending.TIME_UP),
        ("反則勝ち", Ending.BLACK_FOUL),
        ("反則負け", Ending.ILLEGAL_MOVE),
        ("入玉勝ち", Ending.DECLARATION),
        ("最大手数", Ending.MAX_MOVES),
        ("不戦勝", Ending.DEFAULT_WIN),
        ("不戦敗", Ending.DEFAULT_LOSS),
    ],
)
def test_words_that_end_a_game(word: str, ending: Ending) -> None:
    assert read_moves("７六歩(77)", f"{word} ( 0:02/00:00:02)").result == Result(ending, 2.0)


@pytest.mark.parametrize(
    ("line", "ending"),
    [
        ("まで1手で先手の勝ち", Ending.RESIGNATION),
        ("まで１手で先手勝ち。", Ending.RESIGNATION),
        ("まで、1手にて後手投了", Ending.RESIGNATION),
        ("まで1手で下手の勝ち", Ending.RESIGNATION),
        ("まで1手で時間切れにより先手の勝ち", Ending.TIME_UP),
        ("まで1手で後手の切れ負け", Ending.TIME_UP),
        ("まで1手で後手の反則負け", Ending.ILLEGAL_MOVE),
        ("まで1手で先手の反則勝ち", Ending.ILLEGAL_MOVE),
        ("まで1手で後手の反則勝ち", Ending.BLACK_FOUL),
        ("まで1手で先手の反則負け", Ending.BLACK_FOUL),
        ("まで1手で後手の入玉勝ち", Ending.DECLARATION),
        ("まで1手で千日手", Ending.REPETITION),
        ("まで1手で中断", Ending.INTERRUPTED),
        ("まで1手で詰み", Ending.MATE),
        ("まで1手詰", Ending.MATE),
        ("まで1手で不詰", Ending.NO_MATE),
    ],
)
def test_closing_lines_tell_the_ending_where_nothing_else_does(line: str, ending: Ending) -> None:
    assert read_kif(f"1 ７六歩(77)\n{line}").result == Result(ending)


def test_closing_lines_are_not_asked_where_a_word_has_said_it() -> None:
    assert read_kif("1 ７六歩(77)\n2 中断\nまで1手で誰かの勝ち").result == Result(
        Ending.INTERRUPTED
    )


@pytest.mark.parametrize(
    ("line", "column", "message", "text"),
    [
        (
            2,
            3,
            "３五歩(33) is illegal: 3c3e: a pawn cannot go from 3c to 3e",
            "1 ７六歩(77)\n2 ３五歩(33)",
        ),
        (2, 1, "this is move 2, not 3", "1 ７六歩(77)\n3 ３四歩(33)"),
        (1, 3, "同 (the same square) needs a move before it", "1 同　歩(77)"),
        (2, 3, "同 means the target of the move before", "1 ７六歩(77)\n2 ３四同歩(33)"),
        (1, 3, "a square such as ７六, or 同, expected, not '七六歩(77)'", "1 七六歩(77)"),
        (1, 5, "a piece such as 歩 or 成銀 expected, not '石(77)'", "1 ７六石(77)"),
        (1, 6, "the origin in brackets, as in (77), or 打 expected", "1 ７六歩"),
        (1, 6, "the origin in brackets", "1 ７六歩(70)"),
        (1, 6, "the origin in brackets", "1 ７六歩( 0:01/00:00:01)"),
        (1, 6, "Black has no piece on 55", "1 ７六歩(55)"),
        (1, 6, "Black has no piece on 33", "1 ７六歩(33)"),
        (1, 5, "the piece on 77 is 歩, not 金", "1 ７六金(77)"),
        (1, 6, "the piece is already on this square", "1 ７七歩(77)"),
        (1, 3, "neither 7g nor 7f is in the promotion zone", "1 ７六歩成(77)"),
        (1, 3, "Black has no bishop in hand", "1 ５五角打"),
        (1, 5, "打 drops a piece from the hand, unpromoted", "1 ５五馬打"),
        (1, 5, "打 drops a piece from the hand, unpromoted", "1 ５五角成打"),
        (1, 11, "'junk' after the move; only a time", "1 ７六歩(77) junk"),
        (1, 11, "after the move", "1 ７六歩(77) (x)"),
        (1, 11, "6000000 seconds; a move can take at most", "1 ７六歩(77) (99999:60)"),
        (1, 3, "it is Black's turn: expected ▲, not △", "1 △７六歩(77)"),
        (2, 1, "the game ended before this (resignation)", "1 投了\n2 ７六歩(77)"),
        (2, 1, "the number of a move expected, not '先手：A'", "1 ７六歩(77)\n先手：A"),
        (2, 1, "is neither a header such as 先手：名前 nor a move", "先手：A\nhello"),
        (
            2,
            1,
            "'王様落' is not a handicap; expected one of 平手 香落ち",
            "先手：A\n手合割：王様落",
        ),
        (1, 1, "手番：'だれか'; expected 先手 or 後手", "手番：だれか"),
        (
            2,
            4,
            "a variation at move 3, but the line before it has 1 moves",
            "1 ７六歩(77)\n変化：3手",
        ),
        (1, 4, "a variation at move 0", "変化：0手"),
        (
            2,
            1,
            "White cannot have won by resignation when it is White's turn",
            "1 ７六歩(77)\nまで1手で後手の勝ち",
        ),
    ],
)
def test_faults(line: int, column: int, message: str, text: str) -> None:
    error = fault(text)
    assert (error.line, error.column) == (line, column)
    assert message in str(error)


class TestFouls:
    """An illegal move that lost the game is in the file, but not among the moves."""

    FOUL = "1 ７六歩(77)\n2 ３五歩(33) ( 0:07/00:00:07)\n"
    REASON = "3c3e: a pawn cannot go from 3c to 3e"

    @pytest.mark.parametrize(
        "ending",
        [
            "3 反則勝ち",
            "3 反則勝ち ( 0:00/00:00:00)\nまで2手で先手の反則勝ち",
            "3 反則負け",
            "まで2手で先手の反則勝ち",
            "まで2手で後手の反則負け",
        ],
    )
    def test_legal_part_result_and_reason_are_kept(self, ending: str) -> None:
        record = read_kif(f"{self.FOUL}*二段跳び\n{ending}\n*残念")
        comment = f"illegal move {self.REASON}\n二段跳び\n残念"
        assert record.main_line == [Move.from_usi("7g7f")]
        assert record.result == Result(Ending.ILLEGAL_MOVE, 7.0, comment)
        assert record.winner is Color.BLACK
        assert read_kif(write_kif(record)) == record

    def test_a_time_may_stand_at_the_end_instead(self) -> None:
        record = read_kif("1 ７五歩(77)\n2 反則勝ち ( 0:03/00:00:03)")
        assert record.result is not None
        assert record.result.seconds == 3.0

    def test_variations_follow_and_may_end_so_themselves(self) -> None:
        record = read_kif(
            f"{self.FOUL}3 反則勝ち\n変化：2手\n2 ８四歩(83)\n3 １五歩(17)\n4 反則勝ち"
        )
        assert record.winner is Color.BLACK
        [variation] = record.variations
        assert [recorded.move.usi for recorded in variation.moves] == ["8c8d"]
        assert variation.result == Result(
            Ending.ILLEGAL_MOVE, comment="illegal move 1g1e: a pawn cannot go from 1g to 1e"
        )

    @pytest.mark.parametrize(
        "after",
        [
            "",
            "*ただの誤植",
            "3 投了",
            "3 ２六歩(27)",
            "4 ２六歩(27)",
            "変化：2手\n2 ８四歩(83)",
            "まで2手で先手の勝ち",
            "まで2手で後手の勝ち",
            "まで2手で後手の反則勝ち",
        ],
    )
    def test_any_other_illegal_move_is_a_fault(self, after: str) -> None:
        error = fault(self.FOUL + after)
        assert (error.line, error.column) == (2, 3)
        assert f"３五歩(33) is illegal: {self.REASON}" in str(error)


@pytest.mark.parametrize("text", ["", "\n \n", "# nothing\n"])
def test_texts_without_a_game(text: str) -> None:
    assert "no game in this text" in str(fault(text))


@pytest.mark.parametrize(
    "headers",
    [
        {"event": "x\ny"},
        {"手合割": "x"},
        {"1": "x"},
        {"a：b": "x"},
        {"先手の持駒": "x"},
        {"まで": "x"},
    ],
)
def test_headers_that_cannot_be_written(headers: dict[str, str]) -> None:
    with pytest.raises(NotationError, match="cannot be written"):
        write_kif(GameRecord(headers=headers))


def test_variations_follow_the_order_of_the_file() -> None:
    """Deep branches come first; the mark + is where another move follows further down."""
    text = "\n".join(
        [
            *("1 ７六歩(77)+", "2 ３四歩(33)", "3 ２六歩(27)+"),
            *("変化：3手", "3 ６六歩(67)+", "4 ８四歩(83)"),
            *("変化：3手", "3 １六歩(17)"),
            *("変化：1手", "1 ２六歩(27)", "2 ８四歩(83)+"),
            *("変化：2手", "2 ３四歩(33)"),
        ]
    )
    record = read_kif(text)
    assert [(line.ply, [move.move.usi for move in line.moves]) for line in record.variations] == [
        (3, ["6g6f", "8c8d"]),
        (3, ["1g1f"]),
        (1, ["2g2f", "8c8d"]),
        (2, ["3c3d"]),
    ]
    marked = [line.split()[1] for line in write_kif(record).splitlines() if line.endswith("+")]
    assert marked == ["７六歩(77)", "２六歩(27)", "６六歩(67)", "８四歩(83)"]
    assert read_kif(write_kif(record)) == record


def test_an_empty_variation_is_no_variation() -> None:
    assert read_kif("1 ７六歩(77)\n変化：1手\n").variations == []

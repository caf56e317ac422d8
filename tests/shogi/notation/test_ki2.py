"""KI2: disambiguation by the rules of the Japan Shogi Association, and lenient reading."""

import contextlib
import itertools
import random
import re

import pytest

from keisei.errors import IllegalPositionError, NotationError
from keisei.shogi.game import ShogiGame
from keisei.shogi.notation.ki2 import format_move, origins, read_ki2, write_ki2
from keisei.shogi.notation.record import (
    Ending,
    GameRecord,
    RecordedMove,
    Replay,
    Result,
    Variation,
)
from keisei.shogi.notation.sfen import parse_sfen
from keisei.shogi.types import Color, Move, parse_square
from tests.shogi.notation.random_records import crowded_start

SAMPLE = """\
開始日時：2026/04/05
手合割：平手
先手：あかね
後手：ぼたん

*始まる前に
▲７六歩    △３四歩    ▲２二角成  △同　銀
*取り返す
&しおり
▲４五角    △５二金右  ▲３四角
まで7手で中断

変化：6手
△６五角    ▲３四角
まで7手で時間切れにより先手の勝ち
"""


def ki2(sfen: str, usi: str) -> str:
    return format_move(Replay(parse_sfen(sfen)), Move.from_usi(usi))


def played(sfen: str, text: str) -> str:
    """The move that a reader understands in a position."""
    lines = write_ki2(GameRecord(parse_sfen(sfen)))
    [move] = read_ki2(lines + text).main_line
    return move.usi


def fault(text: str) -> NotationError:
    with pytest.raises(NotationError) as caught:
        read_ki2(text)
    return caught.value


def test_sample_game() -> None:
    record = read_ki2(SAMPLE)
    assert [move.usi for move in record.main_line] == [
        *("7g7f", "3c3d", "8h2b+", "3a2b", "B*4e", "6a5b", "4e3d")
    ]
    assert record.comment == "始まる前に"
    assert record.moves[3] == RecordedMove(Move.from_usi("3a2b"), None, "取り返す", "しおり")
    assert record.result == Result(Ending.INTERRUPTED)
    assert record.variations == [
        Variation(
            6,
            [RecordedMove(Move.from_usi("B*6e")), RecordedMove(Move.from_usi("4e3d"))],
            Result(Ending.TIME_UP),
        )
    ]
    assert record.headers == {"start_time": "2026/04/05", "black": "あかね", "white": "ぼたん"}


def test_what_is_written() -> None:
    assert write_ki2(read_ki2(SAMPLE)).splitlines()[5:] == [
        "*始まる前に",
        "▲７六歩      △３四歩      ▲２二角成    △同　銀",
        "*取り返す",
        "&しおり",
        "▲４五角      △５二金右    ▲３四角",
        "まで7手で中断",
        "",
        "変化：6手",
        "△６五角      ▲３四角",
        "まで7手で時間切れにより先手の勝ち",
    ]


# Black's pieces in the position, and what each of their moves is called.
TELLING_APART = [
    # By motion: up, sideways, back.
    ("9/9/9/9/9/9/9/G8/1G7", {"9h8h": "８八金寄", "8i8h": "８八金上"}),
    ("9/9/9/9/9/9/1G7/9/1G7", {"8g8h": "８八金引", "8i8h": "８八金上"}),
    ("9/9/9/9/9/9/6S2/9/6S2", {"3g2h": "２八銀引", "3i2h": "２八銀上"}),
    # By side: left, right, straight.
    ("9/9/9/9/9/9/9/9/3G1G3", {"6i5h": "５八金左", "4i5h": "５八金右"}),
    ("9/9/9/9/9/9/9/9/4GG3", {"5i5h": "５八金直", "4i5h": "５八金右"}),
    ("9/9/9/9/9/9/9/9/3SS4", {"6i5h": "５八銀左", "5i5h": "５八銀直"}),
    ("9/9/9/9/9/9/9/3N1N3/9", {"6h5f": "５六桂左", "4h5f": "５六桂右"}),
    ("9/9/9/9/9/9/9/R7R/9", {"9h5h": "５八飛左", "1h5h": "５八飛右"}),
    ("9/9/9/9/9/9/9/B7B/9", {"9h5d": "５四角左", "1h5d": "５四角右"}),
    # Three and more.
    (
        "9/9/9/9/9/9/9/9/3GGG3",
        {"6i5h": "５八金左", "5i5h": "５八金直", "4i5h": "５八金右"},
    ),
    (
        "9/9/9/9/9/9/9/+P8/+P+P+P6",
        {"9i8h": "８八と左上", "9h8h": "８八と寄", "8i8h": "８八と直", "7i8h": "８八と右"},
    ),
    (
        "9/9/9/9/9/9/6S1S/9/6SS1",
        {"3g2h": "２八銀左引", "1g2h": "２八銀右", "2i2h": "２八銀直", "3i2h": "２八銀左上"},
    ),
    (
        "9/9/9/9/9/9/1+P7/+P1+P6/+P+P+P6",
        {
            "8g8h": "８八と引",
            "9h8h": "８八と左寄",
            "7h8h": "８八と右寄",
            "9i8h": "８八と左上",
            "8i8h": "８八と直",
            "7i8h": "８八と右上",
        },
    ),
    # Dragons and horses: by motion, else by where they stand to each other, never straight.
    ("+R8/9/9/1+R7/9/9/9/9/9", {"9a8b": "８二龍引", "8d8b": "８二龍上"}),
    ("9/4+R4/7+R1/9/9/9/9/9/9", {"2c4c": "４三龍寄", "5b4c": "４三龍引"}),
    ("9/9/9/9/4+R3+R/9/9/9/9", {"5e3e": "３五龍左", "1e3e": "３五龍右"}),
    ("9/9/9/9/9/9/9/9/+R+R7", {"9i8h": "８八龍左", "8i8h": "８八龍右"}),
    ("9/9/9/9/9/9/9/7+R1/8+R", {"2h1g": "１七龍左", "1i1g": "１七龍右"}),
    ("+B+B7/9/9/9/9/9/9/9/9", {"9a8b": "８二馬左", "8a8b": "８二馬右"}),
    ("9/9/3+B5/9/+B8/9/9/9/9", {"9e8e": "８五馬寄", "6c8e": "８五馬引"}),
    ("8+B/9/9/6+B2/9/9/9/9/9", {"1a1b": "１二馬引", "3d1b": "１二馬上"}),
    ("9/9/9/9/9/9/9/9/+B3+B4", {"9i7g": "７七馬左", "5i7g": "７七馬右"}),
    ("9/9/9/9/9/9/5+B3/8+B/9", {"4g2i": "２九馬左", "1h2i": "２九馬右"}),
]


@pytest.mark.parametrize(("board", "names"), TELLING_APART)
def test_telling_pieces_apart(board: str, names: dict[str, str]) -> None:
    sfen = with_king(board, "k", "b")
    for usi, name in names.items():
        assert ki2(sfen, usi) == name
        assert played(sfen, f"▲{name}") == usi


@pytest.mark.parametrize(("board", "names"), TELLING_APART)
def test_white_sees_the_board_from_the_other_side(board: str, names: dict[str, str]) -> None:
    turned = re.sub(r"(\w)\+", r"+\1", board[::-1].lower())
    sfen = with_king(turned, "K", "w")
    for usi, name in names.items():
        written = ki2(sfen, turn(usi))
        assert written[2:] == name[2:]
        assert played(sfen, f"△{written}") == turn(usi)


def turn(usi: str) -> str:
    """The move as the other side sees it."""
    return Move(80 - parse_square(usi[:2]), 80 - parse_square(usi[2:])).usi


def with_king(board: str, king: str, side: str) -> str:
    """The position with a king where nothing attacks it and it blocks nothing."""
    ranks = board.split("/")
    for row, column in itertools.product(range(9), range(9)):
        if ranks[row] == "9":
            placed = f"{column or ''}{king}{8 - column or ''}"
            sfen = f"{'/'.join([*ranks[:row], placed, *ranks[row + 1 :]])} {side} - 1"
            with contextlib.suppress(IllegalPositionError):
                if len(ShogiGame(sfen).legal_actions) > 0:
                    return sfen
    raise AssertionError(f"no place for a king in {board}")


class TestPromotionAndDrops:
    def test_promotion_is_told_wherever_it_is_possible(self) -> None:
        sfen = "8k/9/9/4S4/9/9/9/9/9 b - 1"
        assert ki2(sfen, "5d5c+") == "５三銀成"
        assert ki2(sfen, "5d5c") == "５三銀不成"
        inside = "8k/9/4S4/9/9/9/9/9/9 b - 1"
        assert ki2(inside, "5c4d") == "４四銀不成"
        assert ki2("8k/9/4G4/9/9/9/9/9/9 b - 1", "5c5b") == "５二金"
        assert ki2("8k/9/9/9/4S4/9/9/9/9 b - 1", "5e5d") == "５四銀"

    def test_a_drop_is_told_only_where_a_piece_could_move(self) -> None:
        sfen = "8k/9/9/9/4S4/9/9/9/9 b S 1"
        assert ki2(sfen, "S*5d") == "５四銀打"
        assert ki2(sfen, "S*9d") == "９四銀"
        assert played(sfen, "▲９四銀") == "S*9d"
        assert played(sfen, "▲９四銀打") == "S*9d"
        assert played(sfen, "▲５四銀") == "5e5d"
        assert played(sfen, "▲５四銀打") == "S*5d"

    def test_a_promoted_piece_is_no_rival_of_a_drop(self) -> None:
        assert ki2("8k/9/9/9/4+S4/9/9/9/9 b S 1", "S*5d") == "５四銀"

    def test_pinned_pieces_count_for_the_writer_but_not_against_the_reader(self) -> None:
        # The gold on 5h is pinned by the rook on 5a: it cannot go to 4h, the one on 3i can.
        sfen = "4r3k/9/9/9/9/9/9/4G4/4K1G2 b G 1"
        assert ki2(sfen, "3i4h") == "４八金上"
        assert ki2(sfen, "G*4h") == "４八金打"
        assert played(sfen, "▲４八金") == "3i4h"
        only_pinned = "4r3k/9/9/9/9/9/9/4G4/4K4 b G 1"
        assert played(only_pinned, "▲４八金") == "G*4h"

    def test_a_pinned_piece_is_never_mistaken_for_the_other_one(self) -> None:
        sfen = "4r3k/9/9/9/9/9/9/4G4/4K1G2 b - 1"
        error = fault(write_ki2(GameRecord(parse_sfen(sfen))) + "▲４八金寄")
        assert "the gold on 5h is pinned" in str(error)


@pytest.mark.parametrize(
    "line",
    [
        "▲７六歩△３四歩",
        "☗７六歩 ☖３四歩",
        "▲76歩　▽34歩",
        "７六歩 ３四歩",
        "  ▲ ７六歩   △ ３四歩  ",
        "▲７六歩直\n\n△３四歩上",
        "▲７六歩\r\n△３四歩\r",
    ],
)
def test_many_ways_to_write_moves(line: str) -> None:
    assert [move.usi for move in read_ki2(line).main_line] == ["7g7f", "3c3d"]


def test_same_square() -> None:
    for same in ("△同　歩", "△同歩", "△２四同歩"):
        text = f"▲２六歩 △８四歩 ▲２五歩 △８五歩 ▲２四歩 {same}"
        assert read_ki2(text).main_line[-1].usi == "2c2d"


def test_long_promoted_names_and_same_square() -> None:
    sfen = "8k/9/9/9/4p4/9/4+N4/9/9 b - 1"
    replay = Replay(parse_sfen(sfen))
    replay.play(Move.from_usi("5g4f"))
    replay.play(Move.from_usi("5e5f"))
    assert format_move(replay, Move.from_usi("4f5f")) == "同成桂"


def test_other_words_for_the_same_thing() -> None:
    two_dragons = "+R8/9/9/1+R7/9/9/9/7k1/9 b - 1"
    assert played(two_dragons, "▲８二龍行") == "8d8b"
    assert played(two_dragons, "▲８二竜上") == "8d8b"
    assert played("8k/9/9/4S4/9/9/9/9/9 b - 1", "▲５三銀生") == "5d5c"
    # More than is needed, where it is true.
    assert played("8k/9/9/9/9/9/9/9/3G1G3 b - 1", "▲５八金左上") == "6i5h"
    # A straight gold called left or right of the other one.
    assert played("8k/9/9/9/9/9/9/9/4GG3 b - 1", "▲５八金左") == "5i5h"
    # Left of two, where the third would have been called 上.
    assert played("8k/9/9/9/9/9/9/G1G6/G8 b - 1", "▲８八金左") == "9h8h"


def test_words_that_end_a_game() -> None:
    assert read_ki2("▲７六歩 △投了").result == Result(Ending.RESIGNATION)
    assert read_ki2("▲７六歩\nまで1手で先手の勝ち\n*おわり").result == Result(
        Ending.RESIGNATION, comment="おわり"
    )


@pytest.mark.parametrize("foul", ["▲２四歩打", "▲２四歩"])
@pytest.mark.parametrize("ending", ["\nまで1手で後手の反則勝ち", " △反則勝ち", " 反則負け"])
def test_an_illegal_last_move_that_lost_the_game(foul: str, ending: str) -> None:
    start = write_ki2(GameRecord(parse_sfen("8k/9/9/9/9/9/7P1/9/4K4 b P 1")))
    record = read_ki2(start + foul + ending)
    assert record.moves == []
    assert record.result is not None
    assert record.result.ending is Ending.ILLEGAL_MOVE
    assert record.result.comment.startswith("illegal move P*2d: ")
    assert record.winner is Color.WHITE
    with pytest.raises(NotationError, match=f"{foul} is illegal"):
        read_ki2(f"{start}{foul} △１二玉")


@pytest.mark.parametrize(
    ("line", "column", "message", "text"),
    [
        (1, 6, "it is White's turn: expected △, not ▲", "▲７六歩 ▲２六歩"),
        (1, 2, "７五歩: no 歩 can legally go there", "▲７五歩"),
        (1, 2, "５五角: no 角 can legally go there", "▲５五角"),
        (1, 1, "▲５五角打 is illegal: B*5e: Black has no bishop in hand", "▲５五角打"),
        (1, 2, "打 drops a piece from the hand", "▲５五馬打"),
        (1, 2, "打 drops a piece from the hand", "▲５五角左打"),
        (1, 2, "５八金 could be 4i5h or 6i5h; 左 右 直 上 寄 or 引 is needed", "▲５八金"),
        (1, 2, "５八金上 could be", "▲５八金上"),
        (1, 2, "５八金寄: no 金 comes from 寄", "▲５八金寄"),
        (1, 1, "neither 7g nor 7f is in the promotion zone", "▲７六歩成"),
        (
            2,
            11,
            "２二角 may promote or not: 成 or 不成 is needed",
            "手合割：平手\n▲７六歩 △３四歩▲２二角",
        ),
        (1, 2, "同 (the same square) needs a move before it", "▲同　歩"),
        (1, 5, "a blank or the next move expected, not '(77)'", "▲７六歩(77)"),
        (1, 4, "a piece such as 歩 or 成銀 expected", "▲７六"),
        (1, 2, "a square such as ７六, or 同, expected", "▲七六歩"),
        (1, 9, "the game ended before this (interrupted)", "▲７六歩 中断 △３四歩"),
        (1, 1, "is neither a header such as 先手：名前 nor a move", "hello"),
        (2, 1, "a square such as ７六, or 同, expected", "▲７六歩\n先手：あかね"),
    ],
)
def test_faults(line: int, column: int, message: str, text: str) -> None:
    error = fault(text)
    assert message in str(error)
    assert (error.line, error.column) == (line, column)


@pytest.mark.parametrize("seed", range(8))
def test_reach_agrees_with_the_rules(seed: int) -> None:
    """A move of a piece that reaches a square is legal, or exposes the king."""
    start = crowded_start(random.Random(seed))
    game = ShogiGame(start)
    legal = {(move.from_square, move.to_square) for move in game.legal_moves}
    reached = set()
    for target in range(81):
        occupant = start.board[target]
        if occupant is not None and occupant.color is start.turn:
            continue
        for piece in {found for found in start.board if found and found.color is start.turn}:
            reached |= {(origin, target) for origin in origins(start.board, piece, target)}
    assert {move for move in legal if move[0] is not None} <= reached
    for origin, target in reached - legal:
        move = Move(origin, target)
        with pytest.raises(ValueError, match=r"check|pinned|must promote"):
            game.push(move)

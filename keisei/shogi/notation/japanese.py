"""The words that KIF and KI2 share: numerals, squares, pieces, sides, endings."""

import re
from typing import Final

from keisei.shogi.notation.record import Ending
from keisei.shogi.notation.text import Scanner
from keisei.shogi.pieces import Color, PieceKind, file_of, rank_of, square

SIDES: Final = ("先手", "後手")
HANDICAP_SIDES: Final = ("下手", "上手")
"""What the players are called when White gives a handicap."""

COLOR_BY_SIDE: Final = {
    name: color
    for names in (SIDES, HANDICAP_SIDES)
    for name, color in zip(names, Color, strict=True)
}

PIECE_NAMES: Final = (
    *("歩", "香", "桂", "銀", "金", "角", "飛", "玉"),
    *("と", "成香", "成桂", "成銀", "馬", "龍"),
)
"""Names by kind, as moves write them."""

KIND_BY_NAME: Final = {
    **{name: PieceKind(kind) for kind, name in enumerate(PIECE_NAMES)},
    "王": PieceKind.KING,
    "竜": PieceKind.DRAGON,
    "杏": PieceKind.PROMOTED_LANCE,
    "圭": PieceKind.PROMOTED_KNIGHT,
    "全": PieceKind.PROMOTED_SILVER,
}
"""Kinds by all their names, those of one character for diagrams included."""

FILE_SIGNS: Final = "１２３４５６７８９"
RANK_SIGNS: Final = "一二三四五六七八九"
MARKS: Final = {
    **dict.fromkeys("▲☗▼", Color.BLACK),
    **dict.fromkeys("△☖▽", Color.WHITE),
}
"""Signs that can stand in front of a move."""

ENDING_WORDS: Final = {
    "投了": Ending.RESIGNATION,
    "中断": Ending.INTERRUPTED,
    "封じ手": Ending.INTERRUPTED,
    "千日手": Ending.REPETITION,
    "持将棋": Ending.IMPASSE,
    "切れ負け": Ending.TIME_UP,
    "時間切れ": Ending.TIME_UP,
    "反則負け": Ending.ILLEGAL_MOVE,
    "反則勝ち": Ending.WHITE_FOUL,  # or BLACK_FOUL: see `ending_of`
    "入玉勝ち": Ending.DECLARATION,
    "宣言勝ち": Ending.DECLARATION,
    "引き分け": Ending.DECLARED_DRAW,
    "引分け": Ending.DECLARED_DRAW,
    "最大手数": Ending.MAX_MOVES,
    "待った": Ending.TAKEN_BACK,
    "不詰": Ending.NO_MATE,
    "詰み": Ending.MATE,
    "詰": Ending.MATE,
    "エラー": Ending.ERROR,
    "不戦勝": Ending.DEFAULT_WIN,
    "不戦敗": Ending.DEFAULT_LOSS,
}
"""What stands in place of the last move. The first word of an ending is the one to write."""

_WORD_BY_ENDING: Final = {ending: word for word, ending in reversed(ENDING_WORDS.items())}

ENDING_PATTERN: Final = re.compile("|".join(sorted(ENDING_WORDS, key=len, reverse=True)))
_MARK: Final = re.compile(f"[{''.join(MARKS)}]\\s*")
_SAME: Final = re.compile(r"同\s*")
_SQUARE: Final = re.compile(rf"([1-9])([1-9{RANK_SIGNS}])(同?)\s*")
PIECE_PATTERN: Final = re.compile("|".join(sorted(KIND_BY_NAME, key=len, reverse=True)))


def ending_of(word: str, mover: Color) -> Ending:
    """The ending that a word means when it is `mover`'s turn."""
    if word == "反則勝ち":
        return Ending.WHITE_FOUL if mover is Color.BLACK else Ending.BLACK_FOUL
    return ENDING_WORDS[word]


def word_of(ending: Ending, mover: Color) -> str:
    """The word for an ending when it is `mover`'s turn.

    A foul of the mover himself can only be written as 反則負け, as an illegal move is.
    """
    if ending in (Ending.BLACK_FOUL, Ending.WHITE_FOUL):
        return "反則勝ち" if ending.winner(mover) is mover else "反則負け"
    return _WORD_BY_ENDING[ending]


def scan_ending(scanner: Scanner, mover: Color) -> Ending | None:
    """Step over a word such as 投了 if one comes next."""
    match = scanner.match(ENDING_PATTERN)
    return None if match is None else ending_of(match[0], mover)


def scan_mark(scanner: Scanner, mover: Color) -> bool:
    """Step over a sign such as ▲ if one comes next; it has to be the mover's."""
    index = scanner.index
    match = scanner.match(_MARK)
    if match is not None and MARKS[match[0][0]] is not mover:
        sign = "▲" if mover is Color.BLACK else "△"
        raise scanner.error(
            f"it is {mover.name.title()}'s turn: {sign} is expected, not {match[0][0]}", index
        )
    return match is not None


def scan_target(scanner: Scanner, last_target: int | None) -> int:
    """Step over the square a move goes to: ７六, 76, 同 (where the move before went)."""
    index = scanner.index
    if scanner.match(_SAME):
        if last_target is None:
            raise scanner.error("同 (the same square) needs a move before it", index)
        return last_target
    match = scanner.expect(_SQUARE, "a square such as ７六, or 同,")
    rank = RANK_SIGNS.find(match[2]) + 1 or int(match[2])
    target = square(int(match[1]), rank)
    if match[3] and target != last_target:
        raise scanner.error("同 says the same square as before, but this is another one", index)
    return target


def scan_piece(scanner: Scanner) -> PieceKind:
    """Step over the name of a piece."""
    return KIND_BY_NAME[scanner.expect(PIECE_PATTERN, "a piece such as 歩 or 成銀")[0]]


def format_square(sq: int) -> str:
    """７六 for 7f."""
    return FILE_SIGNS[file_of(sq) - 1] + RANK_SIGNS[rank_of(sq) - 1]


def format_count(count: int) -> str:
    """A number below 20 in Japanese: 十八."""
    tens, ones = divmod(count, 10)
    return ("十" if tens else "") + (RANK_SIGNS[ones - 1] if ones else "")


def parse_count(text: str) -> int | None:
    """A number below 20 in Japanese or in digits; None if it is neither."""
    if re.fullmatch("[0-9]{1,2}", text):
        return int(text)
    match = re.fullmatch(f"(十?)([{RANK_SIGNS}]?)", text)
    if match is None or not text:
        return None
    return (10 if match[1] else 0) + RANK_SIGNS.find(match[2] or "-") + 1

"""Japanese words of KIF and KI2: pieces, squares, endings, closing lines, handicaps."""

import re
from typing import Final

from keisei.errors import NotationError
from keisei.shogi.notation.reader import Scanner, quote
from keisei.shogi.notation.record import STARTPOS, Ending
from keisei.shogi.render.glyphs import KANJI_BY_KIND, RANK_KANJI, SIDE_NAMES
from keisei.shogi.types import (
    Color,
    Diagram,
    PieceKind,
    file_of,
    rank_of,
    square,
)

HANDICAP_SIDE_NAMES: Final = ("下手", "上手")
"""Names of Black and White if White gives a handicap."""

COLOR_BY_SIDE: Final = {
    name: color
    for names in (SIDE_NAMES, HANDICAP_SIDE_NAMES)
    for name, color in zip(names, Color, strict=True)
}

PIECE_NAMES: Final = (
    *("歩", "香", "桂", "銀", "金", "角", "飛", "玉"),
    *("と", "成香", "成桂", "成銀", "馬", "龍"),
)
"""Names by kind, as in moves."""

KIND_BY_NAME: Final = {
    **{name: PieceKind(kind) for kind, name in enumerate(PIECE_NAMES)},
    **{name: PieceKind(kind) for kind, name in enumerate(KANJI_BY_KIND)},
    "王": PieceKind.KING,
    "竜": PieceKind.DRAGON,
}
"""Kinds by all their names, including those of one character in diagrams."""

FILE_DIGITS: Final = "１２３４５６７８９"
MARKS: Final = {
    **dict.fromkeys("▲☗▼", Color.BLACK),
    **dict.fromkeys("△☖▽", Color.WHITE),
}
"""Signs of the mover that can precede a move."""

ENDING_WORDS: Final = {
    "投了": Ending.RESIGNATION,
    "中断": Ending.INTERRUPTED,
    "封じ手": Ending.INTERRUPTED,
    "千日手": Ending.REPETITION,
    "持将棋": Ending.IMPASSE,
    "切れ負け": Ending.TIME_UP,
    "時間切れ": Ending.TIME_UP,
    "時間切れ負け": Ending.TIME_UP,
    "反則負け": Ending.ILLEGAL_MOVE,
    "反則勝ち": Ending.WHITE_FOUL,  # or BLACK_FOUL: see `parse_ending`
    "反則手": Ending.ILLEGAL_MOVE,
    "入玉勝ち": Ending.DECLARATION,
    "宣言勝ち": Ending.DECLARATION,
    "入玉宣言": Ending.DECLARATION,
    "入玉勝ち宣言": Ending.DECLARATION,
    "引き分け": Ending.DECLARED_DRAW,
    "引分け": Ending.DECLARED_DRAW,
    "裁定引分": Ending.DECLARED_DRAW,
    "最大手数": Ending.MAX_MOVES,
    "待った": Ending.TAKEN_BACK,
    "不詰": Ending.NO_MATE,
    "詰み": Ending.MATE,
    "詰": Ending.MATE,
    "エラー": Ending.ERROR,
    "不戦勝": Ending.DEFAULT_WIN,
    "不戦敗": Ending.DEFAULT_LOSS,
}
"""Words in place of the last move. The first word for an ending is the one to write."""

_WORD_BY_ENDING: Final = {ending: word for word, ending in reversed(ENDING_WORDS.items())}

ENDING_PATTERN: Final = re.compile("|".join(sorted(ENDING_WORDS, key=len, reverse=True)))
_MARK: Final = re.compile(f"[{''.join(MARKS)}]\\s*")
_SAME: Final = re.compile(r"同\s*")
_SQUARE: Final = re.compile(rf"([1-9])([1-9{RANK_KANJI}])(同?)\s*")
PIECE_PATTERN: Final = re.compile("|".join(sorted(KIND_BY_NAME, key=len, reverse=True)))


def parse_ending(word: str, mover: Color) -> Ending:
    """Return the ending that a word means if it is `mover`'s turn."""
    if word == "反則勝ち":
        return Ending.WHITE_FOUL if mover is Color.BLACK else Ending.BLACK_FOUL
    return ENDING_WORDS[word]


def format_ending(ending: Ending, mover: Color) -> str:
    """Return the word for an ending if it is `mover`'s turn.

    A foul by the mover can only be written as 反則負け, like an illegal move.
    """
    if ending in (Ending.BLACK_FOUL, Ending.WHITE_FOUL):
        return "反則勝ち" if ending.winner(mover) is mover else "反則負け"
    return _WORD_BY_ENDING[ending]


def scan_ending(scanner: Scanner, mover: Color) -> Ending | None:
    """Scan a word such as 投了 if one comes next; None if not."""
    match = scanner.match(ENDING_PATTERN)
    return None if match is None else parse_ending(match[0], mover)


def scan_mark(scanner: Scanner, mover: Color) -> bool:
    """Scan a sign such as ▲ if one comes next; `NotationError` if it is not the mover's."""
    index = scanner.index
    match = scanner.match(_MARK)
    if match is not None and MARKS[match[0][0]] is not mover:
        sign = "▲" if mover is Color.BLACK else "△"
        raise scanner.error(
            f"it is {mover.name.title()}'s turn: expected {sign}, not {match[0][0]}", index
        )
    return match is not None


def scan_target(scanner: Scanner, last_target: int | None) -> int:
    """Scan the target of a move: ７六, 76, or 同, the target of the move before."""
    index = scanner.index
    if scanner.match(_SAME):
        if last_target is None:
            raise scanner.error("同 (the same square) needs a move before it", index)
        return last_target
    match = scanner.expect(_SQUARE, "a square such as ７六, or 同,")
    rank = RANK_KANJI.find(match[2]) + 1 or int(match[2])
    target = square(int(match[1]), rank)
    if match[3] and target != last_target:
        raise scanner.error(
            "同 means the target of the move before, but this is another square", index
        )
    return target


def scan_piece(scanner: Scanner) -> PieceKind:
    """Scan the name of a piece."""
    return KIND_BY_NAME[scanner.expect(PIECE_PATTERN, "a piece such as 歩 or 成銀")[0]]


def format_square(sq: int) -> str:
    """Return the name of a square: ７六 for 7f."""
    return FILE_DIGITS[file_of(sq) - 1] + RANK_KANJI[rank_of(sq) - 1]


def format_count(count: int) -> str:
    """Write a number below 20 in Japanese: 十八."""
    tens, ones = divmod(count, 10)
    return ("十" if tens else "") + (RANK_KANJI[ones - 1] if ones else "")


def parse_count(text: str) -> int | None:
    """Parse a number below 20 in Japanese or in digits; None if it is neither."""
    if re.fullmatch("[0-9]{1,2}", text):
        return int(text)
    match = re.fullmatch(f"(十?)([{RANK_KANJI}]?)", text)
    if match is None or not text:
        return None
    return (10 if match[1] else 0) + RANK_KANJI.find(match[2] or "-") + 1


_SUMMARY: Final = re.compile(r"まで[、,\s]*+(?:[0-9]{1,5}\s*+手)?(?:にて|で)?[、,\s]*+(.*)")
_SIDE: Final = re.compile("|".join(COLOR_BY_SIDE))
_PLAIN_WIN: Final = re.compile("(?:先手|後手|下手|上手)の?勝ち?")
_LOSING_WORDS: Final = ("投了", "切れ負け", "時間切れ", "時間切れ負け", "反則負け", "不戦敗")


def is_summary(text: str) -> bool:
    """Return whether a line is a closing line, such as まで98手で後手の勝ち."""
    return text.lstrip().startswith("まで")


def parse_summary(text: str, mover: Color) -> Ending | None:
    """Return the ending of a closing line if it is `mover`'s turn; None for unknown words."""
    match = _SUMMARY.fullmatch(text.strip())
    words = "" if match is None else match[1].rstrip("。 \t")
    word = ENDING_PATTERN.search(words)
    if word is None and _PLAIN_WIN.fullmatch(words) is None:
        return None
    name = "投了" if word is None else word[0]
    winner = _named_winner(words, name)
    if name == "千日手" and "王手" in words:  # perpetual check: the side that gave it has lost
        return None if winner is None else (Ending.WHITE_FOUL, Ending.BLACK_FOUL)[winner]
    if name.startswith("反則") and winner is not None:
        return parse_ending("反則勝ち" if winner is mover else "反則負け", mover)
    ending = parse_ending(name, mover)
    if winner is not None and ending.winner(mover) is not winner:
        raise NotationError(
            f"{quote(text.strip(), limit=40)}: {winner.name.title()} cannot have won by "
            f"{ending.value} when it is {mover.name.title()}'s turn; is a move missing?"
        )
    return ending


def _named_winner(words: str, ending_word: str) -> Color | None:
    side = _SIDE.search(words)
    if side is None:
        return None
    color = COLOR_BY_SIDE[side[0]]
    if "勝" in words:
        return color
    return color.opponent if ending_word in _LOSING_WORDS else None


def format_summary(ending: Ending, plies: int, mover: Color, sides: tuple[str, str]) -> str:
    """Return the closing line after `plies` moves; `sides` are the names of the players."""
    winner = ending.winner(mover)
    word = format_ending(ending, mover)
    if ending in (Ending.RESIGNATION, Ending.TIME_UP):
        reason = "時間切れにより" if ending is Ending.TIME_UP else ""
        word = f"{reason}{sides[mover.opponent]}の勝ち"
    elif winner is not None and ending is not Ending.MATE:
        word = f"{sides[winner if '勝' in word else winner.opponent]}の{word}"
    return f"まで{plies}手で{word}"


OTHER: Final = "その他"
"""The name of any other start, which a diagram then shows."""

# Left and right are as White sees them: the right lance stands on file 9, the left one on file 1.
_ROOK, _BISHOP = 82, 22
_RIGHT_LANCE, _LEFT_LANCE = 91, 11
_RIGHT_KNIGHT, _LEFT_KNIGHT = 81, 21
_RIGHT_SILVER, _LEFT_SILVER = 71, 31
_RIGHT_GOLD, _LEFT_GOLD = 61, 41

_TWO: Final = (_ROOK, _BISHOP)
_FOUR: Final = (*_TWO, _RIGHT_LANCE, _LEFT_LANCE)
_SIX: Final = (*_FOUR, _RIGHT_KNIGHT, _LEFT_KNIGHT)
_EIGHT: Final = (*_SIX, _RIGHT_SILVER, _LEFT_SILVER)

_REMOVED: Final[dict[str, tuple[int, ...]]] = {
    "平手": (),
    "香落ち": (_LEFT_LANCE,),
    "右香落ち": (_RIGHT_LANCE,),
    "角落ち": (_BISHOP,),
    "飛車落ち": (_ROOK,),
    "飛香落ち": (_ROOK, _LEFT_LANCE),
    "二枚落ち": _TWO,
    "三枚落ち": (*_TWO, _LEFT_LANCE),
    "四枚落ち": _FOUR,
    "五枚落ち": (*_FOUR, _RIGHT_KNIGHT),
    "左五枚落ち": (*_FOUR, _LEFT_KNIGHT),
    "六枚落ち": _SIX,
    "左七枚落ち": (*_SIX, _LEFT_SILVER),
    "右七枚落ち": (*_SIX, _RIGHT_SILVER),
    "七枚落ち": (*_SIX, _LEFT_SILVER),
    "八枚落ち": _EIGHT,
    "十枚落ち": (*_EIGHT, _RIGHT_GOLD, _LEFT_GOLD),
}


def _start(removed: tuple[int, ...]) -> Diagram:
    board = list(STARTPOS.board)
    for digits in removed:
        board[square(digits // 10, digits % 10)] = None
    # The player who gives a handicap moves first.
    return Diagram(tuple(board), turn=Color.WHITE if removed else Color.BLACK)


HANDICAPS: Final = {name: _start(removed) for name, removed in _REMOVED.items()}
"""Start positions by the name of the handicap (手合割)."""

_NAMES: Final = {start: name for name, start in reversed(HANDICAPS.items())}


def handicap_name(start: Diagram) -> str | None:
    """Return the handicap name of a start position; None if it has none."""
    return _NAMES.get(start)

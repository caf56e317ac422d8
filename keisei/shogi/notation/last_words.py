"""What stands in place of a last move: words of unknown meaning end a game, misspelt moves do not.

Programs, servers and people end games in words that nobody standardised: 入玉宣言, ``Time up``,
★終局. Whatever does not begin as a move of any notation is such a word: it ends the game, and
becomes a comment. What begins as a move, but is none, is an error.
"""

import re
from typing import Final

from keisei.shogi.notation.japanese import MARKS, PIECE_PATTERN
from keisei.shogi.notation.reader import Scanner
from keisei.shogi.render.glyphs import RANK_KANJI

_MARK: Final = f"[{''.join(MARKS)}]\\s*"
_SQUARE: Final = f"(?:[1-9][1-9{RANK_KANJI}]|[{RANK_KANJI}]{{2}})"
_PIECE: Final = f"(?:{PIECE_PATTERN.pattern})"
_BEGINNINGS: Final = (
    rf"{_MARK}(?:[1-9]|同)",  # ▲ and the beginning of a square
    rf"(?:{_MARK})?(?:[1-9][{RANK_KANJI}]"  # ７六, whatever follows
    rf"|(?:{_SQUARE}|同|[0-9])\s*(?:同\s*)?(?:{_PIECE}|成|\S{{0,2}}打(?!ち)|\(|$)"  # 76歩, 同銀, 76
    rf"|{_PIECE}\s*[1-9][1-9{RANK_KANJI}]"  # 歩76
    rf"|[^(A-Za-z]{{1,8}}\(\s*[1-9]\s*[1-9]\s*\))",  # anything(77)
    r"[1-9][a-z]",  # 7g7f, 7f, 7x
    r"[-+]?[0-9]{4}[a-z]{2}",  # +7776FU
    r"\+?[plnsgbrk](?:[1-9][1-9a-i])?[-–—−x×*'’]?(?:[1-9]|\s*(?:\(|$))",  # P-7f, P76
    r"\+?[a-z](?:[1-9][1-9a-i])?[-–—−x×*'’][1-9][1-9a-i](?![0-9])",  # Q-7f
)
_MOVE: Final = re.compile("|".join(_BEGINNINGS), re.IGNORECASE)


def begins_as_move(scanner: Scanner) -> bool:
    """Return whether what comes next begins as a move of any notation does.

    >>> from keisei.shogi.notation.reader import SourceLine
    >>> [begins_as_move(Scanner(SourceLine(1, text))) for text in ("76歩", "Q-7f", "同時切断")]
    [True, True, False]
    """
    return scanner.looks_at(_MOVE)

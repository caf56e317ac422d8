"""The closing line of KIF and KI2 records: まで98手で後手の勝ち."""

import re
from typing import Final

from keisei.errors import NotationError
from keisei.shogi.notation.japanese import COLOR_BY_SIDE, ENDING_PATTERN, ending_of, word_of
from keisei.shogi.notation.record import Ending
from keisei.shogi.notation.text import quote
from keisei.shogi.pieces import Color

_SUMMARY: Final = re.compile(r"まで[、,\s]*(?:[0-9]{1,5}\s*手)?(?:にて|で)?[、,\s]*(.*?)[。\s]*")
_SIDE: Final = re.compile("|".join(COLOR_BY_SIDE))
_PLAIN_WIN: Final = re.compile("(?:先手|後手|下手|上手)の?勝ち?")
_LOSING_WORDS: Final = ("投了", "切れ負け", "時間切れ", "反則負け", "不戦敗")


def is_summary(text: str) -> bool:
    """Whether a line is a closing line."""
    return text.lstrip().startswith("まで")


def parse_summary(text: str, mover: Color) -> Ending:
    """The ending that a closing line tells of; it is `mover`'s turn."""
    match = _SUMMARY.fullmatch(text.strip())
    words = "" if match is None else match[1]
    word = ENDING_PATTERN.search(words)
    if word is None and _PLAIN_WIN.fullmatch(words) is None:
        raise NotationError(
            f"{quote(text.strip(), limit=40)}: something like まで98手で後手の勝ち is expected"
        )
    name = "投了" if word is None else word[0]
    winner = _named_winner(words, name)
    if name.startswith("反則") and winner is not None:
        return ending_of("反則勝ち" if winner is mover else "反則負け", mover)
    ending = ending_of(name, mover)
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
    """The closing line of a record of `plies` moves; `sides` are the names of the players."""
    winner = ending.winner(mover)
    word = word_of(ending, mover)
    if ending in (Ending.RESIGNATION, Ending.TIME_UP):
        reason = "時間切れにより" if ending is Ending.TIME_UP else ""
        word = f"{reason}{sides[mover.opponent]}の勝ち"
    elif winner is not None and ending is not Ending.MATE:
        word = f"{sides[winner if '勝' in word else winner.opponent]}の{word}"
    return f"まで{plies}手で{word}"

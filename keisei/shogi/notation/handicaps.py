"""The named handicaps of KIF and KI2 (手合割): which pieces White plays without."""

from typing import Final

from keisei.shogi.diagram import Diagram
from keisei.shogi.notation.record import STARTPOS
from keisei.shogi.pieces import Color, square

OTHER: Final = "その他"
"""The name for any other start, which a diagram then shows."""

# Left and right are White's own: the right lance stands on file 9, the left one on file 1.
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
    # The one who gives a handicap moves first.
    return Diagram(tuple(board), turn=Color.WHITE if removed else Color.BLACK)


HANDICAPS: Final = {name: _start(removed) for name, removed in _REMOVED.items()}
"""Start positions by name."""

_NAMES: Final = {start: name for name, start in reversed(HANDICAPS.items())}


def handicap_name(start: Diagram) -> str | None:
    """The name of a start position, if it has one."""
    return _NAMES.get(start)

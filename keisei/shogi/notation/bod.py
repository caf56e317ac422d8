"""Board diagrams in KIF and KI2 files: nine rows of two-character squares, and the hands."""

import re
from typing import Final

from keisei.constants import BOARD_SIZE, NUM_HAND_KINDS
from keisei.shogi.diagram import Diagram
from keisei.shogi.notation.japanese import (
    KIND_BY_NAME,
    PIECE_NAMES,
    RANK_SIGNS,
    SIDES,
    format_count,
    parse_count,
)
from keisei.shogi.notation.text import SourceLine, half_width, quote
from keisei.shogi.pieces import HAND_KINDS, Color, Piece, PieceKind

_SHORT_NAMES: Final = {
    PieceKind.PROMOTED_LANCE: "杏",
    PieceKind.PROMOTED_KNIGHT: "圭",
    PieceKind.PROMOTED_SILVER: "全",
}
_EMPTY: Final = "・･.*"
_CELL: Final = re.compile(
    rf"([ v^Vｖ＾]?)([{''.join(n for n in KIND_BY_NAME if len(n) == 1)}{_EMPTY}])"
)
_ROW: Final = re.compile(r"\s*[|｜](.*)[|｜]\s*(.?)\s*")
_HELD: Final = re.compile(r"(\S)([0-9十一二三四五六七八九]*)\s*")


def is_row(line: SourceLine) -> bool:
    """Whether a line is a rank of a diagram."""
    return line.text.lstrip().startswith(("|", "｜"))


def parse_row(line: SourceLine) -> list[Piece | None]:
    """Read a rank: ``|v香v桂 ・ ・v玉 ・ ・ ・ 香|一``."""
    match = _ROW.fullmatch(half_width(line.text))
    if match is None:
        raise line.error("a rank of a diagram stands between two '|'", len(line.text) or 1)
    squares: list[Piece | None] = []
    index, end = match.span(1)
    text = match.string
    while index < end and text[index:end].strip():
        cell = _CELL.match(text, index, end)
        if cell is None:
            raise line.error(
                f"{quote(line.text[index : index + 2])} is no square; "
                "' ・', ' 歩' or 'v歩' is expected",
                index + 1,
            )
        color = Color.WHITE if cell[1] in ("v", "V", "ｖ") else Color.BLACK
        squares.append(None if cell[2] in _EMPTY else Piece(color, KIND_BY_NAME[cell[2]]))
        index = cell.end()
    if len(squares) != BOARD_SIZE:
        raise line.error(f"this rank has {len(squares)} squares, 9 are needed", match.start(1) + 1)
    return squares


def parse_hand(line: SourceLine, index: int) -> tuple[int, ...]:
    """Read the pieces in hand, from `index` on: ``飛　角　歩十二``, or なし."""
    counts = [0] * NUM_HAND_KINDS
    text = half_width(line.text)
    index += len(text[index:]) - len(text[index:].lstrip())
    if text[index:].strip() == "なし":
        return tuple(counts)
    while index < len(text):
        match = _HELD.match(text, index)
        kind = None if match is None else KIND_BY_NAME.get(match[1])
        number = 1 if match is None or not match[2] else parse_count(match[2])
        if match is None or kind not in HAND_KINDS or number is None:
            raise line.error(
                f"{quote(line.text[index : index + 4])} is no piece in hand; "
                "something like 飛 or 歩十二 is expected, or なし",
                index + 1,
            )
        counts[kind] += number
        index = match.end()
    return tuple(counts)


def format_bod(diagram: Diagram) -> list[str]:
    """The lines of a diagram: White's hand, the board, Black's hand, the side to move."""
    border = f"+{'---' * BOARD_SIZE}+"
    lines = [
        f"{SIDES[Color.WHITE]}の持駒：{_format_hand(diagram.hands[Color.WHITE])}",
        "  ９ ８ ７ ６ ５ ４ ３ ２ １",
        border,
    ]
    for row, sign in enumerate(RANK_SIGNS):
        squares = diagram.board[row * BOARD_SIZE : (row + 1) * BOARD_SIZE]
        lines.append(f"|{''.join(_format_cell(piece) for piece in squares)}|{sign}")
    lines += [border, f"{SIDES[Color.BLACK]}の持駒：{_format_hand(diagram.hands[Color.BLACK])}"]
    if diagram.move_number > 1:
        lines.append(f"手数＝{diagram.move_number - 1}　まで")
    if diagram.turn is Color.WHITE:
        lines.append(f"{SIDES[Color.WHITE]}番")
    return lines


def _format_cell(piece: Piece | None) -> str:
    if piece is None:
        return " ・"
    name = _SHORT_NAMES.get(piece.kind, PIECE_NAMES[piece.kind])
    return f"{'v' if piece.color is Color.WHITE else ' '}{name}"


def _format_hand(hand: tuple[int, ...]) -> str:
    items = (
        PIECE_NAMES[kind] + (format_count(hand[kind]) if hand[kind] > 1 else "")
        for kind in reversed(HAND_KINDS)
        if hand[kind]
    )
    return "　".join(items) or "なし"

"""SFEN positions and USI ``position`` commands: parsing and formatting."""

import re
from typing import Final, NamedTuple

from keisei.constants import BOARD_SIZE, MAX_MOVE_NUMBER, NUM_HAND_KINDS
from keisei.errors import IllegalPositionError, NotationError
from keisei.shogi.types import (
    HAND_KINDS,
    PIECE_BY_SYMBOL,
    Color,
    Diagram,
    Hands,
    Move,
    Piece,
)

STARTPOS_SFEN: Final = "lnsgkgsnl/1r5b1/ppppppppp/9/9/9/PPPPPPPPP/1B5R1/LNSGKGSNL b - 1"
"""The usual start position."""

_HAND_ITEM: Final = re.compile(r"([1-9]\d?)?([PLNSGBRplnsgbr])", re.ASCII)


class _Token(NamedTuple):
    """A word of a text, and its column."""

    text: str
    column: int
    """Counted from 1."""


def parse_sfen(text: str) -> Diagram:
    """Parse an SFEN; a missing move number means 1, a leading word ``sfen`` is allowed.

    Raises `NotationError` with the column of the fault, and `IllegalPositionError` for a position
    that no game can start from.
    """
    return _parse_fields(_words(text))


def format_sfen(diagram: Diagram) -> str:
    """Return the SFEN of a diagram, including the move number."""
    rows = (
        diagram.board[start : start + BOARD_SIZE]
        for start in range(0, len(diagram.board), BOARD_SIZE)
    )
    board = "/".join(_format_row(row) for row in rows)
    side = "b" if diagram.turn is Color.BLACK else "w"
    return f"{board} {side} {_format_hands(diagram.hands)} {diagram.move_number}"


def parse_position(text: str) -> tuple[Diagram, list[Move]]:
    """Parse ``[position] startpos|sfen <sfen> [moves <move> ...]``, or a bare SFEN.

    Whether the moves are legal is not checked. Raises the errors of `parse_sfen`, and
    `NotationError` with the column and the number of an invalid move.
    """
    words = _words(text)
    if words and words[0].text == "position":
        words = words[1:]
    split = next((at for at, word in enumerate(words) if word.text == "moves"), len(words))
    start, moves = words[:split], words[split + 1 :]
    return _parse_start(start), [_parse_move(word, at) for at, word in enumerate(moves, start=1)]


def format_position(start: Diagram, moves: list[Move]) -> str:
    """Return the USI ``position`` command of a start and the moves played from it."""
    sfen = format_sfen(start)
    head = "startpos" if sfen == STARTPOS_SFEN else f"sfen {sfen}"
    tail = f" moves {' '.join(move.usi for move in moves)}" if moves else ""
    return f"position {head}{tail}"


def _words(text: str) -> list[_Token]:
    return [_Token(match.group(), match.start() + 1) for match in re.finditer(r"\S+", text)]


def _parse_start(words: list[_Token]) -> Diagram:
    if not words or words[0].text != "startpos":
        return _parse_fields(words)
    if len(words) > 1:
        raise NotationError(
            f"{words[1].text[:16]!r} after 'startpos'; only 'moves' can follow",
            column=words[1].column,
        )
    return parse_sfen(STARTPOS_SFEN)


def _parse_fields(fields: list[_Token]) -> Diagram:
    if fields and fields[0].text == "sfen":
        fields = fields[1:]
    if not 3 <= len(fields) <= 4:
        raise NotationError(
            "an SFEN has a board, a side to move, hands and a move number; "
            f"got {len(fields)} fields"
        )
    board = _parse_board(*fields[0])
    turn = _parse_turn(*fields[1])
    hands = _parse_hands(*fields[2])
    move_number = _parse_move_number(*fields[3]) if len(fields) == 4 else 1
    diagram = Diagram(board, hands, turn, move_number)
    diagram.validate()
    return diagram


def _parse_board(text: str, column: int) -> tuple[Piece | None, ...]:
    rows = text.split("/")
    if len(rows) != BOARD_SIZE:
        raise NotationError(f"the board has {len(rows)} ranks, it must have 9", column=column)
    board: list[Piece | None] = []
    for row in rows:
        board += _parse_row(row, column)
        column += len(row) + 1
    return tuple(board)


def _parse_row(row: str, column: int) -> list[Piece | None]:
    squares: list[Piece | None] = []
    index = 0
    while index < len(row):
        size = 2 if row[index] == "+" else 1
        symbol = row[index : index + size]
        if symbol in "123456789":
            squares += [None] * int(symbol)
        elif symbol in PIECE_BY_SYMBOL:
            squares.append(PIECE_BY_SYMBOL[symbol])
        else:
            raise NotationError(
                f"{symbol!r} is neither a piece nor a number of empty squares",
                column=column + index,
            )
        index += size
    if len(squares) != BOARD_SIZE:
        raise NotationError(
            f"rank {row[:40]!r} has {len(squares)} squares, it must have 9", column=column
        )
    return squares


def _parse_turn(text: str, column: int) -> Color:
    if text not in ("b", "w"):
        raise NotationError(
            f"the side to move is {text[:16]!r}, it must be 'b' or 'w'", column=column
        )
    return Color.BLACK if text == "b" else Color.WHITE


def _parse_hands(text: str, column: int) -> Hands:
    counts = [[0] * NUM_HAND_KINDS, [0] * NUM_HAND_KINDS]
    index = 0
    while text != "-" and index < len(text):
        item = _HAND_ITEM.match(text, index)
        if item is None:
            raise NotationError(
                f"{text[index]!r} is not a piece in hand; expected something like 'S2Pb3p' or '-'",
                column=column + index,
            )
        piece = PIECE_BY_SYMBOL[item[2]]
        counts[piece.color][piece.kind] += int(item[1] or 1)
        index = item.end()
    return tuple(counts[Color.BLACK]), tuple(counts[Color.WHITE])


def _parse_move_number(text: str, column: int) -> int:
    if not (text.isascii() and text.isdigit()) or len(text) > 5:
        raise NotationError(f"{text[:16]!r} is not a move number", column=column)
    number = int(text)
    if number > MAX_MOVE_NUMBER:
        raise IllegalPositionError(f"move number {number} is above {MAX_MOVE_NUMBER}")
    return max(number, 1)  # some programs write 0 for "unknown"


def _parse_move(word: _Token, number: int) -> Move:
    try:
        return Move.from_usi(word.text)
    except NotationError as error:
        raise NotationError(
            f"move {number} of the list: {error.reason}", column=word.column
        ) from None


def _format_row(row: tuple[Piece | None, ...]) -> str:
    symbols = "".join("." if piece is None else piece.symbol for piece in row)
    return re.sub(r"\.+", lambda gap: str(len(gap.group())), symbols)


def _format_hands(hands: Hands) -> str:
    items = (
        f"{count if count > 1 else ''}{Piece(color, kind).symbol}"
        for color in Color
        for kind in reversed(HAND_KINDS)  # R B G S N L P
        if (count := hands[color][kind])
    )
    return "".join(items) or "-"

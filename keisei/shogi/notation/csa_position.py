"""The start positions of CSA files: ``PI``, ``P1`` to ``P9``, ``P+`` and ``P-``."""

import re
from typing import Final, NamedTuple

from keisei.constants import (
    BOARD_SIZE,
    HAND_LIMITS,
    NUM_HAND_KINDS,
    NUM_SQUARES,
)
from keisei.errors import IllegalPositionError, NotationError
from keisei.shogi.notation.reader import SourceLine
from keisei.shogi.notation.record import STARTPOS
from keisei.shogi.types import (
    HAND_KINDS,
    Color,
    Diagram,
    Piece,
    PieceKind,
    file_of,
    rank_of,
    square,
)

CSA_NAMES: Final = (
    *("FU", "KY", "KE", "GI", "KI", "KA", "HI", "OU"),
    *("TO", "NY", "NK", "NG", "UM", "RY"),
)
"""Two-letter names by kind."""

KIND_BY_NAME: Final = {name: PieceKind(kind) for kind, name in enumerate(CSA_NAMES)}
SIGNS: Final = {"+": Color.BLACK, "-": Color.WHITE}
SIGN_BY_COLOR: Final = ("+", "-")

_ITEM: Final = re.compile(r"([0-9])([0-9])([A-Z]{2})")


class Statement(NamedTuple):
    """A statement of a CSA file: a line, or a part of a line between commas."""

    line: SourceLine
    column: int
    text: str

    def error(self, message: str, offset: int = 0) -> NotationError:
        """Return the error to raise for a fault `offset` characters into the statement."""
        return self.line.error(message, self.column + offset)


def square_digits(sq: int) -> str:
    """Return the digits of a square: ``76`` for 7f."""
    return f"{file_of(sq)}{rank_of(sq)}"


class PositionReader:
    """Builds the start position of a game from its ``P`` statements."""

    def __init__(self) -> None:
        self._board: list[Piece | None] = [None] * NUM_SQUARES
        self._hands = [[0] * NUM_HAND_KINDS, [0] * NUM_HAND_KINDS]
        self._rows: set[int] = set()
        self._whole_board = False
        self._rest_given = False
        self.last: Statement | None = None
        """The last statement read; None without any, which means the usual start."""

    def read(self, statement: Statement) -> None:
        """Read a statement that begins with ``P``."""
        what = statement.text[1:2]
        if what == "I":
            self._read_usual_start(statement)
        elif what in SIGNS:
            self._read_pieces(statement, SIGNS[what])
        elif what and what in "123456789":
            self._read_row(statement, int(what))
        else:
            raise statement.error(f"{statement.text[:2]!r}; expected PI, P1 to P9, P+ or P-")
        self.last = statement

    def diagram(self, turn: Color) -> Diagram:
        """Return the position; `NotationError` if no game can start from it."""
        if self.last is None:
            return Diagram(STARTPOS.board, STARTPOS.hands, turn)
        hands = tuple(self._hands[Color.BLACK]), tuple(self._hands[Color.WHITE])
        diagram = Diagram(tuple(self._board), hands, turn)
        try:
            diagram.validate()
        except IllegalPositionError as error:
            raise self.last.error(f"no game can start here: {error}") from None
        return diagram

    def _read_usual_start(self, statement: Statement) -> None:
        if self.last is not None:
            raise statement.error("PI must be the first line of a position")
        self._board = list(STARTPOS.board)
        self._whole_board = True
        for sq, name, offset in _items(statement):
            piece = None if sq is None else self._board[sq]
            if sq is None or piece is None or CSA_NAMES[piece.kind] != name:
                raise statement.error(
                    f"PI removes pieces from the usual start; there is no {name} on this square",
                    offset,
                )
            self._board[sq] = None

    def _read_row(self, statement: Statement, rank: int) -> None:
        if self._whole_board or rank in self._rows:
            raise statement.error(f"rank {rank} is given twice")
        self._rows.add(rank)
        # Editors strip blanks at the end of a line, and " * " ends in one.
        row = statement.text[2:].rstrip().ljust(3 * BOARD_SIZE)
        if len(row) > 3 * BOARD_SIZE:
            raise statement.error("a rank has nine squares of three characters", 2 + 3 * BOARD_SIZE)
        for index in range(BOARD_SIZE):
            cell = row[3 * index : 3 * index + 3]
            if cell.strip() == "*":
                continue
            if cell[0] not in SIGNS or cell[1:] not in KIND_BY_NAME:
                raise statement.error(
                    f"{cell!r} is not a square; expected ' * ' or a piece such as '+FU'",
                    min(2 + 3 * index, len(statement.text)),
                )
            piece = Piece(SIGNS[cell[0]], KIND_BY_NAME[cell[1:]])
            self._place(statement, 2 + 3 * index, square(9 - index, rank), piece)

    def _read_pieces(self, statement: Statement, color: Color) -> None:
        for sq, name, offset in _items(statement):
            if self._rest_given:
                raise statement.error(
                    "00AL gave all remaining pieces to a hand; it must be last", offset
                )
            if name == "AL":
                if sq is not None:
                    raise statement.error(
                        "AL (all remaining pieces) goes to the hand: 00AL", offset
                    )
                self._give_rest(color)
            elif sq is not None:
                self._place(statement, offset, sq, Piece(color, KIND_BY_NAME[name]))
            elif KIND_BY_NAME[name] in HAND_KINDS:
                self._hands[color][KIND_BY_NAME[name]] += 1
            else:
                raise statement.error(f"{name} cannot be held in hand", offset)

    def _place(self, statement: Statement, offset: int, sq: int, piece: Piece) -> None:
        if self._board[sq] is not None:
            raise statement.error(f"square {square_digits(sq)} is already occupied", offset)
        self._board[sq] = piece

    def _give_rest(self, color: Color) -> None:
        kinds = [piece.kind.unpromoted for piece in self._board if piece is not None]
        for kind, limit in enumerate(HAND_LIMITS):
            used = kinds.count(PieceKind(kind)) + sum(hand[kind] for hand in self._hands)
            self._hands[color][kind] += max(limit - used, 0)
        self._rest_given = True


def _items(statement: Statement) -> list[tuple[int | None, str, int]]:
    """Parse the (square, name, offset) items after ``PI``, ``P+``, ``P-``; square None for 00."""
    items: list[tuple[int | None, str, int]] = []
    text = statement.text.rstrip()
    for offset in range(2, len(text), 4):
        match = _ITEM.fullmatch(text[offset : offset + 4])
        name = match[3] if match else ""
        if match is None or (name not in KIND_BY_NAME and name != "AL"):
            raise statement.error(
                f"{text[offset : offset + 4]!r} is not a piece; expected something like 76FU",
                offset,
            )
        digits = match[1] + match[2]
        if "0" in digits and digits != "00":
            raise statement.error(
                f"{digits} is not a square; expected 11 to 99, or 00 for the hand", offset
            )
        sq = None if digits == "00" else square(int(match[1]), int(match[2]))
        items.append((sq, name, offset))
    return items


def format_start(diagram: Diagram) -> list[str]:
    """Return the lines of a start position and its side to move."""
    turn = SIGN_BY_COLOR[diagram.turn]
    missing = _missing_from_usual_start(diagram)
    if missing is not None:
        return [f"PI{missing}", turn]
    lines = []
    for rank in range(1, BOARD_SIZE + 1):
        row = diagram.board[(rank - 1) * BOARD_SIZE : rank * BOARD_SIZE]
        lines.append(f"P{rank}{''.join(_cell(piece) for piece in row)}")
    for color in Color:
        held = "".join(
            f"00{CSA_NAMES[kind]}" * diagram.hands[color][kind] for kind in reversed(HAND_KINDS)
        )
        if held:
            lines.append(f"P{SIGN_BY_COLOR[color]}{held}")
    return [*lines, turn]


def _missing_from_usual_start(diagram: Diagram) -> str | None:
    """Pieces removed from the usual start, as in ``82HI22KA``; None for other positions."""
    if diagram.hands != STARTPOS.hands:
        return None
    missing = ""
    for sq, (piece, usual) in enumerate(zip(diagram.board, STARTPOS.board, strict=True)):
        if piece != usual:
            if piece is not None or usual is None:
                return None
            missing += square_digits(sq) + CSA_NAMES[usual.kind]
    return missing


def _cell(piece: Piece | None) -> str:
    return " * " if piece is None else SIGN_BY_COLOR[piece.color] + CSA_NAMES[piece.kind]

"""A line of play while it is being read from a file."""

import codecs
import contextlib
import re
from collections.abc import Iterable
from typing import Final, NamedTuple

from keisei.errors import IllegalMoveError, NotationError
from keisei.shogi.game import ShogiGame
from keisei.shogi.types import (
    HAND_KINDS,
    Color,
    Diagram,
    Move,
    Piece,
    PieceKind,
)

UTF8: Final = "utf-8"
SHIFT_JIS: Final = "cp932"
"""Shift-JIS as Windows programs write it: a superset of the standard, as most Shogi files need."""

_NEWLINE: Final = re.compile(r"\r\n|\n|\r")
_DECLARED: Final = re.compile(rb"encoding\s*=\s*([A-Za-z0-9_\-]+)")
_HALF_WIDTH: Final = str.maketrans(
    "０１２３４５６７８９（）／：＋　．\t", "0123456789()/:+ . "
)  # one character for one, so that columns stay true


class SourceLine(NamedTuple):
    """A line of a file, without its line break."""

    number: int
    """Counted from 1."""

    text: str

    def error(self, message: str, column: int = 1) -> NotationError:
        """The error to raise for a fault in this line."""
        return NotationError(message, line=self.number, column=column)


def split_lines(text: str) -> list[SourceLine]:
    """The lines of a text, whatever system broke them; a byte order mark is dropped."""
    lines = _NEWLINE.split(text.removeprefix("\ufeff"))
    return [SourceLine(number, line) for number, line in enumerate(lines, start=1)]


def text_lines(text: str) -> list[str]:
    """The lines of a comment; an empty comment has none."""
    return _NEWLINE.split(text) if text else []


def half_width(text: str) -> str:
    """The text with full-width digits, blanks and punctuation made half-width, place by place."""
    return text.translate(_HALF_WIDTH)


def quote(text: str, limit: int = 16) -> str:
    """The text between quotation marks, for a message; Japanese blanks stay readable."""
    shown = text if len(text) <= limit else f"{text[:limit]}..."
    return repr(shown).replace("\\u3000", "　")


class Scanner:
    """Reads one line from left to right. Full- and half-width signs count as the same."""

    def __init__(self, line: SourceLine, start: int = 0) -> None:
        self.line = line
        self._text = half_width(line.text)
        self.index = start

    def match(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """Step over the pattern if it comes next."""
        match = pattern.match(self._text, self.index)
        if match is not None:
            self.index = match.end()
        return match

    def expect(self, pattern: re.Pattern[str], what: str) -> re.Match[str]:
        """Step over the pattern, which must come next."""
        match = self.match(pattern)
        if match is None:
            raise self.error(f"{what} expected, not {self.found}")
        return match

    def skip_blanks(self) -> None:
        """Step over blanks."""
        self.match(_BLANKS)

    @property
    def at_end(self) -> bool:
        """Whether the line has been read to its end."""
        return self.index >= len(self._text)

    @property
    def found(self) -> str:
        """What comes next, quoted for a message."""
        return quote(self.line.text[self.index :])

    def error(self, message: str, index: int | None = None) -> NotationError:
        """The error to raise for a fault here, or at another index of this line."""
        return self.line.error(message, (self.index if index is None else index) + 1)


_BLANKS: Final = re.compile(r"\s*")


def decode(data: bytes) -> str:
    """The text of a game file: UTF-8 with or without mark, or Shift-JIS, found by looking.

    A declared encoding (``'CSA encoding=...``, ``#KIF ... encoding=...``) is tried first, not
    trusted: editors convert files and leave the declaration as it was.
    """
    first_line = data[:200].splitlines()[0] if data else b""
    declared = _DECLARED.search(first_line)
    candidates = [UTF8, SHIFT_JIS]
    if declared is not None and b"JIS" in declared[1].upper():
        candidates.reverse()
    fault = 0
    for encoding in candidates:
        try:
            return data.decode(encoding).removeprefix("\ufeff")
        except UnicodeDecodeError as error:  # the encoding that got further was likelier meant
            fault = max(fault, error.start)
    line = data.count(b"\n", 0, fault) + 1
    column = fault - data.rfind(b"\n", 0, fault)
    raise NotationError(
        "neither UTF-8 nor Shift-JIS text; save the file as UTF-8", line=line, column=column
    )


def known_encoding(name: str) -> str:
    """The Python name of an encoding that game files can have, under any of its names."""
    with contextlib.suppress(LookupError):
        known = codecs.lookup(name).name
        if known in (UTF8, "utf-8-sig"):
            return known
        if known in (SHIFT_JIS, "shift_jis"):
            return SHIFT_JIS
    raise NotationError(f"{name!r} is no encoding of game files; 'utf-8' and 'cp932' are")


def encode(text: str, encoding: str) -> bytes:
    """The bytes of a text; `NotationError` names the first character that the encoding lacks."""
    try:
        return text.encode(encoding)
    except UnicodeEncodeError as error:
        line = text.count("\n", 0, error.start) + 1
        column = error.start - text.rfind("\n", 0, error.start)
        raise NotationError(
            f"{text[error.start]!r} cannot be written in {encoding}; "
            "save as UTF-8 instead (.kifu, .ki2u, or encoding='utf-8')",
            line=line,
            column=column,
        ) from None


class Replay:
    """A game that is being walked through, with the board at hand in plain Python.

    Notations ask for the piece on a square at every move; a list answers that at once, where
    `ShogiGame.diagram` would draw the whole board each time.
    """

    def __init__(self, start: Diagram, moves: Iterable[Move] = ()) -> None:
        self.game = ShogiGame(start)
        self.board: list[Piece | None] = list(start.board)
        self.turn: Color = start.turn
        self.last_target: int | None = None
        """Where the move before went; None at the start."""
        for move in moves:
            self.play(move)

    def moving_piece(self, move: Move) -> Piece:
        """The piece that a move is about to move or drop."""
        if move.drop is not None:
            return Piece(self.turn, move.drop)
        piece = None if move.from_square is None else self.board[move.from_square]
        if piece is None:
            raise IllegalMoveError(f"{move}: there is no piece to move")
        return piece

    def holds(self, kind: PieceKind) -> bool:
        """Whether the side to move has a piece of this kind in hand."""
        return kind in HAND_KINDS and self.game.hand(self.turn)[kind] > 0

    def play(self, move: Move) -> None:
        """Play a move; `IllegalMoveError` if the rules forbid it, and nothing has changed then."""
        self.game.push(move)
        piece = self.moving_piece(move)
        if move.from_square is not None:
            self.board[move.from_square] = None
        self.board[move.to_square] = (
            Piece(piece.color, piece.kind.promoted) if move.promote else piece
        )
        self.last_target = move.to_square
        self.turn = self.turn.opponent

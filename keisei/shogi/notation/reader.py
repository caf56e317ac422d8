"""Tools shared by the readers of all formats: encodings, source lines, scanner, line of play."""

import codecs
import contextlib
import re
from typing import Final, NamedTuple

from keisei.errors import IllegalMoveError, IllegalPositionError, NotationError
from keisei.shogi.notation.record import MAX_SECONDS, NEWLINE, Ending, RecordedMove, Replay, Result
from keisei.shogi.types import Color, Diagram, Move

UTF8: Final = "utf-8"
SHIFT_JIS: Final = "cp932"
"""Shift-JIS of Windows programs: a superset of the standard, which most Shogi files need."""

EUC_JP: Final = "euc_jp"
"""The encoding of old Unix programs and of game servers; it is read, not written."""

MAX_LINE_LENGTH: Final = 1 << 16
"""Characters of a line: a USI line of this length has 13,000 moves. The time to read a line is
proportional to its length, and this bounds it."""

_DECLARED: Final = re.compile(rb"encoding\s*=\s*([A-Za-z0-9_\-]+)")
_HALF_WIDTH: Final = str.maketrans(
    "０１２３４５６７８９（）／：＋　．\t", "0123456789()/:+ . "
)  # one character for one, so that the columns of error messages stay right


class SourceLine(NamedTuple):
    """A line of a file, without its line break."""

    number: int
    """Counted from 1."""

    text: str

    def error(self, message: str, column: int = 1) -> NotationError:
        """Return the error to raise for a fault in this line."""
        return NotationError(message, line=self.number, column=column)


def split_lines(text: str) -> list[SourceLine]:
    """Split a text into lines, with any line breaks; a byte order mark is dropped.

    Raises:
        NotationError: A line is longer than `MAX_LINE_LENGTH`.
    """
    texts = NEWLINE.split(text.removeprefix("\ufeff"))
    for number, line in enumerate(texts, start=1):
        if len(line) > MAX_LINE_LENGTH:
            raise NotationError(
                f"this line has {len(line):,} characters; a game file has at most "
                f"{MAX_LINE_LENGTH:,} in a line",
                line=number,
                column=MAX_LINE_LENGTH + 1,
            )
    return [SourceLine(number, line) for number, line in enumerate(texts, start=1)]


def half_width(text: str) -> str:
    """Replace full-width digits, blanks and punctuation by half-width ones, one for one."""
    return text.translate(_HALF_WIDTH)


def quote(text: str, limit: int = 16) -> str:
    """Quote a text for a message, shortened to `limit`; full-width blanks stay readable."""
    shown = text if len(text) <= limit else f"{text[:limit]}..."
    return repr(shown).replace("\\u3000", "　")


class Scanner:
    """Scans one line from left to right. Full-width and half-width characters are equivalent."""

    def __init__(self, line: SourceLine, start: int = 0) -> None:
        self.line = line
        self._text = half_width(line.text)
        self.index = start

    def match(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """Consume the pattern if it comes next."""
        match = pattern.match(self._text, self.index)
        if match is not None:
            self.index = match.end()
        return match

    def looks_at(self, pattern: re.Pattern[str]) -> bool:
        """Return whether the pattern comes next."""
        return pattern.match(self._text, self.index) is not None

    def find(self, pattern: re.Pattern[str]) -> re.Match[str] | None:
        """Return where the pattern comes next or later in the line."""
        return pattern.search(self._text, self.index)

    def take(self, end: int | None = None) -> str:
        """Consume the text up to an index, by default the end of the line, without its blanks."""
        begin, self.index = self.index, len(self._text) if end is None else end
        return self.line.text[begin : self.index].strip()

    def expect(self, pattern: re.Pattern[str], what: str) -> re.Match[str]:
        """Consume the pattern; `NotationError` if it does not come next."""
        match = self.match(pattern)
        if match is None:
            raise self.error(f"{what} expected, not {self.found}")
        return match

    def skip_blanks(self) -> None:
        """Consume blanks."""
        self.match(_BLANKS)

    @property
    def at_end(self) -> bool:
        """Whether the line has been read to its end."""
        return self.index >= len(self._text)

    @property
    def found(self) -> str:
        """The text that comes next, quoted for a message."""
        return quote(self.line.text[self.index :])

    def error(self, message: str, index: int | None = None) -> NotationError:
        """Return the error to raise for a fault here, or at another index of this line."""
        return self.line.error(message, (self.index if index is None else index) + 1)


_BLANKS: Final = re.compile(r"\s*")


def decode(data: bytes) -> str:
    """Decode a game file: UTF-8 with or without byte order mark, EUC-JP or Shift-JIS, by trying.

    EUC-JP is tried before Shift-JIS, in which nearly all bytes mean something: Japanese text in
    Shift-JIS is practically never valid EUC-JP. A declared encoding (``'CSA encoding=...``, ``#KIF
    ... encoding=...``) is tried first but not trusted: editors convert files and leave the
    declaration unchanged.
    """
    first_line = data[:200].splitlines()[0] if data else b""
    declared = _DECLARED.search(first_line)
    name = b"" if declared is None else declared[1].upper()
    first = SHIFT_JIS if b"JIS" in name else EUC_JP if name.startswith(b"EUC") else UTF8
    candidates = dict.fromkeys((first, UTF8, EUC_JP, SHIFT_JIS))
    fault = 0
    for encoding in candidates:
        try:
            return data.decode(encoding).removeprefix("\ufeff")
        except UnicodeDecodeError as error:  # report the fault of the encoding that got further
            fault = max(fault, error.start)
    line = data.count(b"\n", 0, fault) + 1
    column = fault - data.rfind(b"\n", 0, fault)
    raise NotationError(
        "not text in UTF-8, Shift-JIS or EUC-JP; save the file as UTF-8", line=line, column=column
    )


def known_encoding(name: str) -> str:
    """Return the Python name of an encoding of game files, given by any of its aliases."""
    with contextlib.suppress(LookupError):
        known = codecs.lookup(name).name
        if known in (UTF8, "utf-8-sig"):
            return known
        if known in (SHIFT_JIS, "shift_jis"):
            return SHIFT_JIS
    raise NotationError(f"{name!r} is not an encoding of game files; use 'utf-8' or 'cp932'")


def encode(text: str, encoding: str) -> bytes:
    """Encode a text; `NotationError` names the first character that the encoding lacks."""
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


class LineBuilder:
    """Collects the moves of a line of play and their comments while a file is read.

    Every move is played at once. An illegal one becomes a `NotationError` at its place in the
    file, unless the game ends there because of it. Comments belong to what was read last: the
    start, a move, or the end.
    """

    def __init__(self, start: Diagram, source: SourceLine, stem: Replay | None = None) -> None:
        """Begin a line, at the start of the game or where `stem` is; raises `NotationError`."""
        try:
            self.replay = Replay(start) if stem is None else stem
        except IllegalPositionError as error:
            raise source.error(f"no game can start here: {error}") from None
        self.start = start
        self.ending: Ending | None = None
        self.has_unknown_end = False
        """Whether the line ended by a word of unknown meaning."""

        self._notes = [_Notes()]
        """Notes on the start, each move, an illegal last move, and the end."""
        self._moves: list[Move] = []
        self._foul: NotationError | None = None
        """The error for an illegal move that was read last."""

    def play(self, move: Move, source: SourceLine, column: int, written: str) -> None:
        """Add a move; `written` is its text in the file.

        An illegal move is not played. It is accepted only if the file then says that the game
        ended by it; the reader must call `require_legal` before it reads anything else.
        """
        self._notes.append(_Notes())
        try:
            self.replay.play(move)
        except IllegalMoveError as error:
            self._foul = source.error(f"{written} is illegal: {error}", column)
            self.add_comment(f"illegal move {error}")
        else:
            self._moves.append(move)

    def end(self, ending: Ending) -> None:
        """Set the ending of the line; no move can follow."""
        if self._foul is not None:
            own_foul = (Ending.BLACK_FOUL, Ending.WHITE_FOUL)[self.replay.turn]
            if ending not in (Ending.ILLEGAL_MOVE, own_foul):
                raise self._foul
            ending, self._foul = Ending.ILLEGAL_MOVE, None
        self.ending = ending
        self._notes.append(_Notes())

    def end_with_word(self, word: str) -> None:
        """End the line by a word of unknown meaning: broken off, with the word as a comment.

        The reader adds anything that follows to the comment, too, so that nothing is lost.
        """
        self.end(Ending.INTERRUPTED)
        self.add_comment(word)
        self.has_unknown_end = True

    def require_legal(self) -> None:
        """Raise if the last move was illegal."""
        if self._foul is not None:
            raise self._foul

    def require_open(self, source: SourceLine, column: int) -> None:
        """Raise if the line has ended already."""
        if self.ending is not None:
            raise source.error(
                f"the game ended before this ({self.ending.value}); nothing can follow", column
            )

    def set_seconds(self, seconds: float, source: SourceLine, column: int) -> None:
        """Set the time used for the last move, or before the end."""
        if seconds > MAX_SECONDS:
            raise source.error(
                f"{seconds:.0f} seconds; a move can take at most {MAX_SECONDS}", column
            )
        self._notes[-1].seconds = seconds

    def add_comment(self, text: str) -> None:
        """Add a line to the comment on what was read last."""
        self._notes[-1].comment.append(text)

    def add_bookmark(self, text: str) -> None:
        """Set the bookmark of the current position."""
        self._notes[-1].bookmark = text

    @property
    def comment(self) -> str:
        """Comment before the first move."""
        return "\n".join(self._notes[0].comment)

    @property
    def is_empty(self) -> bool:
        """Whether there is neither a move nor an end yet."""
        return len(self._notes) == 1

    @property
    def length(self) -> int:
        """Number of moves so far, including an illegal last one."""
        return len(self._moves) + (self._foul is not None)

    @property
    def turn(self) -> Color:
        """The side to move in the file, where an illegal last move counts as played."""
        return self.replay.turn if self._foul is None else self.replay.turn.opponent

    @property
    def moves(self) -> list[RecordedMove]:
        """The moves so far."""
        return [
            RecordedMove(move, notes.seconds, "\n".join(notes.comment), notes.bookmark)
            for move, notes in zip(self._moves, self._notes[1:], strict=False)
        ]

    @property
    def result(self) -> Result | None:
        """The result of the line, None if it has not ended."""
        if self.ending is None:
            return None
        notes = self._notes[len(self._moves) + 1 :]  # including those on an illegal move
        times = [note.seconds for note in notes if note.seconds is not None]
        comment = "\n".join(line for note in notes for line in note.comment)
        return Result(self.ending, times[0] if times else None, comment)


class _Notes:
    """Time, comment and bookmark of one move."""

    def __init__(self) -> None:
        self.seconds: float | None = None
        self.comment: list[str] = []
        self.bookmark = ""

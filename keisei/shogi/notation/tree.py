"""The frame of KIF and KI2 files: preamble, moves, remarks, variations, closing lines."""

import re
from abc import ABC, abstractmethod
from typing import Final

from keisei.errors import NotationError
from keisei.shogi.diagram import Diagram
from keisei.shogi.moves import Move
from keisei.shogi.notation.line import LineBuilder
from keisei.shogi.notation.preamble import Preamble
from keisei.shogi.notation.record import STARTPOS, GameRecord, RecordedMove, Result, Variation
from keisei.shogi.notation.summary import is_summary, parse_summary
from keisei.shogi.notation.text import SourceLine, half_width, quote, split_lines, text_lines

_COMMENT: Final = "*"
_BOOKMARK: Final = "&"
_BRANCH: Final = re.compile(r"\s*変化\s*:\s*([0-9]{1,5})\s*手?\s*")


class TreeReader(ABC):
    """Reads a record line by line; a subclass knows how its format writes moves."""

    def __init__(self) -> None:
        self.start: Diagram = STARTPOS
        self._preamble = Preamble()
        self._comment: list[str] = []
        self._current: LineBuilder | None = None
        self._main: tuple[list[RecordedMove], Result | None] | None = None
        self._variations: list[Variation] = []
        self._path: list[Move] = []
        """The moves of the line before the current one, from the start of the game."""
        self._branch_ply = 1

    @abstractmethod
    def is_body(self, line: SourceLine) -> bool:
        """Whether a line above the moves is the first line of moves."""

    @abstractmethod
    def read_body(self, line: SourceLine) -> None:
        """Read a line of moves into `current`."""

    @property
    def current(self) -> LineBuilder:
        """The line of play that is being read."""
        assert self._current is not None
        return self._current

    @property
    def next_ply(self) -> int:
        """Number of the next move of the current line."""
        return self._branch_ply + self.current.length

    def read(self, text: str, *, variations: bool = True) -> GameRecord:
        """Read a whole text, or all that comes before the variations."""
        lines = split_lines(text)
        content = False
        for line in lines:
            if not variations and _branch_of(line) is not None:
                break
            if line.text.strip() and not line.text.lstrip().startswith("#"):
                self._read_line(line)
                content = True
        if not content:
            raise NotationError("no game in this text: it is empty")
        if self._current is None:
            self._begin(lines[-1])
        self._close_line()
        assert self._main is not None
        moves, result = self._main
        return GameRecord(
            start=self.start,
            moves=moves,
            headers=self._preamble.headers,
            comment="\n".join(self._comment),
            result=result,
            variations=self._variations,
        )

    def _read_line(self, line: SourceLine) -> None:
        text = line.text.lstrip()
        if text.startswith(_COMMENT):
            self._add_comment(text.removeprefix(_COMMENT))
        elif text.startswith(_BOOKMARK):
            if self._current is not None:
                self._current.add_bookmark(text.removeprefix(_BOOKMARK).strip())
        elif is_summary(text):
            self._read_summary(line)
        elif (branch := _branch_of(line)) is not None:
            self._branch(line, int(branch[1]), branch.start(1) + 1)
        elif self._current is not None:
            self.read_body(line)
        elif self.is_body(line):
            self._begin(line)
            self.read_body(line)
        elif not self._preamble.read(line):
            raise line.error(
                f"{quote(line.text.strip())} is neither a header such as 先手：名前 nor a move"
            )

    def _add_comment(self, text: str) -> None:
        if self._current is None:
            self._comment.append(text)
        else:
            self._current.add_comment(text)

    def _begin(self, line: SourceLine) -> None:
        self.start = self._preamble.start()
        self._current = LineBuilder(self.start, line)

    def _read_summary(self, line: SourceLine) -> None:
        """A closing line; it decides only where no word such as 投了 did."""
        if self._current is None:
            self._begin(line)
        current = self.current
        if current.ending is not None:
            return
        try:
            ending = parse_summary(half_width(line.text), current.replay.turn)
        except NotationError as error:
            current.require_legal()
            raise line.error(error.reason) from None
        current.end(ending)

    def _branch(self, line: SourceLine, ply: int, column: int) -> None:
        """Begin a variation: it leaves the line before it, cut back to `ply` - 1 moves."""
        if self._current is None:
            self._begin(line)
        self._close_line()
        if not 1 <= ply <= len(self._path) + 1:
            raise line.error(
                f"a variation at move {ply}, but the line before it has {len(self._path)} moves",
                column,
            )
        self._branch_ply = ply
        self._current = LineBuilder(self.start, line, self._path[: ply - 1])

    def _close_line(self) -> None:
        """Put the line that was read where it belongs."""
        current = self.current
        current.require_legal()
        moves, result = current.moves, current.result
        self._path = [*self._path[: self._branch_ply - 1], *(moved.move for moved in moves)]
        if self._main is None:
            self._main = (moves, result)
        elif moves or result is not None:
            self._variations.append(Variation(self._branch_ply, moves, result, current.comment))


def _branch_of(line: SourceLine) -> re.Match[str] | None:
    """The first line of a variation, with its move's number; None if it is another line."""
    return _BRANCH.fullmatch(half_width(line.text))


def remark_lines(comment: str, bookmark: str = "") -> list[str]:
    """The lines of what is said about a move: a comment, and a bookmark if there is one."""
    lines = [_COMMENT + line for line in text_lines(comment)]
    return [*lines, _BOOKMARK + bookmark] if bookmark else lines

"""KIF game records: one numbered line for each move, as most Japanese programs write them.

`TreeReader` reads the structure that KIF and KI2 share: headers, comments, variations.
"""

import re
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Final

from keisei.errors import NotationError
from keisei.shogi.notation.japanese import (
    PIECE_NAMES,
    format_ending,
    format_square,
    format_summary,
    is_summary,
    parse_summary,
    scan_ending,
    scan_mark,
    scan_piece,
    scan_target,
)
from keisei.shogi.notation.last_words import begins_as_move
from keisei.shogi.notation.preamble import Preamble, preamble_lines, side_names
from keisei.shogi.notation.reader import (
    LineBuilder,
    Scanner,
    SourceLine,
    half_width,
    quote,
    split_lines,
)
from keisei.shogi.notation.record import (
    STARTPOS,
    Ending,
    GameRecord,
    RecordedMove,
    Replay,
    Result,
    Variation,
    text_lines,
)
from keisei.shogi.render.glyphs import display_width
from keisei.shogi.types import (
    HAND_KINDS,
    Color,
    Diagram,
    Move,
    file_of,
    rank_of,
    square,
)

_COMMENT: Final = "*"
_BOOKMARK: Final = "&"
_BRANCH: Final = re.compile(r"\s*変化\s*:\s*([0-9]{1,5})\s*(?:手\s*)?")


class TreeReader(ABC):
    """Reads a record line by line; a subclass parses the moves of its format."""

    def __init__(self) -> None:
        self.start: Diagram = STARTPOS
        self._preamble = Preamble()
        self._comment: list[str] = []
        self._current: LineBuilder | None = None
        self._main: tuple[list[RecordedMove], Result | None] | None = None
        self._variations: list[Variation] = []
        self._path: list[Move] = []
        """Moves of the line before the current one, from the start of the game."""
        self._branch_ply = 1

    @abstractmethod
    def is_body(self, line: SourceLine) -> bool:
        """Return whether a line is the first line of moves."""

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
        """Read a whole text, or the part before the variations."""
        lines = split_lines(text)
        for line in lines:
            if not variations and _branch_of(line) is not None:
                break
            if line.text.strip() and not line.text.lstrip().startswith("#"):
                self._read_line(line)
        if self._current is None:
            self._begin(lines[-1])
        has_unknown_end = self.current.has_unknown_end
        self._close_line()
        assert self._main is not None
        moves, result = self._main
        is_known = bool(moves or self._variations) or self._preamble.is_known
        if not is_known and (result is None or has_unknown_end):
            raise NotationError(
                "there is no game in this text: no move, no position and no header such as 先手："
            )
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
        """Read a closing line; it sets the ending unless a word such as 投了 did."""
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
        if ending is None:
            current.end_with_word(line.text.strip())
        else:
            current.end(ending)

    def _branch(self, line: SourceLine, ply: int, column: int) -> None:
        """Start a variation, which replaces the line before it from move `ply` on."""
        if self._current is None:
            self._begin(line)
        self._close_line()
        if not 1 <= ply <= len(self._path) + 1:
            raise line.error(
                f"a variation at move {ply}, but the line before it has {len(self._path)} moves",
                column,
            )
        self._branch_ply = ply
        replay = self.current.replay
        replay.rewind(ply - 1)
        self._current = LineBuilder(self.start, line, replay)

    def _close_line(self) -> None:
        """Store the line that was read as the main line or a variation."""
        current = self.current
        current.require_legal()
        moves, result = current.moves, current.result
        self._path = [*self._path[: self._branch_ply - 1], *(moved.move for moved in moves)]
        if self._main is None:
            self._main = (moves, result)
        elif moves or result is not None:
            self._variations.append(Variation(self._branch_ply, moves, result, current.comment))


def _branch_of(line: SourceLine) -> re.Match[str] | None:
    """Match the first line of a variation, which has the number of a move; None for other lines."""
    return _BRANCH.fullmatch(half_width(line.text))


def remark_lines(comment: str, bookmark: str = "") -> list[str]:
    """Return the lines of a comment, and of a bookmark if there is one."""
    lines = [_COMMENT + line for line in text_lines(comment)]
    return [*lines, _BOOKMARK + bookmark] if bookmark else lines


_FIRST_MOVE: Final = re.compile(r"\s*[0-9]{1,5}\s+(?![0-9]\s)\S")  # not the files of a diagram
_NUMBER: Final = re.compile(r"\s*([0-9]{1,5})\s+(?=\S)")
_PROMOTION: Final = re.compile(r"成|不成|生|")
_DROP: Final = re.compile(r"打\s*")
_ORIGIN: Final = re.compile(r"\(\s*([1-9])\s*([1-9])\s*\)\s*")
_TIME: Final = re.compile(
    r"\(\s*(?:([0-9]{1,3}):\s*)?([0-9]{1,5}):\s*([0-9]{1,5}(?:\.[0-9]{1,9})?)\s*(?:/[^()]*+)?\)\s*"
)
_BRANCH_MARK: Final = re.compile(r"\+?\s*")
_COLUMN_TITLES: Final = "手数----指手---------消費時間--"


def read_kif(text: str, *, variations: bool = True) -> GameRecord:
    """Read the game of a KIF text, with or without its variations.

    Raises `NotationError` with the line and column of a fault.
    """
    return _KifReader().read(text, variations=variations)


def write_kif(record: GameRecord) -> str:
    """Write a record as KIF, in which times are whole seconds: fractions are cut off."""
    lines = [*preamble_lines(record), _COLUMN_TITLES, *remark_lines(record.comment)]
    writer = _LineWriter(record)
    lines += writer.line(0, record.moves, record.result)
    for index, variation in enumerate(record.variations):
        lines += ["", f"変化：{variation.ply}手", *remark_lines(variation.comment)]
        lines += writer.line(index + 1, variation.moves, variation.result)
    return "\n".join(lines) + "\n"


class _KifReader(TreeReader):
    """Reads numbered lines of moves."""

    def is_body(self, line: SourceLine) -> bool:
        return Scanner(line).match(_FIRST_MOVE) is not None

    def read_body(self, line: SourceLine) -> None:
        scanner = Scanner(line)
        current = self.current
        if current.has_unknown_end:
            current.add_comment(line.text.strip())
            return
        current.require_open(line, scanner.index + 1)
        self._read_number(scanner)
        index = scanner.index
        scan_mark(scanner, current.turn)
        ending = scan_ending(scanner, current.turn)
        time = scanner.find(_TIME)
        if ending is not None or not (begins_as_move(scanner) or scanner.looks_at(_TIME)):
            self._read_end(scanner, ending, time)
        else:
            current.require_legal()
            move = scan_move(scanner, current.replay)
            current.play(move, line, index + 1, line.text[index : scanner.index].strip())
            scanner.skip_blanks()
            time = scanner.match(_TIME)
            scanner.match(_BRANCH_MARK)
            if not scanner.at_end:
                raise scanner.error(
                    f"{scanner.found} after the move; only a time such as ( 0:16/00:00:16) can "
                    "follow"
                )
        if time is not None:
            hours, minutes, seconds = int(time[1] or 0), int(time[2]), float(time[3])
            current.set_seconds(hours * 3600 + minutes * 60 + seconds, line, time.start() + 1)

    def _read_end(
        self, scanner: Scanner, ending: Ending | None, time: re.Match[str] | None
    ) -> None:
        """End the line of play; text around the time becomes a comment, as do unknown words."""
        texts = [scanner.take(None if time is None else time.start())]
        if time is not None:
            scanner.take(time.end())
            texts.append(scanner.take())
        words = " ".join(text for text in texts if text)
        if f" {words}".endswith((" +", " ＋")):  # the mark of a move with variations
            words = words[:-1].rstrip()
        if ending is None:
            self.current.end_with_word(words)
            return
        self.current.end(ending)
        if words:
            self.current.add_comment(words)

    def _read_number(self, scanner: Scanner) -> None:
        """Read the number of a move; `NotationError` if it is not the next one."""
        match = scanner.expect(_NUMBER, "the number of a move")
        number, expected = int(match[1]), self.next_ply
        if number != expected:
            self.current.require_legal()
            raise scanner.error(f"this is move {expected}, not {number}", match.start(1))


def scan_move(scanner: Scanner, replay: Replay) -> Move:
    """Scan a move: ７六歩(77), 同　銀成(31), ５五角打."""
    scan_mark(scanner, replay.turn)
    target = scan_target(scanner, replay.last_target)
    piece_index = scanner.index
    kind = scan_piece(scanner)
    promotion = scanner.expect(_PROMOTION, "")[0]
    if scanner.match(_DROP):
        if promotion or kind not in HAND_KINDS:
            raise scanner.error("打 drops a piece from the hand, unpromoted", piece_index)
        return Move(None, target, False, kind)
    scanner.skip_blanks()
    origin_index = scanner.index
    origin = scanner.expect(_ORIGIN, "the origin in brackets, as in (77), or 打")
    from_square = square(int(origin[1]), int(origin[2]))
    digits = origin[1] + origin[2]
    piece = replay.board[from_square]
    if piece is None or piece.color is not replay.turn:
        raise scanner.error(f"{replay.turn.name.title()} has no piece on {digits}", origin_index)
    if piece.kind is not kind:
        raise scanner.error(
            f"the piece on {digits} is {PIECE_NAMES[piece.kind]}, not {PIECE_NAMES[kind]}",
            piece_index,
        )
    if from_square == target:
        raise scanner.error("the piece is already on this square", origin_index)
    return Move(from_square, target, promotion == "成")


class _LineWriter:
    """Writes the main line and the variations of a record one after the other.

    In a time proportional to their moves: no line is looked through again for those after it.
    """

    def __init__(self, record: GameRecord) -> None:
        self._start: Diagram = record.start
        self._sides = side_names(record.start)
        self._plies = [1, *(variation.ply for variation in record.variations)]
        self._next_earlier = _next_smaller(self._plies)
        self._clocks = [(0.0, 0.0)]
        """Total times of both sides before each move of the current line."""
        self._replay = Replay(record.start)

    def line(self, index: int, moves: list[RecordedMove], result: Result | None) -> Iterator[str]:
        """Yield the text lines of the main line (0) or of a variation (its index + 1)."""
        ply = self._plies[index]
        branched = set(self._branches(index))
        del self._clocks[ply:]
        replay = self._replay
        replay.rewind(ply - 1)
        clock = list(self._clocks[-1])
        for recorded in moves:
            mover = replay.turn
            text = _format_move(replay, recorded.move)
            time = _format_time(clock, mover, recorded.seconds)
            self._clocks.append((clock[0], clock[1]))
            mark = "+" if ply in branched else ""
            yield f"{ply:4} {_pad(text, time or mark)}{time}{mark}"
            yield from remark_lines(recorded.comment, recorded.bookmark)
            ply += 1
        if result is not None:
            word = format_ending(result.ending, replay.turn)
            time = _format_time(clock, replay.turn, result.seconds)
            yield f"{ply:4} {_pad(word, time)}{time}"
            yield from remark_lines(result.comment)
            yield format_summary(result.ending, ply - 1, replay.turn, self._sides)

    def _branches(self, index: int) -> Iterator[int]:
        """Yield the plies of a line that later variations replace, from its last one back."""
        later = index + 1
        while later < len(self._plies) and self._plies[later] >= self._plies[index]:
            yield self._plies[later]
            later = self._next_earlier[later]


def _next_smaller(numbers: list[int]) -> list[int]:
    """Return for each number the index of the next smaller one; their count if there is none."""
    following = [len(numbers)] * len(numbers)
    waiting: list[int] = []
    for index, number in enumerate(numbers):
        while waiting and numbers[waiting[-1]] > number:
            following[waiting.pop()] = index
        waiting.append(index)
    return following


def _format_move(replay: Replay, move: Move) -> str:
    """Play the move and return its text."""
    target = "同　" if move.to_square == replay.last_target else format_square(move.to_square)
    name = PIECE_NAMES[replay.moving_piece(move).kind]
    replay.play(move)
    if move.from_square is None:
        return f"{target}{name}打"
    origin = f"({file_of(move.from_square)}{rank_of(move.from_square)})"
    return f"{target}{name}{'成' if move.promote else ''}{origin}"


def _format_time(clock: list[float], mover: Color, seconds: float | None) -> str:
    """Format the time of a move and the mover's total time: ``( 0:16/00:00:16)``."""
    if seconds is None:
        return ""
    clock[mover] += seconds
    minutes, rest = divmod(int(seconds), 60)
    total_minutes, total_rest = divmod(int(clock[mover]), 60)
    total = f"{total_minutes // 60:02}:{total_minutes % 60:02}:{total_rest:02}"
    return f"({minutes:2}:{rest:02}/{total})"


def _pad(text: str, follows: str) -> str:
    """Pad the text to 13 columns (Japanese characters take two) if something follows."""
    return text + " " * max(13 - display_width(text), 1) if follows else text

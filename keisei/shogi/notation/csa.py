"""CSA game records, the standard of the Computer Shogi Association: versions 2.2 and 3.0.

Both versions are read, independent of the version that a file declares. Comments are the lines
that begin with ``'*``; other lines that begin with ``'`` are ignored, as the standard says.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Final, Literal

from keisei.errors import NotationError
from keisei.shogi.notation import headers as header
from keisei.shogi.notation.csa_position import (
    CSA_NAMES,
    KIND_BY_NAME,
    SIGN_BY_COLOR,
    SIGNS,
    PositionReader,
    Statement,
    format_start,
    square_digits,
)
from keisei.shogi.notation.reader import LineBuilder, split_lines
from keisei.shogi.notation.record import Ending, GameRecord, RecordedMove, Replay, text_lines
from keisei.shogi.types import (
    HAND_KINDS,
    Color,
    Move,
    PieceKind,
    square,
)

CsaVersion = Literal["2.2", "3.0"]

_KEY_BY_KEYWORD: Final = {
    "N+": header.BLACK,
    "N-": header.WHITE,
    "$EVENT": header.EVENT,
    "$SITE": header.SITE,
    "$START_TIME": header.START_TIME,
    "$END_TIME": header.END_TIME,
    "$OPENING": header.OPENING,
    "$TIME": header.TIME,
    "$TIME+": header.BLACK_TIME,
    "$TIME-": header.WHITE_TIME,
    "$MAX_MOVES": header.MAX_MOVES,
    "$JISHOGI": header.JISHOGI,
    "$NOTE": header.NOTE,
}
_KEYWORD_BY_KEY: Final = {key: keyword for keyword, key in _KEY_BY_KEYWORD.items()}
_ALIASES: Final = {"$TIMET+": "$TIME+", "$TIMET-": "$TIME-"}
"""Keywords in the text of the 3.0 standard, whose examples have the others."""

_TIME_LIMIT: Final = re.compile(r"([0-9]{1,4}):([0-5][0-9])\+([0-9]{1,4})")
_ESCAPE: Final = re.compile(r"\\(n|\\)")


def read_header(statement: Statement, headers: dict[str, str]) -> None:
    """Read a header into `headers`; one without a value is left out."""
    text = statement.text
    if text.startswith(("N+", "N-")):
        keyword, value = text[:2], text[2:]
    elif text.startswith("$") and text.find(":") > 1:
        keyword, _, value = text.partition(":")
    else:
        raise statement.error(
            f"{text[:16]!r} is not a header; expected 'N+name', 'N-name' or '$EVENT:text'"
        )
    value = value.strip()
    keyword = _ALIASES.get(keyword, keyword)
    key = _KEY_BY_KEYWORD.get(keyword, keyword.removeprefix("$").strip())
    if keyword == "$TIME_LIMIT" and (limit := _TIME_LIMIT.fullmatch(value)):
        main = int(limit[1]) * 3600 + int(limit[2]) * 60
        key, value = header.TIME, str(header.TimeLimit(main, int(limit[3])))
    if key == header.NOTE:
        value = _ESCAPE.sub(lambda escape: "\n" if escape[1] == "n" else "\\", value)
    if key and value:
        headers[key] = value


def header_lines(headers: Mapping[str, str], version: CsaVersion) -> Iterator[str]:
    """Return the lines of all headers, the standard ones first."""
    for key in header.in_order(headers):
        keyword, value = _KEYWORD_BY_KEY.get(key, f"${key}"), headers[key]
        if key == header.NOTE:
            value = value.replace("\\", "\\\\").replace("\n", "\\n")
        if key == header.TIME and version == "2.2":
            keyword, value = _time_limit_2_2(value)
        if not key or ":" in keyword or len(text_lines(f"{keyword}{value}")) > 1:
            raise NotationError(
                f"header {key!r} cannot be written: it needs a name without ':' and a value of "
                "one line"
            )
        yield f"{keyword}{'' if keyword in ('N+', 'N-') else ':'}{value}"


def _time_limit_2_2(value: str) -> tuple[str, str]:
    """Return ``$TIME_LIMIT:00:25+30`` if that can express the limit, else that of version 3.0."""
    limit = header.TimeLimit.parse(value)
    if limit is None or limit.increment or limit.main % 60 or limit.byoyomi > 99:
        return "$TIME", value
    hours, minutes = divmod(limit.main // 60, 60)
    return "$TIME_LIMIT", f"{hours:02}:{minutes:02}+{limit.byoyomi:02}"


_ENDINGS: Final = {
    "%TORYO": Ending.RESIGNATION,
    "%CHUDAN": Ending.INTERRUPTED,
    "%SENNICHITE": Ending.REPETITION,
    "%TIME_UP": Ending.TIME_UP,
    "%ILLEGAL_MOVE": Ending.ILLEGAL_MOVE,
    "%+ILLEGAL_ACTION": Ending.BLACK_FOUL,
    "%-ILLEGAL_ACTION": Ending.WHITE_FOUL,
    "%JISHOGI": Ending.IMPASSE,
    "%KACHI": Ending.DECLARATION,
    "%HIKIWAKE": Ending.DECLARED_DRAW,
    "%MAX_MOVES": Ending.MAX_MOVES,
    "%MATTA": Ending.TAKEN_BACK,
    "%TSUMI": Ending.MATE,
    "%FUZUMI": Ending.NO_MATE,
    "%ERROR": Ending.ERROR,
}
_ENDING_CODES: Final = {ending: code for code, ending in _ENDINGS.items()} | {
    # There is no CSA code for these two; a comment gives the reason.
    Ending.DEFAULT_WIN: "%CHUDAN\n'不戦勝",
    Ending.DEFAULT_LOSS: "%CHUDAN\n'不戦敗",
}
_PERPETUAL_CHECK: Final = "%OUTE_SENNICHITE"
"""Ending of game servers; the standard has a foul instead."""

_STATEMENT: Final = re.compile(r"['N$].*|[^\s,'N$][^,]*", re.DOTALL)
_VERSION: Final = re.compile(r"V[0-9]+(\.[0-9]+)?\s*")
_MOVE: Final = re.compile(r"([+\-])([0-9])([0-9])([1-9])([1-9])([A-Z]{2})\s*")
_SECONDS: Final = re.compile(r"T([0-9]{1,7}(?:\.[0-9]{1,9})?)\s*")


def read_csa(text: str) -> list[GameRecord]:
    """Read all games of a CSA text; `NotationError` if there is none, or an invalid one."""
    return list(iter_csa(text))


def iter_csa(text: str) -> Iterator[GameRecord]:
    """Yield the games of a CSA text one by one; the text after the last one taken is not read."""
    is_empty = True
    reader = _GameReader()
    for statement in _statements(text):
        if statement.text.strip() == "/":
            if reader.has_content:
                yield reader.record()
                is_empty = False
            reader = _GameReader()
        else:
            reader.read(statement)
    if reader.has_content:
        yield reader.record()
    elif is_empty:
        raise NotationError(
            "there is no game in this text; a CSA game has at least a start, such as 'PI'"
        )


def write_csa(
    records: GameRecord | Sequence[GameRecord],
    version: CsaVersion = "3.0",
    *,
    encoding: str = "UTF-8",
) -> str:
    """Write one game, or several with ``/`` between them.

    Version 3.0 has milliseconds, 2.2 whole seconds (fractions are cut off). CSA cannot store
    variations, bookmarks, the move number of the start, or a win by default. `encoding` is the one
    that version 3.0 declares.
    """
    if isinstance(records, GameRecord):
        records = [records]
    lines = [f"V{version}"] if version == "2.2" else [f"'CSA encoding={encoding}", f"V{version}"]
    for index, record in enumerate(records):
        if index:
            lines.append("/")
        lines += header_lines(record.headers, version)
        lines += format_start(record.start)
        lines += _comment_lines(record.comment)
        lines += _move_lines(record, version)
        if record.result is not None:
            lines.append(_ENDING_CODES[record.result.ending])
            lines += _seconds_lines(record.result.seconds, version)
            lines += _comment_lines(record.result.comment)
    return "\n".join(lines) + "\n"


def _statements(text: str) -> Iterator[Statement]:
    """Yield all statements; only the lines of positions and moves can hold several, by commas."""
    for line in split_lines(text):
        for match in _STATEMENT.finditer(line.text):
            yield Statement(line, match.start() + 1, match[0])


class _GameReader:
    """Reads the statements of one game."""

    def __init__(self) -> None:
        self._headers: dict[str, str] = {}
        self._comment: list[str] = []
        self._position = PositionReader()
        self._turn: Color | None = None
        self._line: LineBuilder | None = None
        self._last: Statement | None = None

    @property
    def has_content(self) -> bool:
        """Whether there was anything except comments and a version."""
        return self._last is not None

    def read(self, statement: Statement) -> None:
        """Read the next statement."""
        first = statement.text[0]
        if first == "'":
            self._read_comment(statement.text)
            return
        if first == "V":
            if _VERSION.fullmatch(statement.text) is None:
                raise statement.error(
                    f"{statement.text[:16]!r} is not a version; expected 'V2.2' or 'V3.0'"
                )
            return
        self._last = statement
        if first == "P":
            if self._line is not None or self._turn is not None:
                raise statement.error("the start position was already given")
            self._position.read(statement)
        elif first in SIGNS and len(statement.text.strip()) == 1:
            if self._line is not None or self._turn is not None:
                raise statement.error("the side to move was already given")
            self._turn = SIGNS[first]
        elif self._line is not None and self._line.has_unknown_end and first != "T":
            self._line.add_comment(statement.text.strip())
        elif first in SIGNS:
            self._read_move(statement)
        elif first == "%":
            self._read_ending(statement)
        elif first == "T":
            self._read_seconds(statement)
        elif first in ("N", "$"):
            read_header(statement, self._headers)
        else:
            raise statement.error(
                f"{statement.text[:16]!r} is not CSA; statements begin with V N $ P + - T % or '"
            )

    def record(self) -> GameRecord:
        """Return the game that was read."""
        assert self._last is not None
        if self._line is None and self._turn is None and self._position.last is None:
            raise self._last.error("headers without a game: a start such as 'PI' must follow")
        line = self._open_line(self._last)
        line.require_legal()
        comment = "\n".join(self._comment)
        return GameRecord(line.start, line.moves, self._headers, comment, line.result)

    def _open_line(self, statement: Statement) -> LineBuilder:
        """Return the line of play, which the first move or ending starts."""
        if self._line is None:
            turn = Color.BLACK if self._turn is None else self._turn
            start = self._position.diagram(turn)
            self._line = LineBuilder(start, (self._position.last or statement).line)
        return self._line

    def _read_comment(self, text: str) -> None:
        if text.startswith("'*"):
            if self._line is None:
                self._comment.append(text[2:])
            else:
                self._line.add_comment(text[2:])

    def _read_move(self, statement: Statement) -> None:
        line = self._open_line(statement)
        line.require_open(statement.line, statement.column)
        line.require_legal()
        replay = line.replay
        match = _MOVE.fullmatch(statement.text)
        if match is None or match[6] not in KIND_BY_NAME:
            raise statement.error(
                f"{statement.text[:16]!r} is not a move; expected something like '+7776FU'"
            )
        if SIGNS[match[1]] is not replay.turn:
            raise statement.error(
                f"it is {replay.turn.name.title()}'s turn: expected {SIGN_BY_COLOR[replay.turn]!r}"
            )
        kind = KIND_BY_NAME[match[6]]
        target = square(int(match[4]), int(match[5]))
        origin = match[2] + match[3]
        if origin == "00":
            if kind not in HAND_KINDS:
                raise statement.error(f"{match[6]} cannot be dropped", 5)
            move = Move(None, target, False, kind)
        elif "0" in origin:
            raise statement.error(
                f"{origin} is not a square; expected 11 to 99, or 00 for the hand", 1
            )
        else:
            move = _board_move(statement, replay, origin, target, kind)
        line.play(move, statement.line, statement.column, statement.text.strip())

    def _read_ending(self, statement: Statement) -> None:
        word = statement.text.strip()
        line = self._open_line(statement)
        line.require_open(statement.line, statement.column)
        if word == _PERPETUAL_CHECK:
            # A position came back for the fourth time: either the mover is in check again, or the
            # mover is the side that gave the checks.
            is_own = not line.replay.game.in_check
            loser = line.replay.turn if is_own else line.replay.turn.opponent
            line.end((Ending.BLACK_FOUL, Ending.WHITE_FOUL)[loser])
        elif word in _ENDINGS:
            line.end(_ENDINGS[word])
        else:
            line.end_with_word(word)

    def _read_seconds(self, statement: Statement) -> None:
        match = _SECONDS.fullmatch(statement.text)
        if match is None:
            raise statement.error(
                f"{statement.text[:16]!r} is not a time; expected seconds, as in 'T12' or 'T12.345'"
            )
        if self._line is None or self._line.is_empty:
            raise statement.error("a time must follow a move")
        self._line.set_seconds(float(match[1]), statement.line, statement.column)


def _board_move(
    statement: Statement, replay: Replay, origin: str, target: int, kind: PieceKind
) -> Move:
    """Make a move on the board; CSA names the piece as it is after the move."""
    from_square = square(int(origin[0]), int(origin[1]))
    piece = replay.board[from_square]
    if piece is None or piece.color is not replay.turn:
        raise statement.error(f"{replay.turn.name.title()} has no piece on {origin}", 1)
    if from_square == target:
        raise statement.error("origin and target are the same square", 1)
    if piece.kind == kind:
        return Move(from_square, target)
    if piece.kind.can_promote and piece.kind.promoted == kind:
        return Move(from_square, target, True)
    raise statement.error(
        f"the piece on {origin} is {CSA_NAMES[piece.kind]}; it cannot be {CSA_NAMES[kind]} "
        "after the move",
        5,
    )


def _move_lines(record: GameRecord, version: CsaVersion) -> Iterator[str]:
    replay = Replay(record.start)
    for recorded in record.moves:
        yield _format_move(replay, recorded)
        yield from _seconds_lines(recorded.seconds, version)
        yield from _comment_lines(recorded.comment)


def _format_move(replay: Replay, recorded: RecordedMove) -> str:
    """Play the move and return its text."""
    move = recorded.move
    sign = SIGN_BY_COLOR[replay.turn]
    replay.play(move)
    piece = replay.board[move.to_square]
    assert piece is not None
    origin = "00" if move.from_square is None else square_digits(move.from_square)
    return f"{sign}{origin}{square_digits(move.to_square)}{CSA_NAMES[piece.kind]}"


def _seconds_lines(seconds: float | None, version: CsaVersion) -> list[str]:
    if seconds is None:
        return []
    if version == "2.2":
        return [f"T{int(seconds)}"]
    return [f"T{seconds:.3f}".rstrip("0").rstrip(".")]


def _comment_lines(comment: str) -> list[str]:
    return [f"'*{line}" for line in text_lines(comment)]

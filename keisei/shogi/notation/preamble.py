"""The preamble of KIF and KI2 files: headers, handicap and diagram above the moves."""

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from keisei.constants import BOARD_SIZE, NUM_HAND_KINDS
from keisei.errors import IllegalPositionError, NotationError
from keisei.shogi.notation import headers as header
from keisei.shogi.notation.japanese import (
    COLOR_BY_SIDE,
    HANDICAP_SIDE_NAMES,
    HANDICAPS,
    KIND_BY_NAME,
    OTHER,
    PIECE_NAMES,
    format_count,
    handicap_name,
    parse_count,
)
from keisei.shogi.notation.reader import (
    SourceLine,
    half_width,
    quote,
)
from keisei.shogi.notation.record import STARTPOS, GameRecord, text_lines
from keisei.shogi.render.glyphs import KANJI_BY_KIND, RANK_KANJI, SIDE_NAMES
from keisei.shogi.types import (
    EMPTY_HANDS,
    HAND_KINDS,
    Color,
    Diagram,
    Piece,
)

_EMPTY: Final = "・･.*"
_CELL: Final = re.compile(
    rf"([ v^Vｖ＾]?)([{''.join(n for n in KIND_BY_NAME if len(n) == 1)}{_EMPTY}])"
)
_ROW: Final = re.compile(r"\s*[|｜]([^|｜]*)[|｜]\s*(?:\S\s*)?")
_HELD: Final = re.compile(r"(\S)([0-9十一二三四五六七八九]*)\s*")


def is_row(line: SourceLine) -> bool:
    """Return whether a line is a rank of a diagram."""
    return line.text.lstrip().startswith(("|", "｜"))


def parse_row(line: SourceLine) -> list[Piece | None]:
    """Parse a rank of a diagram: ``|v香v桂 ・ ・v玉 ・ ・ ・ 香|一``."""
    match = _ROW.fullmatch(half_width(line.text))
    if match is None:
        raise line.error("a rank of a diagram must be between two '|'", len(line.text) or 1)
    squares: list[Piece | None] = []
    index, end = match.span(1)
    text = match.string
    end = index + len(text[index:end].rstrip())
    while index < end:
        cell = _CELL.match(text, index, end)
        if cell is None:
            raise line.error(
                f"{quote(line.text[index : index + 2])} is not a square; "
                "expected ' ・', ' 歩' or 'v歩'",
                index + 1,
            )
        color = Color.WHITE if cell[1] in ("v", "V", "ｖ") else Color.BLACK
        squares.append(None if cell[2] in _EMPTY else Piece(color, KIND_BY_NAME[cell[2]]))
        index = cell.end()
    if len(squares) != BOARD_SIZE:
        raise line.error(
            f"this rank has {len(squares)} squares, it must have 9", match.start(1) + 1
        )
    return squares


def is_known_header(line: SourceLine) -> bool:
    """Return whether a line is a header that games begin with, such as 先手：名前."""
    name, colon, _ = half_width(line.text).partition(":")
    return bool(colon) and name.strip() in (*_KEY_BY_NAME, _HANDICAP, _TURN)


def parse_hand(line: SourceLine, index: int) -> tuple[int, ...]:
    """Parse the pieces in hand, from `index` on: ``飛　角　歩十二``, or なし."""
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
                f"{quote(line.text[index : index + 4])} is not a piece in hand; "
                "expected something like 飛 or 歩十二, or なし",
                index + 1,
            )
        counts[kind] += number
        index = match.end()
    return tuple(counts)


def format_bod(diagram: Diagram) -> list[str]:
    """Return the lines of a diagram: White's hand, the board, Black's hand, the side to move."""
    border = f"+{'---' * BOARD_SIZE}+"
    lines = [
        f"{SIDE_NAMES[Color.WHITE]}の持駒：{_format_hand(diagram.hands[Color.WHITE])}",
        "  ９ ８ ７ ６ ５ ４ ３ ２ １",
        border,
    ]
    for row, sign in enumerate(RANK_KANJI):
        squares = diagram.board[row * BOARD_SIZE : (row + 1) * BOARD_SIZE]
        lines.append(f"|{''.join(_format_cell(piece) for piece in squares)}|{sign}")
    lines.append(border)
    lines.append(f"{SIDE_NAMES[Color.BLACK]}の持駒：{_format_hand(diagram.hands[Color.BLACK])}")
    if diagram.move_number > 1:
        lines.append(f"手数＝{diagram.move_number - 1}　まで")
    if diagram.turn is Color.WHITE:
        lines.append(f"{SIDE_NAMES[Color.WHITE]}番")
    return lines


def _format_cell(piece: Piece | None) -> str:
    if piece is None:
        return " ・"
    return ("v" if piece.color is Color.WHITE else " ") + KANJI_BY_KIND[piece.kind]


def _format_hand(hand: tuple[int, ...]) -> str:
    items = (
        PIECE_NAMES[kind] + (format_count(hand[kind]) if hand[kind] > 1 else "")
        for kind in reversed(HAND_KINDS)
        if hand[kind]
    )
    return "　".join(items) or "なし"


_KEY_BY_NAME: Final = {
    "棋戦": header.EVENT,
    "場所": header.SITE,
    "開始日時": header.START_TIME,
    "対局日": header.START_TIME,
    "終了日時": header.END_TIME,
    "戦型": header.OPENING,
    "持ち時間": header.TIME,
    "先手持ち時間": header.BLACK_TIME,
    "後手持ち時間": header.WHITE_TIME,
    "最大手数": header.MAX_MOVES,
    "持将棋": header.JISHOGI,
    "備考": header.NOTE,
} | {name: (header.BLACK, header.WHITE)[color] for name, color in COLOR_BY_SIDE.items()}
_NAME_BY_KEY: Final = {key: name for name, key in reversed(_KEY_BY_NAME.items())}

_HANDICAP: Final = "手合割"
_TURN: Final = "手番"
_MOMENTS: Final = (header.START_TIME, header.END_TIME)
_LIMITS: Final = (header.TIME, header.BLACK_TIME, header.WHITE_TIME)

_HAND: Final = re.compile(r"\s*(先手|後手|下手|上手)の?持ち?駒\s*:")
_TURN_LINE: Final = re.compile(r"\s*(先手|後手|下手|上手)番\s*")
_DECORATION: Final = re.compile(r"\s*(?:9\s+8\s+7\s+6\s+5\s+4\s+3\s+2\s+1|\+-[-+]*|手数-.*)\s*")
_MOVE_COUNT: Final = re.compile(r"\s*手数[=＝]\s*([0-9]{1,5})(?![0-9]).*")
_KEY: Final = re.compile(r"(?!まで|変化|手数|手合割|手番)[^\W\d][^:：\r\n]*(?<!\s)")
_DURATION: Final = re.compile(
    r"各?\s*(?=[0-9])(?:([0-9]{1,4})時間)?(?:([0-9]{1,6})分)?(?:([0-9]{1,7})秒)?(?:切れ負け)?"
    r"(?:\s*\+\s*([0-9]{1,7})秒(?!加算))?(?:\s*\+\s*([0-9]{1,7})秒加算)?"
)


class Preamble:
    """Reads the lines above the moves, in any order."""

    def __init__(self) -> None:
        self.headers: dict[str, str] = {}
        self.is_known = False
        """Whether a line was read that only game records have: a position or a standard header."""

        self._handicap: tuple[SourceLine, str] | None = None
        self._rows: list[list[Piece | None]] = []
        self._hands: list[tuple[int, ...]] = list(EMPTY_HANDS)
        self._turn: Color | None = None
        self._move_number = 1
        self._last_row: SourceLine | None = None
        self._last_hand: SourceLine | None = None

    def read(self, line: SourceLine) -> bool:
        """Read a line; return False if it does not belong to a preamble."""
        text = half_width(line.text)
        if is_row(line):
            self._read_row(line)
        elif (hand := _HAND.match(text)) is not None:
            self._hands[COLOR_BY_SIDE[hand[1]]] = parse_hand(line, hand.end())
            self._last_hand = line
        elif (turn := _TURN_LINE.fullmatch(text)) is not None:
            self._turn = COLOR_BY_SIDE[turn[1]]
        elif (count := _MOVE_COUNT.fullmatch(text)) is not None:
            self._move_number = int(count[1]) + 1
        elif _DECORATION.fullmatch(text):
            pass
        elif (colon := text.find(":")) > 0:
            name = line.text[:colon].strip()
            self._read_header(line, name, line.text[colon + 1 :].strip())
            self.is_known |= is_known_header(line)
            return True
        else:
            return False
        self.is_known = True
        return True

    def start(self) -> Diagram:
        """Return the start position."""
        if not self._rows:
            return self._start_without_diagram()
        assert self._last_row is not None
        if len(self._rows) != BOARD_SIZE:
            raise self._last_row.error(f"the diagram has {len(self._rows)} ranks, it must have 9")
        board = tuple(piece for row in self._rows for piece in row)
        hands = (self._hands[Color.BLACK], self._hands[Color.WHITE])
        diagram = Diagram(board, hands, self._side_to_move(), self._move_number)
        try:
            diagram.validate()
        except IllegalPositionError as error:
            raise self._last_row.error(f"no game can start here: {error}") from None
        return diagram

    def _start_without_diagram(self) -> Diagram:
        if self._last_hand is not None and tuple(self._hands) != EMPTY_HANDS:
            raise self._last_hand.error("pieces in hand need a diagram of the board")
        if self._handicap is None:
            start = STARTPOS
        else:
            line, name = self._handicap
            if name == OTHER:
                raise line.error(f"{_HANDICAP}：{OTHER} needs a diagram of the board")
            start = HANDICAPS[name]
        return replace(start, turn=self._side_to_move())

    def _side_to_move(self) -> Color:
        """The side to move: as in the file, else White for a named handicap, else Black."""
        if self._turn is not None:
            return self._turn
        name = "" if self._handicap is None else self._handicap[1]
        return HANDICAPS[name].turn if name in HANDICAPS else Color.BLACK

    def _read_row(self, line: SourceLine) -> None:
        if len(self._rows) == BOARD_SIZE:
            raise line.error("a tenth rank; a diagram has nine")
        self._rows.append(parse_row(line))
        self._last_row = line

    def _read_header(self, line: SourceLine, name: str, value: str) -> None:
        if name == _HANDICAP:
            # 飛車落 and 飛車落ち are both common.
            value = value if value in HANDICAPS or value == OTHER else f"{value}ち"
            if value not in HANDICAPS and value != OTHER:
                raise line.error(
                    f"{quote(value.removesuffix('ち'))} is not a handicap; expected one of "
                    f"{' '.join(HANDICAPS)} {OTHER}"
                )
            self._handicap = (line, value)
        elif name == _TURN:
            side = COLOR_BY_SIDE.get(value.removesuffix("番"))
            if side is None:
                raise line.error(f"{_TURN}：{quote(value)}; expected 先手 or 後手")
            self._turn = side
        elif value or name in self.headers or _KEY_BY_NAME.get(name) in self.headers:
            self._store(name, value)

    def _store(self, name: str, value: str) -> None:
        """Store a header under its standard key and in its standard form, if it has them."""
        key = _KEY_BY_NAME.get(name, name)
        if key in _MOMENTS and (moment := header.parse_moment(half_width(value))):
            value = header.format_moment(moment)
        elif key in _LIMITS:
            limit = parse_duration(value) or header.TimeLimit.parse(value)
            if limit is None:  # free text: kept under its own name
                key = name
            else:
                value = str(limit)
        elif key == header.NOTE and key in self.headers:
            value = f"{self.headers[key]}\n{value}"
        self.headers[key] = value


def parse_duration(text: str) -> header.TimeLimit | None:
    """Parse a time limit: 25分, 各1時間30分, 10分+30秒 (byoyomi), 5分+10秒加算 (Fischer)."""
    match = _DURATION.fullmatch(half_width(text))
    if match is None:
        return None
    hours, minutes, seconds, byoyomi, increment = (int(part or 0) for part in match.groups())
    limit = header.TimeLimit(hours * 3600 + minutes * 60 + seconds, byoyomi, increment)
    return header.TimeLimit.parse(str(limit))  # None if it is too long


def format_duration(limit: header.TimeLimit) -> str:
    """Format a time limit as `parse_duration` reads it."""
    minutes, seconds = divmod(limit.main, 60)
    hours, minutes = divmod(minutes, 60)
    parts = ((hours, "時間"), (minutes, "分"), (seconds, "秒"))
    text = "".join(f"{number}{unit}" for number, unit in parts if number) or "0分"
    text += f"+{limit.byoyomi}秒" if limit.byoyomi else ""
    return text + (f"+{limit.increment}秒加算" if limit.increment else "")


def side_names(start: Diagram) -> tuple[str, str]:
    """Names of Black and White: 先手 and 後手, or 下手 and 上手 in a handicap game."""
    return SIDE_NAMES if handicap_name(start) in (None, "平手") else HANDICAP_SIDE_NAMES


def preamble_lines(record: GameRecord) -> Iterator[str]:
    """Yield the lines above the moves of a record."""
    sides = side_names(record.start)
    players = (header.BLACK, header.WHITE)
    for key in header.in_order(record.headers):
        if key not in players:
            yield from _header_lines(key, record.headers[key])
    name = handicap_name(record.start)
    yield f"{_HANDICAP}：{name or OTHER}"
    if name is None:
        yield from format_bod(record.start)
    for side, key in zip(sides, players, strict=True):
        if key in record.headers:
            yield from _header_lines(side, record.headers[key])


def _header_lines(key: str, value: str) -> Iterator[str]:
    name = _NAME_BY_KEY.get(key, key)
    if key in _LIMITS and (limit := header.TimeLimit.parse(value)):
        value = format_duration(limit)
    lines = text_lines(value)
    if (
        _KEY.fullmatch(name) is None
        or _HAND.match(f"{name}:")
        or (len(lines) > 1 and key != header.NOTE)
    ):
        raise NotationError(
            f"header {key!r} cannot be written: it needs a name of letters without another "
            "meaning, and a value of one line"
        )
    for line in lines:
        yield f"{name}：{line}"

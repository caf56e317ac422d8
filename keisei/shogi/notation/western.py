"""Western game records, as English books print them: ``1. P-7f P-3d 2. Bx2b+ Sx2b``.

A move is a piece (``+`` in front if it is promoted), its origin if several could go there, ``-``
for a move, ``x`` for a capture or ``*`` for a drop, the target, and ``+`` or ``=`` where the piece
may promote. Ranks are letters or digits: ``P-7f`` is ``P-76``. Numbers count moves or pairs of
moves. Headers are lines such as ``Black: name``, or tags such as ``[Sente "name"]``; comments are
in braces or brackets, or follow a semicolon.
"""

import re
from typing import Final

from keisei.errors import KeiseiError, NotationError
from keisei.shogi.notation import headers as header
from keisei.shogi.notation.japanese import HANDICAPS
from keisei.shogi.notation.ki2 import may_promote, origins
from keisei.shogi.notation.last_words import begins_as_move
from keisei.shogi.notation.reader import LineBuilder, Scanner, SourceLine, quote, split_lines
from keisei.shogi.notation.record import STARTPOS, Ending, GameRecord, Replay
from keisei.shogi.notation.sfen import parse_sfen
from keisei.shogi.types import (
    HAND_KINDS,
    RANK_LETTERS,
    SQUARE_NAMES,
    SYMBOLS,
    Color,
    Diagram,
    Move,
    Piece,
    PieceKind,
    square,
)

EXAMPLE: Final = "P-7f, Bx2b+ or P*5e"

MOVE_PATTERN: Final = re.compile(
    r"(\+?[PLNSGBRK])([1-9][1-9a-i])?([-–—−x×*'’])([1-9][1-9a-i])([+=]?)([!?]{0,4})(?=[\s,;{(.]|$)"
)
"""Piece, origin, kind of move, target, promotion, and a remark such as ``!?``."""

_DROPS: Final = "*'’"
_CAPTURES: Final = "x×"
_TAG: Final = re.compile(r"\[\s*(\w{1,40})\s+\"([^\"]*)\"\s*\]\s*")
_HEADER: Final = re.compile(r"\s*(\w{1,40})\s*:(.*)")
_NUMBER: Final = re.compile(r"[0-9]{1,5}(?:\.+|(?=\s))[\s.…]*|[.…,]+\s*")
_COMMENT_ENDS: Final = {"{": "}", "(": ")"}
_COMMENT_BEGINS: Final = re.compile(r"[{(;]")
_LATER_MOVE: Final = re.compile(rf"[\s.]{MOVE_PATTERN.pattern}")
_ENDING: Final = re.compile(
    r"(?:(black|sente|white|gote)\s+)?"
    r"(resigns|resigned|resignation|checkmate|mate|sennichite|repetition|jishogi|impasse|time up|"
    r"timeout|illegal move|draw|interrupted|1-0|0-1|1/2-1/2)\.?(?=[\s,;:{(]|$)",
    re.IGNORECASE,
)
_ENDINGS: Final = {
    **dict.fromkeys(("resigns", "resigned", "resignation"), Ending.RESIGNATION),
    **dict.fromkeys(("checkmate", "mate"), Ending.MATE),
    **dict.fromkeys(("sennichite", "repetition"), Ending.REPETITION),
    **dict.fromkeys(("jishogi", "impasse"), Ending.IMPASSE),
    **dict.fromkeys(("time up", "timeout"), Ending.TIME_UP),
    **dict.fromkeys(("draw", "1/2-1/2"), Ending.DECLARED_DRAW),
    "illegal move": Ending.ILLEGAL_MOVE,
    "interrupted": Ending.INTERRUPTED,
}
_WINNERS: Final = {"1-0": Color.BLACK, "0-1": Color.WHITE}
_SIDES: Final = {
    **dict.fromkeys(("black", "sente"), Color.BLACK),
    **dict.fromkeys(("white", "gote"), Color.WHITE),
}
_KEYS: Final = {
    **{name: (header.BLACK, header.WHITE)[color] for name, color in _SIDES.items()},
    **dict.fromkeys(("event", "tournament"), header.EVENT),
    **dict.fromkeys(("site", "place"), header.SITE),
    "date": header.START_TIME,
    "opening": header.OPENING,
}
_START: Final = "sfen"
_HANDICAP: Final = "handicap"
_HANDICAP_NAMES: Final = {
    **dict.fromkeys(("even", "none"), "平手"),
    "lance": "香落ち",
    "right lance": "右香落ち",
    "bishop": "角落ち",
    "rook": "飛車落ち",
    **dict.fromkeys(("rook-lance", "rook and lance"), "飛香落ち"),
    **{
        f"{number}{gap}piece{plural}": f"{kanji}枚落ち"
        for words, kanji in (("2 two", "二"), ("4 four", "四"), ("6 six", "六"), ("8 eight", "八"),
                             ("10 ten", "十"))
        for number in words.split() for gap in " -" for plural in ("", "s")
    },
}  # fmt: skip


def read_western(text: str) -> GameRecord:
    """Read the game of a western text.

    Raises `NotationError` with the line and column of a fault.
    """
    return _WesternReader().read(text)


def format_western(replay: Replay, move: Move) -> str:
    """Return the next move in letters: ``P-7f``, ``Bx2b+``, ``N*5e``, ``G4i-5h``, ``S-3c=``."""
    target = SQUARE_NAMES[move.to_square]
    piece = replay.moving_piece(move)
    if move.from_square is None:
        return f"{piece.kind.symbol}*{target}"
    rivals = origins(replay.board, piece, move.to_square)
    origin = SQUARE_NAMES[move.from_square] if len(rivals) > 1 else ""
    how = "-" if replay.board[move.to_square] is None else "x"
    end = "+" if move.promote else ""
    if not move.promote and may_promote(piece, move.from_square, move.to_square):
        end = "="
    return f"{piece.kind.symbol}{origin}{how}{target}{end}"


def scan_western_move(scanner: Scanner, replay: Replay) -> tuple[Move, str]:
    """Scan a move, find the one that it means, and return it with its remark (``!?`` or empty)."""
    index = scanner.index
    match = scanner.expect(MOVE_PATTERN, f"a move such as {EXAMPLE}")
    symbol, origin, how, target_name, suffix, remark = match.groups()
    kind = PieceKind(SYMBOLS.index(symbol))
    target = _square(target_name)
    written = scanner.line.text[index : scanner.index].rstrip("!?")
    if how in _DROPS:
        if kind not in HAND_KINDS or origin or suffix:
            raise scanner.error(f"{written}: a piece is dropped unpromoted, as in P*5e", index)
        return Move(None, target, False, kind), remark
    if how in _CAPTURES and replay.board[target] is None:
        raise scanner.error(f"{written}: there is nothing to capture on {target_name}", index)
    return _board_move(scanner, index, written, replay, kind, origin, target, suffix), remark


def _board_move(
    scanner: Scanner,
    index: int,
    written: str,
    replay: Replay,
    kind: PieceKind,
    origin: str | None,
    target: int,
    suffix: str,
) -> Move:
    reaching = origins(replay.board, Piece(replay.turn, kind), target)
    chosen = [sq for sq in reaching if origin is None or sq == _square(origin)]
    moves = [
        move
        for sq in chosen
        for move in (Move(sq, target, promote) for promote in (False, True))
        if replay.game.is_legal(move) and (not suffix or move.promote is (suffix == "+"))
    ]
    if len(moves) == 1:
        return moves[0]
    if len({move.from_square for move in moves}) == 1:
        raise scanner.error(f"{written} may promote or not: + or = is needed", index)
    if moves:
        raise scanner.error(
            f"{written} could be {' or '.join(move.usi for move in moves)}; name the origin, as "
            "in G4i-5h",
            index,
        )
    if len(chosen) == 1:  # playing it raises the error that names the rule
        return Move(chosen[0], target, suffix == "+")
    raise scanner.error(
        f"{written}: no {kind.symbol} of {replay.turn.name.title()} can legally go there", index
    )


def _square(name: str) -> int:
    rank = RANK_LETTERS.find(name[1]) + 1 or int(name[1])
    return square(int(name[0]), rank)


class _WesternReader:
    """Reads headers, then moves, with comments anywhere."""

    def __init__(self) -> None:
        self._headers: dict[str, str] = {}
        self._comment: list[str] = []
        self._start: Diagram | None = None
        self._is_known = False
        self._line: LineBuilder | None = None
        self._comment_end = ""
        """The bracket that ends the comment that is being read."""

    def read(self, text: str) -> GameRecord:
        """Read a whole text."""
        lines = split_lines(text)
        for line in lines:
            if line.text.strip() and not self._read_header(line):
                self._read_moves(line)
        if self._line is None and not self._is_known:
            raise NotationError(
                f"there is no game in this text: no move such as {EXAMPLE}, and no header"
            )
        builder = self._open_line(lines[-1])
        builder.require_legal()
        comment = "\n".join(self._comment)
        return GameRecord(builder.start, builder.moves, self._headers, comment, builder.result)

    def _read_header(self, line: SourceLine) -> bool:
        if self._line is not None or self._comment_end:
            return False
        match = _TAG.fullmatch(line.text.strip()) or _HEADER.fullmatch(line.text)
        if match is None:
            return False
        name, value = match[1], match[2].strip()
        if name.lower() == _START:
            try:
                self._start = parse_sfen(value)
            except KeiseiError as error:
                raise line.error(f"{name}: {error}") from None
        elif name.lower() == _HANDICAP:
            if value.lower() not in _HANDICAP_NAMES:
                known = "lance, bishop, rook, rook-lance, 2 pieces ... 10 pieces"
                raise line.error(f"{quote(value)} is not a handicap; expected one of {known}")
            self._start = HANDICAPS[_HANDICAP_NAMES[value.lower()]]
        elif value:
            key = _KEYS.get(name.lower(), name)
            if key == header.START_TIME and (moment := header.parse_moment(value)):
                value = header.format_moment(moment)
            self._headers[key] = value
        self._is_known |= name.lower() in (*_KEYS, _START, _HANDICAP)
        return True

    def _open_line(self, line: SourceLine) -> LineBuilder:
        if self._line is None:
            self._line = LineBuilder(self._start or STARTPOS, line)
        return self._line

    def _read_moves(self, line: SourceLine) -> None:
        scanner = Scanner(line)
        scanner.skip_blanks()
        while not scanner.at_end:
            if self._comment_end or line.text[scanner.index] in (*_COMMENT_ENDS, ";"):
                self._read_comment(scanner)
            elif not self._read_last_words(scanner) and scanner.match(_NUMBER) is None:
                self._read_move(scanner)
            scanner.skip_blanks()

    def _read_comment(self, scanner: Scanner) -> None:
        text = scanner.line.text
        begin = scanner.index
        if not self._comment_end:
            self._comment_end = _COMMENT_ENDS.get(text[begin], "")
            begin += 1
        end = text.find(self._comment_end, begin) if self._comment_end else -1
        comment = text[begin : None if end < 0 else end].strip()
        if comment and self._line is not None:
            self._line.add_comment(comment)
        elif comment:
            self._comment.append(comment)
        scanner.index = len(text) if end < 0 else end + 1
        if end >= 0:
            self._comment_end = ""

    def _read_last_words(self, scanner: Scanner) -> bool:
        """Read what follows the end of the game as a comment; False if it is a move, or no end."""
        builder, index = self._line, scanner.index
        if builder is None or builder.ending is None:
            return False
        scanner.match(_NUMBER)
        if scanner.at_end:
            return True
        if begins_as_move(scanner) and not builder.has_unknown_end:
            return False
        scanner.index = index
        builder.add_comment(_take_words(scanner).lstrip(",.: "))
        return True

    def _read_move(self, scanner: Scanner) -> None:
        line, index = scanner.line, scanner.index
        builder = self._open_line(line)
        builder.require_open(line, index + 1)
        ending = scanner.match(_ENDING)
        if ending is not None:
            self._end(builder, ending[0], ending[1], ending[2].lower())
            return
        if not (builder.is_empty or begins_as_move(scanner) or scanner.find(_LATER_MOVE)):
            builder.end_with_word(_take_words(scanner))
            return
        builder.require_legal()
        move, remark = scan_western_move(scanner, builder.replay)
        builder.play(move, line, index + 1, line.text[index : scanner.index])
        if remark:
            builder.add_comment(remark)

    def _end(self, builder: LineBuilder, text: str, side: str | None, word: str) -> None:
        """End the line; an ending that contradicts the side to move is kept as a comment."""
        mover = builder.turn
        if word in _WINNERS:
            ending, is_right = Ending.RESIGNATION, _WINNERS[word] is not mover
        else:
            ending, is_right = _ENDINGS[word], side is None or _SIDES[side.lower()] is mover
        if is_right:
            builder.end(ending)
        else:
            builder.end_with_word(text)


def _take_words(scanner: Scanner) -> str:
    """Consume the text up to the next comment."""
    comment = _COMMENT_BEGINS.search(scanner.line.text, scanner.index)
    return scanner.take(None if comment is None else comment.start())

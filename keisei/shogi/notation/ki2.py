"""KI2 game records: moves as books print them, ▲７六歩 △３四歩.

A move names its piece and its target; if several pieces of the kind can go there, the rules of the
Japan Shogi Association disambiguate: by the motion (上 up, 寄 sideways, 引 back), else by the side
(左 left, 右 right, 直 straight below), else by both. A pinned piece counts as able to go there.
"""

import re
from collections.abc import Iterator, Sequence
from typing import Final

from keisei.constants import BOARD_SIZE
from keisei.shogi.attacks import Board, attacked_squares
from keisei.shogi.notation.japanese import (
    MARKS,
    PIECE_NAMES,
    PIECE_PATTERN,
    format_square,
    format_summary,
    scan_ending,
    scan_mark,
    scan_piece,
    scan_target,
)
from keisei.shogi.notation.kif import TreeReader, remark_lines
from keisei.shogi.notation.last_words import begins_as_move
from keisei.shogi.notation.preamble import is_known_header, preamble_lines, side_names
from keisei.shogi.notation.reader import Scanner, SourceLine
from keisei.shogi.notation.record import GameRecord, RecordedMove, Replay, Result
from keisei.shogi.render.glyphs import RANK_KANJI
from keisei.shogi.types import (
    HAND_KINDS,
    Color,
    Move,
    Piece,
    PieceKind,
    in_promotion_zone,
)

UP: Final = "上"
SIDEWAYS: Final = "寄"
BACK: Final = "引"
LEFT: Final = "左"
RIGHT: Final = "右"
STRAIGHT: Final = "直"

_FIRST_MOVE: Final = re.compile(
    rf"\s*(?:[{''.join(MARKS)}]|(?:[1-9][1-9{RANK_KANJI}]|同)\s*同?(?:{PIECE_PATTERN.pattern}))"
)
_QUALIFIERS: Final = re.compile("[左右直上寄引行]*")
_SUFFIX: Final = re.compile("成|不成|生|打|")
_GAP: Final = re.compile(rf"\s+|(?=[{''.join(MARKS)}])|$")
_MARK: Final = re.compile(f"[{''.join(MARKS)}]")
_WORD: Final = re.compile(rf"[^\s{''.join(MARKS)}]+")
_MOVES_PER_LINE: Final = 6
_MOVE_WIDTH: Final = 14


def read_ki2(text: str, *, variations: bool = True) -> GameRecord:
    """Read the game of a KI2 text, with or without its variations.

    Raises `NotationError` with the line and column of a fault.
    """
    return _Ki2Reader().read(text, variations=variations)


def write_ki2(record: GameRecord) -> str:
    """Write a record as KI2, which cannot store times."""
    sides = side_names(record.start)
    replay = Replay(record.start)
    lines = [*preamble_lines(record), "", *remark_lines(record.comment)]
    lines += _line(replay, record.moves)
    lines += _closing(replay, record.result, len(record.moves), sides)
    for variation in record.variations:
        replay.rewind(variation.ply - 1)
        lines += ["", f"変化：{variation.ply}手", *remark_lines(variation.comment)]
        lines += _line(replay, variation.moves)
        lines += _closing(replay, variation.result, replay.length, sides)
    return "\n".join(lines) + "\n"


def format_move(replay: Replay, move: Move) -> str:
    """Format a move that is about to be played, as the Japan Shogi Association does: 同銀左."""
    same = move.to_square == replay.last_target
    target = "同" if same else format_square(move.to_square)
    piece = replay.moving_piece(move)
    name = PIECE_NAMES[piece.kind]
    rivals = origins(replay.board, piece, move.to_square)
    if move.from_square is None:
        return f"{target}{name}{'打' if rivals else ''}"
    gap = "　" if same and len(name) == 1 else ""
    promotion = ""
    if move.promote:
        promotion = "成"
    elif may_promote(piece, move.from_square, move.to_square):
        promotion = "不成"
    qualifier = _qualifier(piece, rivals, move.from_square, move.to_square)
    return f"{target}{gap}{name}{qualifier}{promotion}"


def origins(board: Board, piece: Piece, target: int) -> list[int]:
    """Squares of all pieces of this kind and colour that can go to the target, pinned or not."""
    # A piece attacks the target from where the opponent's piece on the target would attack it.
    reverse = Piece(piece.color.opponent, piece.kind)
    squares = sorted(attacked_squares(board, target, reverse), reverse=True)
    return [sq for sq in squares if board[sq] == piece]


def _qualifier(piece: Piece, rivals: Sequence[int], origin: int, target: int) -> str:
    """The shortest proper qualifier that distinguishes `origin` from the other `rivals`."""
    if len(rivals) < 2:
        return ""
    motion = _motion(piece.color, origin, target)
    alike = [sq for sq in rivals if _motion(piece.color, sq, target) == motion]
    if len(alike) == 1:
        return motion
    if piece.kind in (PieceKind.HORSE, PieceKind.DRAGON):
        # There are at most two, which are called left and right of each other.
        rightmost = max(alike, key=lambda sq: _offset(piece.color, sq, target))
        return RIGHT if origin == rightmost else LEFT
    side = _side(piece.color, origin, target)
    if sum(_side(piece.color, sq, target) == side for sq in rivals) == 1 or side == STRAIGHT:
        return side
    return side + motion


def _motion(color: Color, origin: int, target: int) -> str:
    """The motion of a move in the mover's view: up, sideways or back."""
    rows = (origin // BOARD_SIZE - target // BOARD_SIZE) * (1 if color is Color.BLACK else -1)
    return UP if rows > 0 else BACK if rows < 0 else SIDEWAYS


def _side(color: Color, origin: int, target: int) -> str:
    """The side of the target that the piece comes from, in the mover's view."""
    offset = _offset(color, origin, target)
    return RIGHT if offset > 0 else LEFT if offset < 0 else STRAIGHT


def _offset(color: Color, origin: int, target: int) -> int:
    """Number of files from the target to the piece, to the right in the mover's view."""
    columns = origin % BOARD_SIZE - target % BOARD_SIZE
    return columns if color is Color.BLACK else -columns


def may_promote(piece: Piece, origin: int, target: int) -> bool:
    """Return whether a piece that goes from `origin` to `target` may promote."""
    in_zone = any(in_promotion_zone(sq, piece.color) for sq in (origin, target))
    return piece.kind.can_promote and in_zone


class _Ki2Reader(TreeReader):
    """Reads lines with any number of moves."""

    def is_body(self, line: SourceLine) -> bool:
        return Scanner(line).match(_FIRST_MOVE) is not None

    def read_body(self, line: SourceLine) -> None:
        scanner = Scanner(line)
        scanner.skip_blanks()
        while not scanner.at_end:
            current = self.current
            index = scanner.index
            is_move = begins_as_move(scanner) or is_known_header(line)
            if current.has_unknown_end or (current.ending is not None and not is_move):
                current.add_comment(scanner.take())
                return
            current.require_open(line, index + 1)
            scan_mark(scanner, current.turn)
            ending = scan_ending(scanner, current.turn)
            if ending is not None:
                current.end(ending)
                if (words := scanner.match(_WORD)) is not None:
                    current.add_comment(line.text[words.start() : words.end()])
                scanner.skip_blanks()
            elif not (is_move or scanner.at_end):
                current.end_with_word(scanner.take(_next_mark(scanner)))
            else:
                current.require_legal()
                move = scan_move(scanner, current.replay)
                written = line.text[index : scanner.index].strip()
                current.play(move, line, index + 1, written)
                scanner.expect(_GAP, "a blank or the next move")


def _next_mark(scanner: Scanner) -> int | None:
    mark = scanner.find(_MARK)
    return None if mark is None else mark.start()


def scan_move(scanner: Scanner, replay: Replay) -> Move:
    """Scan a move and find the legal move that it means."""
    index = scanner.index
    target = scan_target(scanner, replay.last_target)
    kind = scan_piece(scanner)
    qualifiers = scanner.expect(_QUALIFIERS, "")[0].replace("行", UP)
    suffix = scanner.expect(_SUFFIX, "")[0]
    drop = Move(None, target, False, kind) if kind in HAND_KINDS else None
    piece = Piece(replay.turn, kind)
    if suffix == "打":
        if drop is None or qualifiers:
            raise scanner.error("打 drops a piece from the hand, unpromoted", index)
        return drop
    reaching = origins(replay.board, piece, target)
    chosen = _chosen(piece, reaching, target, qualifiers)
    is_legal = replay.game.is_legal
    moves = [
        move
        for sq in chosen
        for move in (Move(sq, target, promote) for promote in (False, True))
        if is_legal(move) and (not suffix or move.promote is (suffix == "成"))
    ]
    if len(moves) == 1:
        return moves[0]
    if not (moves or qualifiers or suffix) and drop is not None and is_legal(drop):
        return drop
    written = scanner.line.text[index : scanner.index]
    if len({move.from_square for move in moves}) == 1:
        raise scanner.error(f"{written} may promote or not: 成 or 不成 is needed", index)
    if moves:
        raise scanner.error(
            f"{written} could be {' or '.join(move.usi for move in moves)}; "
            "左 右 直 上 寄 or 引 is needed",
            index,
        )
    # Playing an illegal move raises the error that names the rule.
    if len(chosen) == 1:
        return Move(chosen[0], target, suffix == "成")
    if drop is not None and not (reaching or qualifiers or suffix) and replay.holds(kind):
        return drop
    if reaching and qualifiers:
        raise scanner.error(f"{written}: no {PIECE_NAMES[kind]} comes from {qualifiers}", index)
    raise scanner.error(f"{written}: no {PIECE_NAMES[kind]} can legally go there", index)


def _chosen(piece: Piece, reaching: list[int], target: int, qualifiers: str) -> list[int]:
    """Squares among `reaching` that fit the qualifiers of a move."""
    chosen = reaching
    for motion in (UP, SIDEWAYS, BACK):
        if motion in qualifiers:
            chosen = [sq for sq in chosen if _motion(piece.color, sq, target) == motion]
    for side in (LEFT, RIGHT, STRAIGHT):
        if side in qualifiers:
            chosen = _on_side(piece, chosen, target, side)
    if qualifiers in (LEFT, RIGHT) and len(chosen) > 1:
        # Some programs do not count pieces that their motion alone would tell apart.
        motions = [_motion(piece.color, sq, target) for sq in reaching]
        chosen = [sq for sq in chosen if motions.count(_motion(piece.color, sq, target)) > 1]
    return chosen


def _on_side(piece: Piece, squares: list[int], target: int, side: str) -> list[int]:
    """Squares on one side of the target.

    With two dragons or horses, one below the target counts as left or right of the other one.
    """
    fitting = [sq for sq in squares if _side(piece.color, sq, target) == side]
    if side == STRAIGHT:  # always upwards
        return [sq for sq in fitting if _motion(piece.color, sq, target) == UP]
    if fitting:
        return fitting
    others = [sq for sq in squares if _side(piece.color, sq, target) == STRAIGHT]
    return others if len(squares) > 1 else []


def _line(replay: Replay, moves: Sequence[RecordedMove]) -> Iterator[str]:
    """Yield the text lines of a line of play, playing the moves in `replay`."""
    row: list[str] = []
    for recorded in moves:
        mark = "▲" if replay.turn is Color.BLACK else "△"
        text = mark + format_move(replay, recorded.move)
        replay.play(recorded.move)
        row.append(text + " " * max(_MOVE_WIDTH - 2 * len(text), 1))
        remarks = remark_lines(recorded.comment, recorded.bookmark)
        if remarks or len(row) == _MOVES_PER_LINE:
            yield "".join(row).rstrip()
            yield from remarks
            row = []
    if row:
        yield "".join(row).rstrip()


def _closing(
    replay: Replay, result: Result | None, plies: int, sides: tuple[str, str]
) -> Iterator[str]:
    if result is not None:
        yield format_summary(result.ending, plies, replay.turn, sides)
        yield from remark_lines(result.comment)

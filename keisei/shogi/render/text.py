"""Draw positions as text, plain or in colour for terminals (with rich)."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, get_args

from keisei.constants import BOARD_SIZE
from keisei.shogi.render.glyphs import (
    RANK_KANJI,
    Lettering,
    display_width,
    held_pieces,
    piece_kanji,
    require_choice,
    require_drawable,
)
from keisei.shogi.types import RANK_LETTERS, Color, Diagram, Move, Piece

if TYPE_CHECKING:
    from rich.text import Text

Role = Literal[
    "label", "frame", "status", "empty", "black", "white", "promoted", "origin", "target"
]
"""The meaning of a piece of text, by which its colour is chosen."""

Line = list["Span"]
"""One line of the picture, from left to right."""


class Span(NamedTuple):
    """A stretch of text with one meaning."""

    text: str
    """The characters."""

    roles: tuple[Role, ...]
    """Their meaning, the most specific last: white, promoted, target."""


def board_text(
    diagram: Diagram, *, style: Lettering = "kanji", last_move: Move | None = None
) -> str:
    """Draw a position as text, without a newline at the end.

    White's pieces have a ``v`` (kanji) or are in lower case (letters). The target of `last_move`
    is in brackets. Raises `RenderError` for an unknown style.
    """
    lines = board_lines(diagram, style=style, last_move=last_move)
    return "\n".join("".join(span.text for span in line) for line in lines)


def board_lines(diagram: Diagram, *, style: Lettering, last_move: Move | None) -> list[Line]:
    """Lay out a position in lines of spans, for `board_text` and `board_rich`."""
    require_choice("style", style, get_args(Lettering))
    require_drawable(diagram, last_move)
    script = _SCRIPTS[style]
    border = Span(f"+{'-' * (BOARD_SIZE * (script.cell_width + 1) + 1)}+", ("frame",))
    return [
        _hand_line(diagram, Color.WHITE, script),
        _file_line(script),
        [border],
        *(list(_rank_spans(diagram, row, script, last_move)) for row in range(BOARD_SIZE)),
        [border],
        _hand_line(diagram, Color.BLACK, script),
        _status_line(diagram, last_move),
    ]


class _Script(NamedTuple):
    """Characters of a style. Every square is `cell_width` terminal cells wide."""

    cell_width: int
    files: str
    ranks: str
    empty: str
    on_board: Callable[[Piece], str]
    in_hand: Callable[[Piece], str]


def _kanji_on_board(piece: Piece) -> str:
    return ("v" if piece.color is Color.WHITE else " ") + piece_kanji(piece)


def _letters(piece: Piece) -> str:
    return piece.symbol


_SCRIPTS: Final[dict[Lettering, _Script]] = {
    "kanji": _Script(3, "９８７６５４３２１", RANK_KANJI, "・", _kanji_on_board, piece_kanji),
    "letters": _Script(2, "987654321", RANK_LETTERS, ".", _letters, _letters),
}


def _file_line(script: _Script) -> Line:
    cells = (_align_right(file, script.cell_width + 1) for file in script.files)
    return [Span(" " + "".join(cells), ("label",))]


def _rank_spans(
    diagram: Diagram, row: int, script: _Script, last_move: Move | None
) -> Iterator[Span]:
    """Yield the spans of one rank, with a gap before each cell and after the last for brackets."""
    squares = range(row * BOARD_SIZE, (row + 1) * BOARD_SIZE)
    gaps = [Span(" ", ("frame",)) for _ in range(BOARD_SIZE + 1)]
    if last_move is not None and last_move.to_square in squares:
        column = squares.index(last_move.to_square)
        gaps[column : column + 2] = Span("[", ("target",)), Span("]", ("target",))
    yield Span("|", ("frame",))
    for gap, sq in zip(gaps[:-1], squares, strict=True):
        yield gap
        yield _cell(diagram.board[sq], _part_in_move(sq, last_move), script)
    yield gaps[-1]
    yield Span("|", ("frame",))
    yield Span(f" {script.ranks[row]}", ("label",))


def _part_in_move(sq: int, move: Move | None) -> tuple[Role, ...]:
    if move is None or sq not in (move.from_square, move.to_square):
        return ()
    return ("target",) if sq == move.to_square else ("origin",)


def _cell(piece: Piece | None, part_in_move: tuple[Role, ...], script: _Script) -> Span:
    if piece is None:
        return Span(_align_right(script.empty, script.cell_width), ("empty", *part_in_move))
    promoted: tuple[Role, ...] = ("promoted",) if piece.kind.is_promoted else ()
    roles = (_color_role(piece.color), *promoted, *part_in_move)
    return Span(_align_right(script.on_board(piece), script.cell_width), roles)


def _color_role(color: Color) -> Role:
    return "black" if color is Color.BLACK else "white"


def _hand_line(diagram: Diagram, color: Color, script: _Script) -> Line:
    held = " ".join(
        script.in_hand(piece) + (str(count) if count > 1 else "")
        for piece, count in held_pieces(diagram, color)
    )
    return [
        Span(f"{color.name.title()} in hand: ", ("label",)),
        Span(held, (_color_role(color),)) if held else Span("none", ("empty",)),
    ]


def _status_line(diagram: Diagram, last_move: Move | None) -> Line:
    status = f"Move {diagram.move_number}, {diagram.turn.name.title()} to move"
    if last_move is not None:
        status += f", last move {last_move.usi}"
    return [Span(status, ("status",))]


def _align_right(text: str, width: int) -> str:
    return " " * (width - display_width(text)) + text


_STYLES: Final[dict[Role, str]] = {
    "label": "dim",
    "frame": "dim",
    "status": "italic",
    "empty": "dim",
    "black": "bold",
    "white": "cyan",
    "promoted": "red",
    "origin": "not dim on bright_black",
    "target": "not dim black on bright_yellow",
}
"""Rich styles; the colours of the terminal's own theme suit light and dark terminals."""


def board_rich(
    diagram: Diagram, *, style: Lettering = "kanji", last_move: Move | None = None
) -> "Text":
    """Draw a position in colour: promoted pieces red, the last move's squares marked.

    The text is the same as that of `board_text`, so it also reads well without colours.
    """
    from rich.text import Text  # only here: `ShogiGame` prints boards without it

    lines = []
    for line in board_lines(diagram, style=style, last_move=last_move):
        text = Text()
        for span in line:
            text.append(span.text, " ".join(_STYLES[role] for role in span.roles))
        lines.append(text)
    return Text("\n", no_wrap=True).join(lines)

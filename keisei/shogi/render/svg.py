"""Draw positions as SVG pictures, for notebooks, reports and web pages.

The picture is self-contained: no scripts, no style sheets, no fonts or images from elsewhere.
It uses no element ids, because ids are global to a page and a page may show many boards.
All text stands on wood and the background is transparent, so it suits light and dark pages.
"""

from collections.abc import Iterator
from math import sin
from typing import Final, get_args

from keisei.constants import BOARD_SIZE
from keisei.shogi.notation.sfen import format_sfen
from keisei.shogi.render.glyphs import (
    RANK_KANJI,
    SIDE_NAMES,
    Lettering,
    RenderError,
    held_pieces,
    piece_kanji,
    require_choice,
    require_drawable,
    require_square,
)
from keisei.shogi.render.layout import (
    ALARM,
    BOARD_HEIGHT,
    BOARD_INK,
    BOARD_WIDTH,
    BOARD_WOOD,
    BOARD_X,
    CELL_HEIGHT,
    CELL_WIDTH,
    FACE_WOOD,
    GRAIN,
    GRID_HEIGHT,
    GRID_WIDTH,
    GRID_X,
    GRID_Y,
    HEIGHT,
    INK,
    LETTERED_FACES,
    MARGIN,
    ORIGIN_MARK,
    OUTLINE,
    PALE,
    PIECE_EDGE,
    PIECE_THICKNESS,
    PLATE_HEIGHT,
    PLATE_INSET,
    PROMOTED_INK,
    RIM,
    SIDE_WOOD,
    STAND_HEIGHT,
    STAND_WIDTH,
    STAND_WOOD,
    TARGET_MARK,
    WIDTH,
    WOOD_EDGE,
    Labels,
    View,
    piece_size,
)
from keisei.shogi.types import (
    RANK_LETTERS,
    SQUARE_NAMES,
    Color,
    Diagram,
    Move,
    Piece,
)

FONTS: Final[dict[Lettering, str]] = {
    "kanji": (
        "'Noto Serif CJK JP','Noto Serif JP','Source Han Serif JP','Hiragino Mincho ProN',"
        "'Yu Mincho','YuMincho','MS Mincho','IPAexMincho','Noto Sans CJK JP',serif"
    ),
    "letters": "'Helvetica Neue',Helvetica,Arial,'Noto Sans','DejaVu Sans',sans-serif",
}
"""Font families; the first one that is installed is used."""


def number(value: float) -> str:
    """Format a coordinate with one decimal at most."""
    return f"{value:.1f}".removesuffix(".0")


def svg_text(
    x: float, y: float, content: str, *, size: float, fill: str, turned: bool = False
) -> str:
    """Draw a text with its middle at (x, y), upside down if `turned`; the font is inherited.

    The baseline is computed, as not every SVG viewer knows ``dominant-baseline``.
    """
    rotation = f' transform="rotate(180 {number(x)} {number(y)})"' if turned else ""
    return (
        f'<text x="{number(x)}" y="{number(y + 0.365 * size)}" font-size="{number(size)}" '
        f'fill="{fill}"{rotation}>{content}</text>'
    )


def pentagon(width: float, height: float, *, turned: bool, lowered: float = 0.0) -> str:
    """Return the path of a piece around (0, 0), its point up, or down if `turned`."""
    sign = -1 if turned else 1
    points = (f"{number(x * width)} {number(sign * y * height + lowered)}" for x, y in OUTLINE)
    return f"M{'L'.join(points)}Z"


def piece_shape(
    piece: Piece,
    lettering: Lettering,
    *,
    turned: bool,
    face_fill: str = "{}",
    side_fill: str = "{}",
) -> str:
    """Draw a piece around (0, 0); `turned` if its owner sits at the top.

    Pages give other fills, with ``{}`` for the colour of the wood: ``var(--face, {})``.
    """
    width, height = piece_size(piece.kind)
    shadow = pentagon(width + 2, height, turned=turned, lowered=PIECE_THICKNESS + 2)
    side = pentagon(width, height, turned=turned, lowered=PIECE_THICKNESS)
    face = pentagon(width, height, turned=turned)
    fill = FACE_WOOD if lettering == "kanji" else LETTERED_FACES[piece.color]
    return (
        f'<path d="{shadow}" fill="#000" fill-opacity=".2"/>'
        f'<path d="{side}" fill="{side_fill.format(SIDE_WOOD)}" stroke="{PIECE_EDGE}" '
        f'stroke-linejoin="round"/>'
        f'<path d="{face}" fill="{face_fill.format(fill)}" stroke="{PIECE_EDGE}" stroke-width=".8" '
        f'stroke-linejoin="round"/>{_inscription(piece, lettering, height, turned=turned)}'
    )


def side_mark(x: float, y: float, color: Color) -> str:
    """Draw the small pentagon of printed diagrams before a player's name: ☗ or ☖."""
    fill = INK if color is Color.BLACK else "#fff"
    outline = pentagon(15, 18, turned=False)
    return (
        f'<path d="{outline}" transform="translate({number(x)} {number(y)})" fill="{fill}" '
        f'stroke="{INK}" stroke-width="1.2" stroke-linejoin="round"/>'
    )


def _inscription(piece: Piece, lettering: Lettering, height: float, *, turned: bool) -> str:
    fill = PROMOTED_INK if piece.kind.is_promoted else INK
    middle = (-1 if turned else 1) * 0.07 * height
    if lettering == "kanji":
        kanji = piece_kanji(piece)
        return svg_text(0, middle, kanji, size=0.64 * height, fill=fill, turned=turned)
    # Letters are hard to read upside down; the point and the colour of the wood show the owner.
    size = (0.42 if piece.kind.is_promoted else 0.5) * height
    return svg_text(0, middle, piece.kind.symbol, size=size, fill=fill)


def board_svg(
    diagram: Diagram,
    *,
    last_move: Move | None = None,
    size: int = 480,
    labels: Labels = "japanese",
    flip: bool = False,
    check_square: int | None = None,
) -> str:
    """Draw a position as an SVG picture `size` pixels high (and about 1.4 times as wide).

    The squares of `last_move` are highlighted (for a drop, the target only); `check_square` is the
    square of a king to mark as in check; `flip` puts White at the bottom. The element of a piece
    on the board has class ``shogi-piece``, that of a kind in hand ``shogi-held``; both have
    ``data-`` attributes with square, colour, piece or count. Raises `RenderError` for arguments
    that cannot be drawn.
    """
    require_choice("labels", labels, get_args(Labels))
    require_drawable(diagram, last_move)
    if size <= 0:
        raise RenderError(f"size is {size}; the height in pixels must be above 0")
    if check_square is not None:
        require_square("check_square", check_square)
    view = View(labels, flip)
    width = round(size * WIDTH / HEIGHT)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {HEIGHT}"',
        f' width="{width}" height="{size}" role="img">',
        f"<title>Shogi position, {_name(diagram.turn)} to move</title>",
        f"<desc>{_description(diagram, last_move, check_square)}</desc>",
        f'<g font-family="{FONTS[view.lettering]}" font-weight="700" text-anchor="middle"',
        ' xml:lang="ja">',
        _wood(BOARD_X, MARGIN, BOARD_WIDTH, BOARD_HEIGHT, BOARD_WOOD),
        *_highlights(last_move, check_square, view),
        _grid(),
        *_square_labels(view),
        *_board_pieces(diagram, view),
        *(part for color in Color for part in _stand(diagram, color, view)),
        "</g>",
        "</svg>",
    ]
    return "".join(parts)


def _name(color: Color) -> str:
    return color.name.title()


def _description(diagram: Diagram, last_move: Move | None, check_square: int | None) -> str:
    """Text for screen readers, with an SFEN from which the position can be restored."""
    sentences = [f"Move {diagram.move_number}."]
    if last_move is not None:
        sentences.append(f"Last move {last_move.usi}.")
    if check_square is not None:
        sentences.append(f"The king on {SQUARE_NAMES[check_square]} is in check.")
    sentences.append(f"SFEN: {format_sfen(diagram)}")
    return " ".join(sentences)


def _wood(x: int, y: int, width: int, height: int, fill: str) -> str:
    """Draw a wooden board with a front edge and a straight grain."""
    grain = "".join(
        f"M{number(left)} {y + 1}q{number(9 * sin(left))} {height // 2} 0 {height - 2}"
        for line in range(1, width // 9)
        for left in [x + line * 9 + 3 * sin(line * line)]
    )
    return (
        f'<rect x="{x}" y="{y + 5}" width="{width}" height="{height}" rx="5" '
        f'fill="{WOOD_EDGE}"/>'
        f'<rect x="{x}" y="{y}" width="{width}" height="{height}" rx="5" fill="{fill}" '
        f'stroke="{WOOD_EDGE}"/>'
        f'<path d="{grain}" fill="none" stroke="{GRAIN}" stroke-opacity=".13"/>'
    )


def _highlights(last_move: Move | None, check_square: int | None, view: View) -> Iterator[str]:
    if last_move is not None and last_move.from_square is not None:
        yield _highlight("shogi-last-from", last_move.from_square, ORIGIN_MARK, view)
    if last_move is not None:
        yield _highlight("shogi-last-to", last_move.to_square, TARGET_MARK, view)
    if check_square is not None:
        yield _highlight("shogi-check", check_square, ALARM, view)


def _highlight(name: str, sq: int, fill: str, view: View) -> str:
    x, y = view.corner(sq)
    return (
        f'<rect class="{name}" data-square="{SQUARE_NAMES[sq]}" x="{x}" y="{y}" '
        f'width="{CELL_WIDTH}" height="{CELL_HEIGHT}" fill="{fill}" fill-opacity=".6"/>'
    )


def _grid() -> str:
    inner = range(1, BOARD_SIZE)
    lines = "".join(
        [f"M{GRID_X} {GRID_Y + row * CELL_HEIGHT}h{GRID_WIDTH}" for row in inner]
        + [f"M{GRID_X + column * CELL_WIDTH} {GRID_Y}v{GRID_HEIGHT}" for column in inner]
    )
    stars = "".join(
        f'<circle cx="{GRID_X + column * CELL_WIDTH}" cy="{GRID_Y + row * CELL_HEIGHT}" '
        f'r="4" fill="{BOARD_INK}"/>'
        for row in (3, 6)
        for column in (3, 6)
    )
    return (
        f'<path d="{lines}" stroke="{BOARD_INK}" stroke-width="1.2"/>'
        f'<rect x="{GRID_X}" y="{GRID_Y}" width="{GRID_WIDTH}" height="{GRID_HEIGHT}" '
        f'fill="none" stroke="{BOARD_INK}" stroke-width="2.4"/>{stars}'
    )


def _square_labels(view: View) -> Iterator[str]:
    """Draw files along the top and ranks along the right, as in print, flipped or not."""
    ranks = RANK_KANJI if view.labels == "japanese" else RANK_LETTERS
    for index in range(BOARD_SIZE):
        file = index + 1 if view.flip else BOARD_SIZE - index
        x = GRID_X + (index + 0.5) * CELL_WIDTH
        yield svg_text(x, GRID_Y - RIM / 2, str(file), size=17, fill=BOARD_INK)
        rank = ranks[BOARD_SIZE - 1 - index if view.flip else index]
        x, y = GRID_X + GRID_WIDTH + RIM / 2, GRID_Y + (index + 0.5) * CELL_HEIGHT
        yield svg_text(x, y, rank, size=17, fill=BOARD_INK)


def _board_pieces(diagram: Diagram, view: View) -> Iterator[str]:
    for sq, piece in enumerate(diagram.board):
        if piece is None:
            continue
        x, y = view.corner(sq)
        details = f'class="shogi-piece" data-square="{SQUARE_NAMES[sq]}"'
        yield _piece(piece, x + CELL_WIDTH / 2, y + CELL_HEIGHT / 2, details, view)


def _piece(piece: Piece, x: float, y: float, details: str, view: View) -> str:
    shape = piece_shape(piece, view.lettering, turned=view.at_top(piece.color))
    return (
        f'<g {details} data-color="{piece.color.name.lower()}" data-piece="{piece.symbol}" '
        f'transform="translate({number(x)} {number(y)})">{shape}</g>'
    )


def _stand(diagram: Diagram, color: Color, view: View) -> Iterator[str]:
    """Draw a player's stand (komadai), on that player's right side of the board."""
    x, y = view.stand_corner(color)
    yield _wood(x, y, STAND_WIDTH, STAND_HEIGHT, STAND_WOOD)
    yield _plate(diagram, color, x + PLATE_INSET, y + PLATE_INSET, view.labels)
    for index, (piece, count) in enumerate(held_pieces(diagram, color)):
        piece_x, piece_y = view.held_middle(color, index)
        details = f'class="shogi-held" data-count="{count}"'
        yield _piece(piece, piece_x, piece_y, details, view)
        if count > 1:
            yield _count_badge(piece_x + 23, piece_y + 24, count)


def _count_badge(x: float, y: float, count: int) -> str:
    width = 22 if count < 10 else 30
    return (
        f'<rect x="{number(x - width / 2)}" y="{number(y - 11)}" width="{width}" height="22" '
        f'rx="11" fill="{BOARD_INK}" stroke="{PALE}" stroke-width="1.2"/>'
    ) + svg_text(x, y, str(count), size=15, fill=PALE)


def _plate(diagram: Diagram, color: Color, x: int, y: int, labels: Labels) -> str:
    """Draw the player's name; the plate of the side to move is red and has the move number."""
    to_move = diagram.turn is color
    name, name_width = (SIDE_NAMES[color], 38) if labels == "japanese" else (_name(color), 58)
    width = STAND_WIDTH - 2 * PLATE_INSET
    middle_x, name_y = x + width / 2, y + (18 if to_move else PLATE_HEIGHT / 2)
    fill, ink = (ALARM, "#fff") if to_move else (PALE, BOARD_INK)
    parts = [
        f'<g class="shogi-player" data-color="{color.name.lower()}"',
        f' data-to-move="{str(to_move).lower()}">',
        f'<rect x="{x}" y="{y}" width="{width}" height="{PLATE_HEIGHT}" rx="4" fill="{fill}"/>',
        side_mark(middle_x - name_width / 2 - 5, name_y, color),
        svg_text(middle_x + 11, name_y, name, size=19, fill=ink),
    ]
    if to_move:
        ply = diagram.move_number
        number_text = f"{ply}手目" if labels == "japanese" else f"move {ply}"
        parts.append(svg_text(middle_x, y + 38, number_text, size=13, fill=ink))
    return "".join([*parts, "</g>"])

"""Shogi pieces as SVG shapes: wooden pentagons with a kanji or a letter."""

from typing import Final

from keisei.shogi.pieces import Color, Piece, PieceKind
from keisei.shogi.render_common import Lettering, piece_kanji

FONTS: Final[dict[Lettering, str]] = {
    "kanji": (
        "'Noto Serif CJK JP','Noto Serif JP','Source Han Serif JP','Hiragino Mincho ProN',"
        "'Yu Mincho','YuMincho','MS Mincho','IPAexMincho','Noto Sans CJK JP',serif"
    ),
    "letters": "'Helvetica Neue',Helvetica,Arial,'Noto Sans','DejaVu Sans',sans-serif",
}
"""Fonts to write with: the first that the reader's machine has is used."""

_FACE: Final = "#fae6b4"
_LETTERED_FACES: Final = ("#f8dfa4", "#fffdf7")  # two woods, Black's and White's
_SIDE: Final = "#bd8b45"
_EDGE: Final = "#7c5220"
_INK: Final = "#1c120a"
_PROMOTED_INK: Final = "#c01818"

_KING_HEIGHT: Final = 58.0
_THICKNESS: Final = 2.5
_SCALE: Final[dict[PieceKind, tuple[float, float]]] = {
    PieceKind.PAWN: (0.74, 0.84),
    PieceKind.LANCE: (0.78, 0.88),
    PieceKind.KNIGHT: (0.84, 0.90),
    PieceKind.SILVER: (0.91, 0.93),
    PieceKind.GOLD: (0.91, 0.93),
    PieceKind.BISHOP: (0.96, 0.97),
    PieceKind.ROOK: (0.96, 0.97),
    PieceKind.KING: (1.0, 1.0),
}
"""Width and height beside the king's: in a set, stronger pieces are larger."""


def number(value: float) -> str:
    """A coordinate with no more digits than a picture needs."""
    return f"{value:.1f}".removesuffix(".0")


def svg_text(
    x: float, y: float, content: str, *, size: float, fill: str, turned: bool = False
) -> str:
    """A text whose middle is at (x, y), upside down if `turned`; the font is inherited.

    The baseline is computed, as not every SVG viewer knows ``dominant-baseline``.
    """
    rotation = f' transform="rotate(180 {number(x)} {number(y)})"' if turned else ""
    return (
        f'<text x="{number(x)}" y="{number(y + 0.365 * size)}" font-size="{number(size)}" '
        f'fill="{fill}"{rotation}>{content}</text>'
    )


def pentagon(width: float, height: float, *, turned: bool, lowered: float = 0.0) -> str:
    """Path of a piece around (0, 0), its point up, or down if `turned`."""
    sign = -1 if turned else 1
    outline = ((0.0, -0.5), (0.37, -0.35), (0.5, 0.5), (-0.5, 0.5), (-0.37, -0.35))
    points = (f"{number(x * width)} {number(sign * y * height + lowered)}" for x, y in outline)
    return f"M{'L'.join(points)}Z"


def piece_shape(piece: Piece, lettering: Lettering, *, turned: bool) -> str:
    """The drawing of a piece around (0, 0); `turned` where its owner sits at the top."""
    wide, high = _SCALE[piece.kind.unpromoted]
    width, height = 0.86 * _KING_HEIGHT * wide, _KING_HEIGHT * high
    shadow = pentagon(width + 2, height, turned=turned, lowered=_THICKNESS + 2)
    side = pentagon(width, height, turned=turned, lowered=_THICKNESS)
    face = pentagon(width, height, turned=turned)
    fill = _FACE if lettering == "kanji" else _LETTERED_FACES[piece.color]
    return (
        f'<path d="{shadow}" fill="#000" fill-opacity=".2"/>'
        f'<path d="{side}" fill="{_SIDE}" stroke="{_EDGE}" stroke-linejoin="round"/>'
        f'<path d="{face}" fill="{fill}" stroke="{_EDGE}" stroke-width=".8" '
        f'stroke-linejoin="round"/>{_inletteringion(piece, lettering, height, turned=turned)}'
    )


def side_mark(x: float, y: float, color: Color) -> str:
    """The small pentagon that printed diagrams put before a player's name: ☗ or ☖."""
    fill = _INK if color is Color.BLACK else "#fff"
    outline = pentagon(15, 18, turned=False)
    return (
        f'<path d="{outline}" transform="translate({number(x)} {number(y)})" fill="{fill}" '
        f'stroke="{_INK}" stroke-width="1.2" stroke-linejoin="round"/>'
    )


def _inletteringion(piece: Piece, lettering: Lettering, height: float, *, turned: bool) -> str:
    fill = _PROMOTED_INK if piece.kind.is_promoted else _INK
    middle = (-1 if turned else 1) * 0.07 * height
    if lettering == "kanji":
        kanji = piece_kanji(piece)
        return svg_text(0, middle, kanji, size=0.64 * height, fill=fill, turned=turned)
    # Upside down, letters are hard to read; point and colour of the wood tell whose piece it is.
    size = (0.42 if piece.kind.is_promoted else 0.5) * height
    return svg_text(0, middle, piece.kind.symbol, size=size, fill=fill)

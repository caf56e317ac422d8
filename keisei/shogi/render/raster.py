"""Draw positions as pictures of pixels, in the look of the SVG, without any installed font.

>>> from keisei.shogi import ShogiGame
>>> board_image(ShogiGame().diagram, size=240).size
(331, 240)

Needs Pillow, which comes with matplotlib. Kanji are drawn by strokes; digits and letters are those
of the font that matplotlib carries.
"""

from functools import cache, cached_property
from io import BytesIO
from math import sin
from pathlib import Path
from typing import Final, get_args

from PIL import Image, ImageDraw, ImageFont

from keisei.constants import BOARD_SIZE
from keisei.shogi.render import layout
from keisei.shogi.render.glyphs import (
    RANK_KANJI,
    RenderError,
    held_pieces,
    piece_kanji,
    require_choice,
    require_drawable,
    require_square,
)
from keisei.shogi.render.layout import Labels, View, piece_size
from keisei.shogi.render.strokes import glyph
from keisei.shogi.types import RANK_LETTERS, Color, Diagram, Move, Piece

MAX_SIZE: Final = 2_160
"""Height of the largest picture, in pixels."""

MIN_SIZE: Final = 60

BACKGROUND: Final = "#f5f2ec"
"""Around the board: formats with one palette have no partial transparency."""

_OVERSAMPLING: Final = 3
_KANJI_SIZE: Final = 0.56
"""Size of the kanji on a piece, relative to its height."""


def board_image(
    diagram: Diagram,
    *,
    last_move: Move | None = None,
    size: int = 480,
    labels: Labels = "japanese",
    flip: bool = False,
    check_square: int | None = None,
) -> Image.Image:
    """Draw a position `size` pixels high; the arguments are those of `board_svg`."""
    painter = BoardPainter(size=size, labels=labels, flip=flip)
    return painter.paint(diagram, last_move=last_move, check_square=check_square)


def png_bytes(picture: Image.Image) -> bytes:
    """Return a picture as the content of a PNG file."""
    stream = BytesIO()
    picture.save(stream, "PNG", optimize=True)
    return stream.getvalue()


class BoardPainter:
    """Draws many positions of one size; board and pieces are drawn once."""

    def __init__(self, *, size: int = 480, labels: Labels = "japanese", flip: bool = False) -> None:
        require_choice("labels", labels, get_args(Labels))
        if not MIN_SIZE <= size <= MAX_SIZE:
            raise RenderError(f"size is {size}; the height in pixels is {MIN_SIZE} to {MAX_SIZE}")
        self.size = (round(size * layout.WIDTH / layout.HEIGHT), size)
        self._view = View(labels, flip)
        self._scale = size / layout.HEIGHT
        self._pieces: dict[Piece, Image.Image] = {}

    def paint(
        self,
        diagram: Diagram,
        *,
        last_move: Move | None = None,
        check_square: int | None = None,
    ) -> Image.Image:
        """Return the picture of a position."""
        require_drawable(diagram, last_move)
        if check_square is not None:
            require_square("check_square", check_square)
        picture = self._board.copy()
        for sq, fill in _marks(last_move, check_square):
            self._mark(picture, sq, fill)
        for sq, piece in enumerate(diagram.board):
            if piece is not None:
                x, y = self._view.corner(sq)
                middle = x + layout.CELL_WIDTH / 2, y + layout.CELL_HEIGHT / 2
                self._paste(picture, self._piece(piece), *middle)
        for color in Color:
            self._paint_stand(picture, diagram, color)
        return picture

    # ---- parts that are drawn once ----

    @cached_property
    def _board(self) -> Image.Image:
        """The empty board with both stands."""
        canvas = _Canvas(self._scale, layout.WIDTH, layout.HEIGHT, BACKGROUND)
        canvas.wood(
            layout.BOARD_X, layout.MARGIN, layout.BOARD_WIDTH, layout.BOARD_HEIGHT,
            layout.BOARD_WOOD,
        )  # fmt: skip
        for color in Color:
            x, y = self._view.stand_corner(color)
            canvas.wood(x, y, layout.STAND_WIDTH, layout.STAND_HEIGHT, layout.STAND_WOOD)
        self._draw_grid(canvas)
        self._draw_labels(canvas)
        return canvas.picture(self.size).convert("RGB")

    def _draw_grid(self, canvas: "_Canvas") -> None:
        left, top = layout.GRID_X, layout.GRID_Y
        right, bottom = left + layout.GRID_WIDTH, top + layout.GRID_HEIGHT
        for index in range(BOARD_SIZE + 1):
            width = 2.4 if index in (0, BOARD_SIZE) else 1.2
            x, y = left + index * layout.CELL_WIDTH, top + index * layout.CELL_HEIGHT
            canvas.line((left, y), (right, y), width, layout.BOARD_INK)
            canvas.line((x, top), (x, bottom), width, layout.BOARD_INK)
        for row in (3, 6):
            for column in (3, 6):
                middle = left + column * layout.CELL_WIDTH, top + row * layout.CELL_HEIGHT
                canvas.disc(*middle, 4, layout.BOARD_INK)

    def _draw_labels(self, canvas: "_Canvas") -> None:
        view = self._view
        for index in range(BOARD_SIZE):
            file = index + 1 if view.flip else BOARD_SIZE - index
            x = layout.GRID_X + (index + 0.5) * layout.CELL_WIDTH
            canvas.text(x, layout.GRID_Y - layout.RIM / 2, str(file), 16, layout.BOARD_INK)
            place = BOARD_SIZE - 1 - index if view.flip else index
            x = layout.GRID_X + layout.GRID_WIDTH + layout.RIM / 2
            y = layout.GRID_Y + (index + 0.5) * layout.CELL_HEIGHT
            if view.labels == "japanese":
                canvas.kanji(x, y, RANK_KANJI[place], 15, layout.BOARD_INK)
            else:
                canvas.text(x, y, RANK_LETTERS[place], 16, layout.BOARD_INK)

    def _piece(self, piece: Piece) -> Image.Image:
        if piece not in self._pieces:
            self._pieces[piece] = self._drawn_piece(piece)
        return self._pieces[piece]

    def _drawn_piece(self, piece: Piece) -> Image.Image:
        turned = self._view.at_top(piece.color)
        width, height = piece_size(piece.kind)
        side = layout.KING_HEIGHT + 12
        canvas, middle = _Canvas(self._scale, side, side), side / 2
        thickness = layout.PIECE_THICKNESS
        letters = self._view.lettering == "letters"
        face = layout.LETTERED_FACES[piece.color] if letters else layout.FACE_WOOD
        for wider, lowered, fill, edge in (
            (2.0, thickness + 2, "#00000033", None),
            (0.0, thickness, layout.SIDE_WOOD, layout.PIECE_EDGE),
            (0.0, 0.0, face, layout.PIECE_EDGE),
        ):
            sign = -1 if turned else 1
            corners = [
                (middle + x * (width + wider), middle + sign * y * height + lowered)
                for x, y in layout.OUTLINE
            ]
            canvas.polygon(corners, fill, edge)
        ink = layout.PROMOTED_INK if piece.kind.is_promoted else layout.INK
        text_y = middle + (-1 if turned else 1) * 0.09 * height
        if letters:
            size = (0.36 if piece.kind.is_promoted else 0.46) * height
            canvas.text(middle, text_y, piece.kind.symbol, size, ink)
        else:
            canvas.kanji(middle, text_y, piece_kanji(piece), _KANJI_SIZE * height, ink, turned)
        pixels = round(side * self._scale)
        return canvas.picture((pixels, pixels))

    # ---- parts of one position ----

    def _mark(self, picture: Image.Image, sq: int, fill: str) -> None:
        x, y = self._view.corner(sq)
        left, top = round(x * self._scale), round(y * self._scale)
        right = round((x + layout.CELL_WIDTH) * self._scale)
        bottom = round((y + layout.CELL_HEIGHT) * self._scale)
        below = picture.crop((left, top, right, bottom))
        tint = Image.new("RGB", below.size, fill)
        picture.paste(Image.blend(below, tint, 0.6), (left, top))

    def _paste(self, picture: Image.Image, part: Image.Image, x: float, y: float) -> None:
        """Paste a part with its middle at a place."""
        left = round(x * self._scale - part.width / 2)
        top = round(y * self._scale - part.height / 2)
        picture.paste(part, (left, top), part)

    def _paint_stand(self, picture: Image.Image, diagram: Diagram, color: Color) -> None:
        x, y = self._view.stand_corner(color)
        to_move = diagram.turn is color
        width = layout.STAND_WIDTH - 2 * layout.PLATE_INSET
        canvas = _Canvas(self._scale, width, layout.PLATE_HEIGHT)
        fill, ink = (layout.ALARM, "#ffffff") if to_move else (layout.PALE, layout.BOARD_INK)
        canvas.rectangle(0, 0, width, layout.PLATE_HEIGHT, 4, fill)
        number = str(diagram.move_number) if to_move else ""
        canvas.side_mark(width / 2 - (7 * len(number)), layout.PLATE_HEIGHT / 2, color)
        canvas.text(width / 2 + 14, layout.PLATE_HEIGHT / 2, number, 20, ink)
        plate = canvas.picture(
            (round(width * self._scale), round(layout.PLATE_HEIGHT * self._scale))
        )
        middle_y = y + layout.PLATE_INSET + layout.PLATE_HEIGHT / 2
        self._paste(picture, plate, x + layout.STAND_WIDTH / 2, middle_y)
        for index, (piece, count) in enumerate(held_pieces(diagram, color)):
            piece_x, piece_y = self._view.held_middle(color, index)
            self._paste(picture, self._piece(piece), piece_x, piece_y)
            if count > 1:
                self._paste(picture, self._badge(count), piece_x + 23, piece_y + 24)

    def _badge(self, count: int) -> Image.Image:
        width = 24 if count < 10 else 32
        canvas = _Canvas(self._scale, width, 24)
        canvas.rectangle(1, 1, width - 1, 23, 11, layout.BOARD_INK, layout.PALE)
        canvas.text(width / 2, 12, str(count), 14, layout.PALE)
        return canvas.picture((round(width * self._scale), round(24 * self._scale)))


class _Canvas:
    """A drawing several times as large as the picture, in the units of `layout`."""

    def __init__(
        self, scale: float, width: float, height: float, background: str = "#00000000"
    ) -> None:
        self._factor = scale * _OVERSAMPLING
        pixels = (max(1, round(width * self._factor)), max(1, round(height * self._factor)))
        self._image = Image.new("RGBA", pixels, background)
        self._draw = ImageDraw.Draw(self._image)

    def picture(self, size: tuple[int, int]) -> Image.Image:
        """Return the drawing at the size of the picture."""
        return self._image.resize(size, Image.Resampling.LANCZOS)

    def _at(self, x: float, y: float) -> tuple[float, float]:
        return x * self._factor, y * self._factor

    def line(
        self, start: tuple[float, float], end: tuple[float, float], width: float, fill: str
    ) -> None:
        pixels = max(1, round(width * self._factor))
        self._draw.line([self._at(*start), self._at(*end)], fill=fill, width=pixels)

    def disc(self, x: float, y: float, radius: float, fill: str) -> None:
        self._draw.ellipse(
            [self._at(x - radius, y - radius), self._at(x + radius, y + radius)], fill
        )

    def polygon(self, corners: list[tuple[float, float]], fill: str, edge: str | None) -> None:
        points = [self._at(x, y) for x, y in corners]
        if edge is None:  # a shadow, which is mixed with what is below
            layer = Image.new("RGBA", self._image.size)
            ImageDraw.Draw(layer).polygon(points, fill)
            self._image.alpha_composite(layer)
            return
        self._draw.polygon(points, fill)
        self._draw.line([*points, points[0]], fill=edge, width=max(1, round(self._factor * 0.9)))

    def rectangle(
        self, left: float, top: float, right: float, bottom: float, radius: float, fill: str,
        edge: str | None = None,
    ) -> None:  # fmt: skip
        self._draw.rounded_rectangle(
            [self._at(left, top), self._at(right, bottom)], radius * self._factor, fill, edge,
            width=max(1, round(1.2 * self._factor)) if edge else 0,
        )  # fmt: skip

    def wood(self, x: int, y: int, width: int, height: int, fill: str) -> None:
        """Draw a board with a front edge and a straight grain."""
        self.rectangle(x, y + 5, x + width, y + height + 5, 5, layout.WOOD_EDGE)
        self.rectangle(x, y, x + width, y + height, 5, fill, layout.WOOD_EDGE)
        layer = Image.new("RGBA", self._image.size)
        draw = ImageDraw.Draw(layer)
        for line in range(1, width // 9):
            left = x + line * 9 + 3 * sin(line * line)
            bend = 4.5 * sin(left)
            points = [(left, y + 1), (left + bend, y + height / 2), (left, y + height - 1)]
            draw.line(
                [self._at(*point) for point in points],
                fill=f"{layout.GRAIN}21", width=max(1, round(self._factor)),
            )  # fmt: skip
        self._image.alpha_composite(layer)

    def text(self, x: float, y: float, content: str, size: float, fill: str) -> None:
        """Write digits or Latin letters with their middle at a place."""
        font = _font(max(1, round(size * self._factor)))
        self._draw.text(self._at(x, y), content, fill, font, anchor="mm")

    def kanji(
        self, x: float, y: float, character: str, size: float, fill: str, turned: bool = False
    ) -> None:
        """Draw a character by its strokes, with its middle at a place."""
        unit = (-1 if turned else 1) * size / 100
        for stroke in glyph(character):
            dabs = [(x + unit * (dab.x - 50), y + unit * (dab.y - 50)) for dab in stroke]
            radii = [abs(unit) * dab.width / 2 for dab in stroke]
            for (dab_x, dab_y), radius in zip(dabs, radii, strict=True):
                self.disc(dab_x, dab_y, radius, fill)
            for index in range(len(dabs) - 1):
                width = radii[index] + radii[index + 1]
                self.line(dabs[index], dabs[index + 1], width, fill)

    def side_mark(self, x: float, y: float, color: Color) -> None:
        """Draw the small pentagon of printed diagrams before a player's name: ☗ or ☖."""
        fill = layout.INK if color is Color.BLACK else "#ffffff"
        corners = [(x + 17 * across, y + 20 * down) for across, down in layout.OUTLINE]
        self.polygon(corners, fill, layout.INK)


def _marks(last_move: Move | None, check_square: int | None) -> list[tuple[int, str]]:
    """Return the squares to highlight and their colours."""
    marks = []
    if last_move is not None:
        if last_move.from_square is not None:
            marks.append((last_move.from_square, layout.ORIGIN_MARK))
        marks.append((last_move.to_square, layout.TARGET_MARK))
    if check_square is not None:
        marks.append((check_square, layout.ALARM))
    return marks


@cache
def _font(size: int) -> ImageFont.FreeTypeFont:
    from matplotlib import get_data_path

    path = Path(get_data_path()) / "fonts" / "ttf" / "DejaVuSans-Bold.ttf"
    return ImageFont.truetype(str(path), size)

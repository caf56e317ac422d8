"""Draw positions: as text, in colour for terminals, as SVG; `render.html` draws games as HTML.

`render.raster` and `render.animation` draw PNG, GIF and APNG; they need Pillow.
"""

from keisei.shogi.render.glyphs import Lettering, RenderError
from keisei.shogi.render.svg import board_svg
from keisei.shogi.render.text import board_rich, board_text

__all__ = ["Lettering", "RenderError", "board_rich", "board_svg", "board_text"]

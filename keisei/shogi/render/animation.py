"""Pictures of games: one of its positions as PNG or SVG, all of them as an animated GIF or PNG.

>>> record = GameRecord.from_moves(["7g7f", "3c3d"])
>>> animation_bytes(record, "gif", size=120)[:6]
b'GIF89a'
"""

from collections.abc import Iterator
from io import BytesIO
from pathlib import PurePath
from typing import Any, Final

import numpy as np
import numpy.typing as npt
from PIL import Image

from keisei.constants import NUM_SQUARES
from keisei.shogi.game import ShogiGame
from keisei.shogi.notation.record import GameRecord
from keisei.shogi.render.glyphs import RenderError
from keisei.shogi.render.layout import Labels
from keisei.shogi.render.raster import BoardPainter, board_image, png_bytes
from keisei.shogi.render.svg import board_svg
from keisei.shogi.types import HAND_KINDS, Color, Diagram, Move, Piece, PieceKind

PICTURE_SUFFIXES: Final = (".png", ".svg")
"""Files with one position."""

ANIMATION_SUFFIXES: Final = (".gif", ".apng")
"""Files with all positions of a game."""

DEFAULT_SECONDS: Final = 1.0
"""Time that each position is shown."""

MIN_SECONDS: Final = 0.05
MAX_SECONDS: Final = 60.0

MAX_FRAMES: Final = 2_000
"""Positions of an animation, at most."""

_LAST_FRAMES: Final = 3
"""The last position is shown this many times as long as the others."""

_COLORS: Final = 128
"""Of the palette that all frames share: the board needs few."""

_UNCHANGED: Final = 255
"""Transparent colour of the pixels that are as in the frame before."""


def picture_bytes(
    record: GameRecord,
    kind: str,
    *,
    ply: int | None = None,
    size: int = 480,
    labels: Labels = "japanese",
    flip: bool = False,
) -> bytes:
    """Return the content of a file with one position of a game.

    Args:
        record: the game.
        kind: ``png`` or ``svg``.
        ply: moves played until then; None: all of them.
        size: height in pixels.
        labels: of pieces and squares.
        flip: whether White is at the bottom.
    """
    plies = len(record.moves)
    if ply is not None and not 0 <= ply <= plies:
        raise RenderError(f"there is no position after {ply} moves: the game has {plies}")
    game = ShogiGame(record.start)
    for move in record.main_line[:ply]:
        game.push(move)
    options: dict[str, Any] = {
        "last_move": game.last_move, "check_square": game.checked_king, "size": size,
        "labels": labels, "flip": flip,
    }  # fmt: skip
    if kind == "svg":
        return board_svg(game.diagram, **options).encode()
    return png_bytes(board_image(game.diagram, **options))


def animation_bytes(
    record: GameRecord,
    kind: str,
    *,
    seconds: float = DEFAULT_SECONDS,
    size: int = 360,
    labels: Labels = "japanese",
    flip: bool = False,
) -> bytes:
    """Return the content of an animation of a game's main line, which begins again at its end.

    Args:
        record: the game.
        kind: ``gif`` or ``apng``.
        seconds: time that each position is shown.
        size: height in pixels.
        labels: of pieces and squares.
        flip: whether White is at the bottom.
    """
    if not MIN_SECONDS <= seconds <= MAX_SECONDS:
        raise RenderError(f"{seconds} seconds a move; it must be {MIN_SECONDS} to {MAX_SECONDS}")
    if len(record.moves) >= MAX_FRAMES:
        raise RenderError(f"{len(record.moves)} moves; an animation has up to {MAX_FRAMES - 1}")
    painter = BoardPainter(size=size, labels=labels, flip=flip)
    first, *others = _changes(_frames(record, painter))
    step = round(1000 * seconds)
    stream = BytesIO()
    first.save(
        stream,
        "GIF" if kind == "gif" else "PNG",
        save_all=True,
        append_images=others,
        duration=[step] * len(others) + [_LAST_FRAMES * step],
        loop=0,
        transparency=_UNCHANGED,
        optimize=False,  # it would give each frame a palette of its own
        disposal=1 if kind == "gif" else 0,  # of GIF and of PNG: the frame stays for the next one
        blend=1,  # of PNG: over the frame before
    )
    return stream.getvalue()


def is_picture(name: str | PurePath) -> bool:
    """Return whether a file of this name is a picture or an animation."""
    return PurePath(name).suffix.lower() in PICTURE_SUFFIXES + ANIMATION_SUFFIXES


def _frames(record: GameRecord, painter: BoardPainter) -> Iterator[Image.Image]:
    """Yield the positions of a game, with one palette for all."""
    palette = _palette(painter)
    game = ShogiGame(record.start)
    for move in [None, *record.main_line]:
        if move is not None:
            game.push(move)
        frame = painter.paint(
            game.diagram, last_move=game.last_move, check_square=game.checked_king
        )
        yield frame.quantize(palette=palette, dither=Image.Dither.NONE)


def _changes(frames: Iterator[Image.Image]) -> Iterator[Image.Image]:
    """Yield the first frame, then only what changes: a tenth of the bytes."""
    before: npt.NDArray[np.uint8] | None = None
    for frame in frames:
        pixels = np.asarray(frame)
        new = pixels if before is None else np.where(pixels == before, _UNCHANGED, pixels)
        change = Image.frombytes("P", frame.size, new.astype(np.uint8).tobytes())
        colors = frame.getpalette() or []
        change.putpalette(colors + [0] * (3 * 256 - len(colors)))  # `_UNCHANGED` is one of them
        before = pixels
        yield change


def _palette(painter: BoardPainter) -> Image.Image:
    """Return the palette of a picture with everything that can be on a board."""
    pieces = [Piece(color, kind) for color in Color for kind in PieceKind]
    empty = (None,) * (NUM_SQUARES - len(pieces))
    held = tuple(2 for _ in HAND_KINDS)
    everything = Diagram((*pieces, *empty), (held, held))
    last, checked = Move(NUM_SQUARES - 3, NUM_SQUARES - 2), NUM_SQUARES - 1
    picture = painter.paint(everything, last_move=last, check_square=checked)
    return picture.quantize(_COLORS, Image.Quantize.MEDIANCUT)

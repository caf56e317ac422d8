"""Pictures of pixels: board, pieces and highlights are where they belong, without any font."""

import struct
from io import BytesIO

import numpy as np
import numpy.typing as npt
import pytest
from PIL import Image

from keisei.shogi.game import ShogiGame
from keisei.shogi.notation.record import GameRecord
from keisei.shogi.render import RenderError, layout
from keisei.shogi.render.animation import (
    MAX_FRAMES,
    animation_bytes,
    is_picture,
    picture_bytes,
)
from keisei.shogi.render.glyphs import KANJI_BY_KIND, RANK_KANJI
from keisei.shogi.render.layout import View
from keisei.shogi.render.raster import BoardPainter, board_image, png_bytes
from keisei.shogi.render.strokes import STROKES, glyph
from keisei.shogi.types import Move, square

Pixels = npt.NDArray[np.int64]

MOVES = ["7g7f", "3c3d", "8h2b+", "3a2b", "B*4e"]


def rgb(color: str) -> Pixels:
    return np.array([int(color[place : place + 2], 16) for place in (1, 3, 5)])


def pixel(picture: Image.Image, x: float, y: float) -> Pixels:
    scale = picture.height / layout.HEIGHT
    pixels: Pixels = np.asarray(picture.convert("RGB")).astype(np.int64)
    found: Pixels = pixels[round(y * scale), round(x * scale)]
    return found


def near_corner(picture: Image.Image, sq: int, *, flip: bool = False) -> Pixels:
    """A pixel of a square that no piece covers."""
    x, y = View("japanese", flip).corner(sq)
    return pixel(picture, x + 5, y + 5)


def test_every_kanji_has_strokes_within_its_square() -> None:
    assert set(STROKES) == {*KANJI_BY_KIND, "王", *RANK_KANJI}
    for character in STROKES:
        for stroke in glyph(character):
            assert len(stroke) >= 2
            for dab in stroke:
                assert 0 <= dab.x <= 100, character
                assert 0 <= dab.y <= 100, character
                assert 2 <= dab.width <= 11, character
    assert len(glyph("龍")) == 18, "sixteen, two of them in two parts"


def test_the_last_move_and_a_check_are_highlighted() -> None:
    game = ShogiGame()
    move = Move.from_usi("7g7f")
    picture = board_image(game.diagram, last_move=move, check_square=square(5, 5), size=720)
    plain = near_corner(picture, square(5, 4))
    for sq, color in (
        (square(7, 7), layout.ORIGIN_MARK),
        (square(7, 6), layout.TARGET_MARK),
        (square(5, 5), layout.ALARM),
    ):
        expected = 0.6 * rgb(color) + 0.4 * plain
        assert np.abs(near_corner(picture, sq) - expected).max() < 16
    drop = board_image(game.diagram, last_move=Move.from_usi("P*5e"), size=720)
    assert np.abs(near_corner(drop, square(5, 5)) - plain).max() > 20


def test_flipping_is_turning_the_board() -> None:
    diagram = ShogiGame("9/9/9/9/9/9/9/9/K7k b - 1").diagram
    for flip, dark in ((False, square(9, 9)), (True, square(9, 9))):
        picture = board_image(diagram, flip=flip, size=480)
        x, y = View("japanese", flip).corner(dark)
        middle = pixel(picture, x + layout.CELL_WIDTH / 2 + 14, y + layout.CELL_HEIGHT / 2)
        wood = pixel(picture, *(a + b / 2 for a, b in zip(
            View("japanese", flip).corner(square(5, 5)),
            (layout.CELL_WIDTH, layout.CELL_HEIGHT), strict=True)))  # fmt: skip
        assert np.abs(middle - wood).max() > 20, "the king stands there"


@pytest.mark.parametrize("labels", ["japanese", "western", "letters"])
def test_pictures_have_the_size_that_was_asked_for(labels: layout.Labels) -> None:
    painter = BoardPainter(size=300, labels=labels)
    picture = painter.paint(ShogiGame("startpos moves 7g7f 3c3d 8h2b+ 3a2b").diagram)
    assert picture.size == painter.size == (round(300 * layout.WIDTH / layout.HEIGHT), 300)
    assert Image.open(BytesIO(png_bytes(picture))).size == picture.size


def test_kanji_and_letters_are_different_pictures() -> None:
    pictures = [
        np.asarray(board_image(ShogiGame().diagram, size=240, labels=labels))
        for labels in ("japanese", "western", "letters")  # type: layout.Labels
    ]
    assert not np.array_equal(pictures[0], pictures[1])
    assert not np.array_equal(pictures[1], pictures[2])


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"size": 5}, "60 to 2160"),
        ({"size": 100_000}, "60 to 2160"),
        ({"labels": "runes"}, "must be one of"),
        ({"check_square": 81}, "square 81"),
    ],
)
def test_what_cannot_be_drawn_is_refused(arguments: dict[str, object], message: str) -> None:
    with pytest.raises(RenderError, match=message):
        board_image(ShogiGame().diagram, **arguments)  # type: ignore[arg-type]


def frames_of(data: bytes) -> list[Pixels]:
    with Image.open(BytesIO(data)) as file:
        frames = []
        for index in range(getattr(file, "n_frames", 1)):
            file.seek(index)
            frames.append(np.asarray(file.convert("RGBA").convert("RGB")).astype(np.int64))
        return frames


@pytest.mark.parametrize("kind", ["gif", "apng"])
def test_an_animation_shows_every_position(kind: str) -> None:
    record = GameRecord.from_moves(MOVES)
    data = animation_bytes(record, kind, size=180, seconds=0.5)
    frames = frames_of(data)
    assert len(frames) == len(MOVES) + 1
    painter, game = BoardPainter(size=180), ShogiGame()
    for index, frame in enumerate(frames):
        expected = painter.paint(game.diagram, last_move=game.last_move)
        difference = np.abs(frame - np.asarray(expected).astype(np.int64))
        assert difference.mean() < 4, "colours are rounded to the palette"
        assert np.quantile(difference, 0.999) < 60
        if index < len(MOVES):
            game.push(MOVES[index])
    with Image.open(BytesIO(data)) as file:
        assert file.info["duration"] == 500
        assert file.info["loop"] == 0
        file.seek(len(MOVES))
        assert file.info["duration"] == 1500, "the end can be looked at"
    assert len(data) < 5 * len(animation_bytes(GameRecord(), kind, size=180))


def test_an_apng_is_valid_for_readers_that_know_png_only() -> None:
    data = animation_bytes(GameRecord.from_moves(MOVES), "apng", size=120)
    assert data.startswith(b"\x89PNG")
    place = data.index(b"acTL")
    frames, plays = struct.unpack(">II", data[place + 4 : place + 12])
    assert (frames, plays) == (len(MOVES) + 1, 0)


def test_a_picture_shows_one_position() -> None:
    record = GameRecord.from_moves(MOVES)
    last, second = picture_bytes(record, "png"), picture_bytes(record, "png", ply=2)
    assert last != second
    assert picture_bytes(record, "png", ply=5) == last
    assert b"Last move 3c3d." in picture_bytes(record, "svg", ply=2)
    with pytest.raises(RenderError, match="after 6 moves: the game has 5"):
        picture_bytes(record, "png", ply=6)


def test_animations_have_limits() -> None:
    record = GameRecord.from_moves(MOVES)
    for seconds in (0.0, 61.0, float("nan")):
        with pytest.raises(RenderError, match="seconds a move"):
            animation_bytes(record, "gif", seconds=seconds)
    long = GameRecord()
    long.moves = record.moves * (MAX_FRAMES // 5)
    with pytest.raises(RenderError, match="2000 moves"):
        animation_bytes(long, "gif")


def test_suffixes() -> None:
    assert [is_picture(f"game.{suffix}") for suffix in ("PNG", "svg", "gif", "apng", "kif")] == [
        True, True, True, True, False,
    ]  # fmt: skip

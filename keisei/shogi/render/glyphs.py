"""Glyphs, display widths and argument checks that all renderers of positions share."""

from collections.abc import Collection, Iterator
from typing import Final, Literal
from unicodedata import east_asian_width

from keisei.constants import NUM_SQUARES
from keisei.errors import KeiseiError
from keisei.shogi.types import (
    HAND_KINDS,
    Color,
    Diagram,
    Move,
    Piece,
    PieceKind,
)

Lettering = Literal["kanji", "letters"]
"""Lettering of the pieces: kanji as in print, or the Western letters of SFEN."""

KANJI_BY_KIND: Final = "歩香桂銀金角飛玉と杏圭全馬龍"
"""The one kanji (or kana) of each kind in a printed diagram."""

SIDE_NAMES: Final = ("先手", "後手")
"""Japanese names of Black and White."""

RANK_KANJI: Final = "一二三四五六七八九"
"""Ranks from the top of a printed diagram to its bottom."""


class RenderError(KeiseiError, ValueError):
    """A picture of a position that cannot be drawn; the message says why."""


def piece_kanji(piece: Piece) -> str:
    """Return the one kanji (or kana) of a piece on a diagram.

    The kings of a set differ by a dot: 玉 is Black's, 王 is White's.
    """
    if piece == Piece(Color.WHITE, PieceKind.KING):
        return "王"
    return KANJI_BY_KIND[piece.kind]


def held_pieces(diagram: Diagram, color: Color) -> Iterator[tuple[Piece, int]]:
    """Yield the pieces in a hand with their counts (above 0), the strongest kind first."""
    for kind in reversed(HAND_KINDS):
        if count := diagram.hands[color][kind]:
            yield Piece(color, kind), count


def display_width(text: str) -> int:
    """Number of terminal cells of a text: wide East Asian characters take two.

    >>> display_width("v歩")
    3
    """
    return sum(2 if east_asian_width(character) in "WF" else 1 for character in text)


def require_choice(name: str, value: str, allowed: Collection[str]) -> None:
    """Raise `RenderError` unless `value` is one of `allowed`."""
    if value not in allowed:
        choices = ", ".join(repr(choice) for choice in allowed)
        raise RenderError(f"{name} is {value!r}; it must be one of {choices}")


def require_drawable(diagram: Diagram, last_move: Move | None) -> None:
    """Raise `RenderError` if the squares do not fit a board.

    Illegal positions can be drawn: a picture helps to find out what is wrong.
    """
    if len(diagram.board) != NUM_SQUARES:
        raise RenderError(f"a board has {NUM_SQUARES} squares, not {len(diagram.board)}")
    if last_move is not None:
        require_square("the target of the last move", last_move.to_square)
        if last_move.from_square is not None:
            require_square("the origin of the last move", last_move.from_square)


def require_square(name: str, sq: int) -> None:
    """Raise `RenderError` unless `sq` is the number of a square."""
    if not 0 <= sq < NUM_SQUARES:
        last = NUM_SQUARES - 1
        raise RenderError(f"{name} is square {sq}; squares go from 0 (9a) to {last} (1i)")

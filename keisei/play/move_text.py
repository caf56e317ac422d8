"""Moves as text for a list of moves: Japanese notation, or Western letters."""

from collections.abc import Iterable

from keisei.shogi.notation.ki2 import format_move
from keisei.shogi.notation.record import Replay
from keisei.shogi.notation.western import format_western
from keisei.shogi.render.glyphs import Lettering
from keisei.shogi.types import Color, Diagram, Move


def move_text(replay: Replay, move: Move, lettering: Lettering) -> str:
    """Return a move that is about to be played, in the notation that goes with the lettering."""
    if lettering == "letters":
        return format_western(replay, move)
    mark = "☗" if replay.turn is Color.BLACK else "☖"
    return mark + format_move(replay, move).replace("　", "")


def move_texts(start: Diagram, moves: Iterable[Move], lettering: Lettering) -> list[str]:
    """Return each of the moves in the notation that goes with the lettering of the pieces."""
    replay = Replay(start)
    texts = []
    for move in moves:
        texts.append(move_text(replay, move, lettering))
        replay.play(move)
    return texts
